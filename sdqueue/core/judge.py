"""How each lane is: the one function behind `is-free`, `status`, `owners` and the bus. Pure.

The verdict is kept with the lane and changes in steps only, so that an answer costs nothing and
looks at no process; its `generation` grows with each change of any lane, so that answers can be
told apart.
"""

from collections.abc import Callable, Iterator

from sdqueue.core.actions import Action, LaneChanged
from sdqueue.core.foreign import in_use, who_counts
from sdqueue.core.model import Code, LaneState, QueueState
from sdqueue.core.owner import Use
from sdqueue.core.plan import Plan, excluding, lease_block
from sdqueue.core.verdict import FREE, LaneWord, Verdict

View = Callable[[QueueState, LaneState, Plan], Verdict | None]


def _paused(_state: QueueState, lane: LaneState, _plan: Plan) -> Verdict | None:
    return Verdict(LaneWord.PAUSED, "", "a person has paused it") if lane.paused else None


def _occupied(_state: QueueState, lane: LaneState, _plan: Plan) -> Verdict | None:
    for unit in lane.occupants:
        if lease := lane.leases.get(unit):
            return Verdict(LaneWord.LEASED, unit, f"{lease} has it")
    for unit, job in lane.occupants.items():
        return Verdict(LaneWord.RUNNING, unit, f"{job or unit} has it")
    return None


def _untold(state: QueueState, lane: LaneState, _plan: Plan) -> Verdict | None:
    if state.halt:
        return Verdict(LaneWord.UNKNOWN, "", state.halt.detail)
    if lane.lane.is_watched and not lane.looked_sec:
        return Verdict(LaneWord.UNKNOWN, "", "who uses it is being looked at")
    owner = who_counts(lane)
    if owner and owner.use is Use.UNKNOWN and not owner.pid:
        return Verdict(LaneWord.UNKNOWN, owner.unit or owner.comm, owner.note)
    return None


def _foreign(_state: QueueState, lane: LaneState, _plan: Plan) -> Verdict | None:
    user = in_use(lane)
    return Verdict(LaneWord.FOREIGN, user.blocker, user.detail) if user else None


def _wanted(_state: QueueState, lane: LaneState, _plan: Plan) -> Verdict | None:
    if head := lane.line.head():
        return Verdict(LaneWord.WANTED, head, f"{head} waits for it")
    for request in lane.requests:
        return Verdict(LaneWord.WANTED, request.lease.who, f"{request.lease} asked for it")
    return None


def _ruled_out(state: QueueState, lane: LaneState, planned: Plan) -> Verdict | None:
    block = lease_block(state, lane, planned)
    return Verdict(LaneWord.EXCLUDED, block.blocker, block.detail) if block else None


VIEWS: tuple[View, ...] = (_paused, _occupied, _untold, _foreign, _wanted, _ruled_out)
"""Asked in this order; where none says anything, the lane is free."""


def judge(state: QueueState, lane: LaneState, planned: Plan) -> Verdict:
    """Say how a lane is after a step."""
    return next(filter(None, (view(state, lane, planned) for view in VIEWS)), FREE)


def judge_all(state: QueueState, planned: Plan) -> Iterator[Action]:
    """Keep each lane's verdict, and who waits for its leases; tell of those that changed."""
    generation = state.generation
    for name, lane in state.lanes.items():
        found = judge(state, lane, planned)
        waiting = tuple(waiters(state, lane, planned)) if lane.leases else ()
        changed = found[:3] != lane.verdict[:3]
        if changed:
            state.generation = generation + 1
            lane.verdict = found._replace(generation=state.generation)
        if changed or (waiting, tuple(lane.leases)) != (lane.waiters, lane.told):
            lane.waiters, lane.told = waiting, tuple(lane.leases)
            yield LaneChanged(name)


def waiters(state: QueueState, lane: LaneState, planned: Plan) -> Iterator[tuple[str, str]]:
    """List who waits for a lease of this lane: `("job", NAME)` for the heads of lines, and
    `("lease", WHO)`."""
    codes = (Code.LEASED, Code.EXCLUDED_LANE)
    for name in sorted({lane.lane.name, *excluding(state, lane)}):
        other = state.lanes.get(name)
        if other is None:
            continue
        block, head = planned.blocks.get(name), other.line.head()
        if head and block and block.code in codes and block.blocker in lane.leases:
            yield "job", head
        for request in other.requests:
            why = planned.leases.get(request.lease.id)
            if why and why.code in codes and why.blocker in lane.leases:
                yield "lease", request.lease.who
