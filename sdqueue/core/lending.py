"""Leases in the queue: asked for, waited for, held and ended. Pure.

A request is decided in the step that takes it on: it is granted, or it is refused with the reasons,
or, where it waits, it stands in its lane's line behind the jobs that were there before it. From the
instant at which a job that can run is in line, the lane is wanted, and what is asked for later does
not come before it.

    LeaseAsked      a request stands in its lane
      plan: Grant   its unit holds a slot from here, as a job's does
    LeaseStarted    PID 1 has it: `lease` is logged, the holder gets its descriptor
    UnitGone        nobody has the descriptor open any more: `lease-end`
"""

from collections.abc import Iterator

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Deny, Grant, Log
from sdqueue.core.foreign import is_holder
from sdqueue.core.lease import Lease, LeaseRequest, Parked
from sdqueue.core.model import Code, LaneState, QueueState, Reason
from sdqueue.core.placing import refuse
from sdqueue.core.plan import Plan

NO_LANE = "the lane is not configured any more"


def lease_asked(state: QueueState, event: ev.LeaseAsked, _now_sec: float) -> list[Action]:
    """Put a request in its lane, behind the jobs that wait now."""
    lane = state.lanes.get(event.lease.lane)
    if lane is None or event.lease.lane not in state.config.lanes:
        return [_deny_unknown(event.lease)]
    asked = [name for name, asker in state.asked.items() if asker == event.lease.lane]
    behind = [*asked, *lane.line] if event.wait else []
    lane.requests.append(LeaseRequest(event.lease, event.wait, behind))
    return []


def _deny_unknown(lease: Lease) -> Deny:
    return Deny(lease, (Reason(Code.BAD_FILE, NO_LANE, lease.lane),))


def lease_withdrawn(state: QueueState, event: ev.LeaseWithdrawn, _now_sec: float) -> list[Action]:
    """Take a request back whose caller waits no longer."""
    for lane in state.lanes.values():
        lane.requests = [each for each in lane.requests if each.lease.id != event.id]
    return []


def lease_started(state: QueueState, event: ev.LeaseStarted, _now_sec: float) -> list[Action]:
    """Tell of a lease that PID 1 holds now."""
    found = _held(state, event.unit)
    if found is None:
        return []  # it is over already
    lane, lease = found
    if event.unit in lane.lent:
        return []  # a look at the manager was faster
    lane.lent.add(event.unit)
    return [Log("lease", "-", _fields(lease))]


def lease_refused(state: QueueState, event: ev.LeaseRefused, now_sec: float) -> list[Action]:
    """Free the slot of a lease that PID 1 refused; who waits is first in line again.

    A lane that is configured no more goes with its last unit, and a refused one has none to tell.
    """
    lease = event.lease
    lane = state.lanes.get(lease.lane)
    if lane:
        lane.leases.pop(lease.backing_unit, None)
        lane.occupants.pop(lease.backing_unit, None)
        refuse(state, lease.lane, event.reason, now_sec)
        if lease.lane not in state.config.lanes:
            if not lane.occupants and lease.lane not in state.asked.values():
                del state.lanes[lease.lane]
            return [_deny_unknown(lease)]
        if event.wait:
            lane.requests.insert(0, LeaseRequest(lease, wait=True))
            return []
    return [Deny(lease, (event.reason,))]


def lease_seen(state: QueueState, event: ev.LeaseSeen, _now_sec: float) -> list[Action]:
    """Take on a lease that is held since before this controller."""
    lease = event.lease
    lane = state.lanes.get(lease.lane)
    if lane is None:
        return []
    unit = lease.backing_unit
    is_known = unit in lane.lent and lane.leases.get(unit) == lease
    lane.leases[unit] = lease
    lane.lent.add(unit)
    lane.occupants.setdefault(unit, "")
    return [] if is_known else [Log("lease", "-", _fields(lease))]


def lease_passed(state: QueueState, event: ev.LeasePassed, now_sec: float) -> list[Action]:
    """Take note of who holds a lease now; nothing where it has ended meanwhile."""
    if _held(state, event.lease.backing_unit) is None:
        return []
    return lease_seen(state, ev.LeaseSeen(event.lease), now_sec)


