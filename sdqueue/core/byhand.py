"""What people do to files: a job that is elsewhere without the queue having moved it.

The queue's own moves are seen by the same watch, so a file that moved is a person's doing only
where its job was at rest: what is on its way is moved by the queue itself. Where a person was
faster than the queue, the queue finds the file gone (`vanished`) and the news counts then.
"""

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Log
from sdqueue.core.model import Job, JobState, Phase, QueueState

AT_REST = frozenset({Phase.IN_LINE, Phase.ASIDE, Phase.CHECKING, Phase.MEASURING})


def ended_by_hand(state: QueueState, event: ev.FileEnded) -> list[Action]:
    """Log that somebody moved a job out of the queue, or between the directories of ended jobs."""
    job = state.jobs.get(event.name)
    if job and job.phase not in AT_REST:
        job.seen_away = event
        return []
    was_known = job or event.name in state.vanished or event.name in state.ended
    state.vanished.discard(event.name)
    if not was_known or (job is None and state.ended.get(event.name) is event.state):
        return []
    return [_log(state, event, job.lane if job else "")]


def _log(state: QueueState, event: ev.FileEnded, lane: str) -> Log:
    fields: dict[str, object] = {"lane": lane, "by": state.uid}
    if event.state is None:
        return Log("removed", event.name, fields)
    if event.state is JobState.PARKED:
        return Log("parked", event.name, fields)
    return Log("moved", event.name, {**fields, "to": str(event.state)})


def vanished(state: QueueState, job: Job) -> list[Action]:
    """Take note that a job's file was gone when the queue wanted to move it: a person's doing."""
    if job.seen_away is None:
        state.vanished.add(job.name)
        return []
    return [_log(state, job.seen_away, job.lane)]


def queued_by_hand(state: QueueState, event: ev.FileQueued) -> list[Action]:
    """Log that somebody put a job back that was set aside or had ended."""
    state.vanished.discard(event.name)
    before = state.ended.pop(event.name, None)
    if before is None:
        return []
    lane = event.spec.lane if event.spec else ""
    return [Log("released", event.name, {"lane": lane, "by": state.uid, "from": str(before)})]


def changed_by_hand(state: QueueState, job: Job, event: ev.FileQueued) -> list[Action]:
    """Log that somebody gave a waiting job another lane or another place in its line."""
    old, new = job.spec, event.spec
    if old is None or new is None or (old.lane, old.priority) == (new.lane, new.priority):
        return []
    fields: dict[str, object] = {"lane": new.lane, "by": state.uid, "from": old.lane}
    return [Log("moved", job.name, {**fields, "priority": new.priority})]
