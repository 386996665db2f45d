"""One step of the queue: events in, actions out, nothing left undecided.

`step` applies the events, plans, and commits the plan: what the plan starts is no longer in line
before the shell hears of it, so the next step can't start it twice.
"""

from collections.abc import Iterable

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Check, Log, Measure, Start
from sdqueue.core.apply import apply
from sdqueue.core.model import LaneState, Phase, QueueState, Reason
from sdqueue.core.placing import announce
from sdqueue.core.plan import Plan, Step, plan
from sdqueue.words import names


def step(
    state: QueueState, events: Iterable[ev.Event], now_sec: float
) -> tuple[list[Action], Plan]:
    """Take all events on and decide what follows; the plan says why the rest waits."""
    actions = [action for event in events for action in apply(state, event, now_sec)]
    planned = plan(state, now_sec)
    for taken in planned.steps:
        _commit(state, taken, now_sec)
        actions.append(taken)
    for name, block in planned.blocks.items():
        actions += _announce_lane(state, state.lanes[name], block)
    return actions, planned


def _commit(state: QueueState, taken: Step, now_sec: float) -> None:
    """Take the jobs of one step out of their line."""
    lane_of = {Start: Phase.CLAIMING, Measure: Phase.MEASURING, Check: Phase.CHECKING}
    for name in taken.names if isinstance(taken, Check) else (taken.name,):
        job = state.jobs[name]
        job.phase, job.since_sec = lane_of[type(taken)], now_sec
        lane = state.lanes[job.lane]
        lane.line.discard(name)
        if isinstance(taken, Start):
            lane.occupants[job.unit], job.is_unit_gone = name, False
        elif isinstance(taken, Check):
            lane.occupants[names.unit_of_checks(job.lane)] = ""


def _announce_lane(state: QueueState, lane: LaneState, block: Reason) -> list[Action]:
    """Log why the head of a lane waits, and once that others stand behind it."""
    head = lane.line.head()
    if head is None:
        return []
    job = state.jobs[head]
    actions = [] if job.gate else announce(job, block)
    crowded = len(lane.line) > 1
    if crowded and not lane.crowded:
        detail = f"{len(lane.line) - 1} jobs are behind {head}"
        fields: dict[str, object] = {"reason": "earlier-job", "detail": detail}
        actions.append(Log("wait", "-", {**fields, "lane": lane.lane.name}))
    lane.crowded = crowded
    return actions