def lease_parked(state: QueueState, event: ev.LeaseParked, _now_sec: float) -> list[Action]:
    """Take note of memory that a holder says it keeps after it lets go."""
    found = _held(state, event.unit)
    if found:
        lane, lease = found
        lane.parked = [parked for parked in lane.parked if parked.lease.id != lease.id]
        lane.parked.append(Parked(lease, event.memory_bytes))
    return []


def _held(state: QueueState, unit: str) -> tuple[LaneState, Lease] | None:
    for lane in state.lanes.values():
        if lease := lane.leases.get(unit):
            return lane, lease
    return None


def lease_revoked(state: QueueState, event: ev.LeaseRevoked, _now_sec: float) -> list[Action]:
    """Take note that somebody stopped a lease's unit while its holder had it."""
    found = _held(state, event.unit)
    return lease_ended(found[0], event.unit, revoked=True) if found else []


def lease_ended(lane: LaneState, unit: str, *, revoked: bool = False) -> list[Action]:
    """Tell of the end of a lease; nothing where its beginning was not told, or its end was.

    Its holder may use the lane yet: the next start needs a look of its own.
    """
    lease = lane.leases.pop(unit, None)
    if lease is None:
        return []
    lane.looked_sec = 0.0
    if unit not in lane.lent:
        return []
    lane.lent.discard(unit)
    how: dict[str, object] = {"revoked": True} if revoked else {}
    for parked in lane.parked:
        if parked.lease.id == lease.id:
            how["parked_bytes"] = parked.memory_bytes
    return [Log("lease-end", "-", {**_fields(lease), **how})]


def _fields(lease: Lease) -> dict[str, object]:
    return {
        "lane": lease.lane,
        "who": lease.who,
        "why": lease.why,
        "pid": lease.pid,
        "uid": lease.uid,
        "unit": lease.backing_unit,
    }


# In each step


def advance(state: QueueState) -> None:
    """Let requests move up: the jobs that were before them and are in line no more do not count."""
    for lane in state.lanes.values():
        for request in lane.requests:
            while request.behind and not _is_in_line(state, lane, request.behind[-1]):
                request.behind.pop()


def _is_in_line(state: QueueState, lane: LaneState, name: str) -> bool:
    """Say whether a job is in line, or out of it only for as long as a question takes."""
    return name in lane.line or state.asked.get(name) == lane.lane.name


def grant(state: QueueState, action: Grant) -> None:
    """Give a request its slot: from here its unit holds it. What its holder had parked it uses."""
    lane, owner = state.lanes[action.lease.lane], action.lease.owner
    lane.parked = [parked for parked in lane.parked if not is_holder(parked.lease, owner)]
    lane.requests = [each for each in lane.requests if each.lease is not action.lease]
    lane.leases[action.lease.backing_unit] = action.lease
    lane.occupants[action.lease.backing_unit] = ""


def answer_requests(state: QueueState, planned: Plan) -> Iterator[Action]:
    """Refuse the requests that could not be granted and do not wait; tell once why others wait,
    and when they do no longer."""
    for lane in state.lanes.values():
        for request in list(lane.requests):
            why = planned.leases[request.lease.id]
            if not request.wait:
                lane.requests.remove(request)
                yield Deny(request.lease, (why,))
            elif request.lease.id not in lane.told_waits:
                lane.told_waits[request.lease.id] = request.lease
                told = {**_fields(request.lease), "reason": str(why.code), "detail": why.detail}
                yield Log("lease-wait", "-", told)
        yield from _waits_no_more(lane)


def _waits_no_more(lane: LaneState) -> list[Action]:
    """Tell of those who wait no longer, of whom it was told that they do."""
    waiting = {request.lease.id for request in lane.requests}
    gone = [lease for key, lease in lane.told_waits.items() if key not in waiting]
    for lease in gone:
        del lane.told_waits[lease.id]
    return [Log("lease-wait-end", "-", _fields(lease)) for lease in gone]


def drop_requests(lane: LaneState) -> list[Action]:
    """Refuse all requests of a lane that is configured no more."""
    requests, lane.requests = lane.requests, []
    denied = [_deny_unknown(request.lease) for request in requests]
    return [*denied, *_waits_no_more(lane)]
