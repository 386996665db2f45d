"""One step of the queue: events in, actions out, nothing left undecided.

`step` applies the events, plans, and commits the plan: what the plan starts is no longer in line
before the shell hears of it, so the next step can't start it twice.
"""

from collections.abc import Iterable, Iterator

from sdqueue.core import events as ev
from sdqueue.core import lending
from sdqueue.core.actions import Action, Check, Grant, KeepAwake, Log, Look, Measure, Start
from sdqueue.core.apply import apply
from sdqueue.core.foreign import tell_episodes
from sdqueue.core.judge import judge_all
from sdqueue.core.model import Job, JobState, LaneState, Phase, QueueState, Reason
from sdqueue.core.owners_told import tell_owners
from sdqueue.core.placing import announce, occupy, put_back
from sdqueue.core.plan import Plan, Step, plan
from sdqueue.words import names


def step(
    state: QueueState, events: Iterable[ev.Event], now_sec: float
) -> tuple[list[Action], Plan]:
    """Take all events on and decide what follows; the plan says why the rest waits."""
    actions = put_back(state, now_sec) if now_sec < state.clock_sec else []
    state.clock_sec = now_sec
    actions += [action for event in events for action in apply(state, event, now_sec)]
    lending.advance(state)
    planned = plan(state, now_sec)
    for taken in planned.steps:
        _commit(state, taken)
        actions.append(taken)
    for name, lane in state.lanes.items():
        actions += _announce_lane(state, lane, planned.blocks.get(name))
    actions += lending.answer_requests(state, planned)
    actions += judge_all(state, planned)
    actions += tell_owners(state)
    actions += _keep_awake(state)
    actions += tell_episodes(state, actions, planned.blocks, now_sec)
    return actions, planned


_PHASES: dict[type, Phase] = {
    Start: Phase.CLAIMING,
    Measure: Phase.MEASURING,
    Check: Phase.CHECKING,
}


def _commit(state: QueueState, taken: Step) -> None:
    """Take the jobs of one step out of their line, and the slot that they need."""
    if isinstance(taken, Look):
        state.lanes[taken.lane].is_looking = True
        return
    if isinstance(taken, Grant):
        lending.grant(state, taken)
        return
    asked = taken.names if isinstance(taken, Check) else (taken.name,)
    for name in asked:
        job = state.jobs[name]
        job.phase = _PHASES[type(taken)]
        state.lanes[job.lane].line.discard(name)
        if not isinstance(taken, Start):
            state.asked[name], job.is_stale = job.lane, False
    first = state.jobs[asked[0]]
    if isinstance(taken, Check):
        first.unreached += 1
        state.lanes[first.lane].occupants[names.unit_of_checks(first.lane)] = ""
    else:
        first.is_unit_gone = False
        occupy(state, first)


def _keep_awake(state: QueueState) -> list[Action]:
    """Have the box stay awake while a job runs in a lane that asks for it, and no longer."""
    wanted = any(map(_keeps_awake, _running(state)))
    if wanted is state.is_awake:
        return []
    state.is_awake = wanted
    return [KeepAwake(wanted)]


def _running(state: QueueState) -> Iterator[tuple[LaneState, Job | None]]:
    for lane in state.lanes.values():
        for name in lane.occupants.values():
            yield lane, state.jobs.get(name)


def _keeps_awake(running: tuple[LaneState, Job | None]) -> bool:
    lane, job = running
    return lane.lane.inhibit_sleep and job is not None and job.state is JobState.RUNNING


def _announce_lane(state: QueueState, lane: LaneState, block: Reason | None) -> list[Action]:
    """Log why the head of a lane waits, and once that others stand behind it."""
    head = lane.line.head()
    was_crowded, lane.crowded = lane.crowded, len(lane.line) > 1
    if head is None or block is None:
        return []
    job = state.jobs[head]
    actions = [] if job.gate else announce(job, block)
    if lane.crowded and not was_crowded:
        detail = f"{len(lane.line) - 1} jobs are behind {head}"
        fields: dict[str, object] = {"reason": "earlier-job", "detail": detail}
        actions.append(Log("wait", "-", {**fields, "lane": lane.lane.name}))
    return actions
