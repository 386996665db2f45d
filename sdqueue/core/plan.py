"""What starts next, and why the rest waits. Pure: it changes nothing and can be asked at any time.

`plan` looks at the heads of the lanes only, so its cost does not grow with the number of waiting
jobs. For each lane the rules of `RULES` are asked in their order; the first that says something is
the lane's block, and the reason of its head. `reason` gives every other queued job its own: there
is no queued job for which it has no answer, so there is no silent wait.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile

from sdqueue.core.actions import Check, Grant, Look, Measure, Start
from sdqueue.core.foreign import in_use, look_again_sec, needs_look
from sdqueue.core.lease import LeaseRequest
from sdqueue.core.model import (
    STARTS_MAX,
    Code,
    Job,
    LaneState,
    Phase,
    QueueState,
    Reason,
)
from sdqueue.words import names

CHECKS_MAX = 256
"""Jobs whose checks are asked by one unit."""

Step = Start | Check | Measure | Look | Grant


@dataclass(slots=True)
class Plan:
    """What to do now, and why the rest waits.

    `blocks` are of the lanes that have a job in line which can't start, `leases` of those that
    can't be granted, by id. `wake_sec` is the unix time at which something changes by itself, 0 if
    never.
    """

    steps: list[Step] = field(default_factory=list)
    blocks: dict[str, Reason] = field(default_factory=dict)
    leases: dict[str, Reason] = field(default_factory=dict)
    wake_sec: float = 0.0


@dataclass(slots=True)
class _Room:
    """Slots in use: those of the state, and those that the plan itself has given away."""

    held: dict[str, list[str]]
    total: int

    @classmethod
    def of(cls, state: QueueState) -> "_Room":
        held = {name: list(lane.occupants) for name, lane in state.lanes.items()}
        return cls(held, sum(map(len, held.values())))

    def take(self, lane: str, unit: str) -> None:
        self.held[lane].append(unit)
        self.total += 1


Rule = Callable[[QueueState, LaneState, _Room, Plan], Reason | None]


def _halted(state: QueueState, _lane: LaneState, _room: _Room, _plan: Plan) -> Reason | None:
    return state.halt


def _paused(_state: QueueState, lane: LaneState, _room: _Room, _plan: Plan) -> Reason | None:
    name = lane.lane.name
    return Reason(Code.PAUSED, f"lane {name} is paused", name) if lane.paused else None


def _refused(_state: QueueState, lane: LaneState, _room: _Room, _plan: Plan) -> Reason | None:
    return lane.refusal


def _taken(_state: QueueState, lane: LaneState, room: _Room, _plan: Plan) -> Reason | None:
    held = room.held[lane.lane.name]
    if len(held) < lane.lane.slots:
        return None
    name, unit = lane.lane.name, _foremost(lane, held)
    if lease := lane.leases.get(unit):
        return Reason(Code.LEASED, f"lane {name} is leased to {lease}", unit)
    return Reason(Code.LANE_TAKEN, f"lane {name} is taken by {unit}", unit)


def _excluded(state: QueueState, lane: LaneState, room: _Room, _plan: Plan) -> Reason | None:
    for other in sorted(excluding(state, lane)):
        if held := room.held.get(other):
            unit = _foremost(state.lanes[other], held)
            user = state.lanes[other].leases.get(unit, unit)
            return Reason(Code.EXCLUDED_LANE, f"lane {other} is in use by {user}", unit)
    return None


def _foremost(lane: LaneState, held: list[str]) -> str:
    """Pick the occupant to name as who is waited for: one that can be told of it before others."""
    return next((unit for unit in held if unit in lane.leases), held[0])


def excluding(state: QueueState, lane: LaneState) -> set[str]:
    """Name the lanes that never run with this one, also those that only their old units know."""
    name = lane.lane.name
    theirs = {other for other, held in state.lanes.items() if name in held.lane.excludes}
    return theirs | lane.lane.excludes


def _checking(_state: QueueState, lane: LaneState, room: _Room, _plan: Plan) -> Reason | None:
    unit = names.unit_of_checks(lane.lane.name)
    if unit in room.held[lane.lane.name]:
        return Reason(Code.CHECKING, "jobs before it are being checked", unit)
    return None


def _before(state: QueueState, lane: LaneState, room: _Room, plan: Plan) -> Reason | None:
    """Hold a lane back while one that goes before it waits for it, and for nothing else."""
    mine = set(room.held[lane.lane.name])
    for name, other in state.lanes.items():
        if lane.lane.name not in other.lane.before:
            continue
        block = plan.blocks.get(name)
        if block and block.code is Code.EXCLUDED_LANE and block.blocker in mine:
            return Reason(Code.BEFORE_LANE, f"lane {name} goes first", other.line.head() or name)
    return None


def _limited(_state: QueueState, _lane: LaneState, room: _Room, _plan: Plan) -> Reason | None:
    full = room.total >= STARTS_MAX
    return Reason(Code.START_LIMIT, f"{STARTS_MAX} starts are open") if full else None


def _owed(state: QueueState, lane: LaneState, _room: _Room, _plan: Plan) -> Reason | None:
    """Have a job wait for a lease that was asked for before it, and that no other job is before."""
    head = lane.line.head()
    since_sec = state.jobs[head].since_sec if head else 0.0
    name = lane.lane.name
    for other in (name, *sorted(excluding(state, lane))):
        if other in lane.lane.before or other not in state.lanes:
            continue
        for request in state.lanes[other].requests:
            if request.wait and not request.behind and request.lease.since_sec <= since_sec:
                lease = request.lease
                detail = f"{lease.who} asked for lane {other} before it"
                return Reason(Code.LEASED, detail, lease.backing_unit)
    return None


RULES: tuple[Rule, ...] = (
    _halted,
    _paused,
    _checking,
    _taken,
    _excluded,
    _refused,
    _before,
    _limited,
    _owed,
)

LEASE_RULES = tuple(rule for rule in RULES if rule not in (_paused, _owed))
"""A paused lane starts no jobs; what a person does there meanwhile may hold it."""


def _stopped_by(
    rules: Iterable[Rule], state: QueueState, lane: LaneState, room: _Room, planned: Plan
) -> Reason | None:
    """Ask rules in their order; the first that says something stops the rest."""
    return next(filter(None, (rule(state, lane, room, planned) for rule in rules)), None)


def plan(state: QueueState, now_sec: float) -> Plan:
    """Say which steps to take now, and for each lane the rule that stops the rest of it."""
    result, room = Plan(), _Room.of(state)
    for name in lane_order(state):
        _fill(state, state.lanes[name], room, result, now_sec)
    for lane in state.lanes.values():
        _lend(state, lane, room, result)
        _look_first(state, lane, result)
    result.wake_sec = _wake_sec(state, result, now_sec)
    return result


def _look_first(state: QueueState, lane: LaneState, result: Plan) -> None:
    """Have an idle lane looked at once after it was in use: is-free answers from what is known."""
    look = Look(lane.lane.name)
    idle = not state.halt and not lane.occupants and not lane.is_looking
    if idle and lane.lane.is_watched and not lane.looked_sec and look not in result.steps:
        result.steps.append(look)


def lane_order(state: QueueState) -> list[str]:
    """Order lanes so that each comes before those that it goes before."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in order or name in path:
            return
        for other in state.lanes.values():
            if name in other.lane.before:
                visit(other.lane.name, (*path, name))
        order.append(name)

    for name in state.lanes:
        visit(name, ())
    return order


def _fill(state: QueueState, lane: LaneState, room: _Room, result: Plan, now_sec: float) -> None:
    """Take from the head of one lane until a rule stops it."""
    name = lane.lane.name
    waiting = iter(lane.line)
    for head in waiting:
        job = state.jobs[head]
        block = _stopped_by(RULES, state, lane, room, result)
        block = block or _lingering(job, room)
        if block:
            result.blocks[name] = block
            return
        step = _step(state, lane, job, waiting, now_sec)
        if isinstance(step, Reason | Look):
            result.steps += [step] if isinstance(step, Look) else []
            result.blocks[name] = step if isinstance(step, Reason) else _looking(lane)
            return
        result.steps.append(step)
        if isinstance(step, Check):
            unit = names.unit_of_checks(name)
            room.take(name, unit)
            result.blocks[name] = Reason(Code.CHECKING, "jobs before it are being checked", unit)
            return
        room.take(name, job.unit)


def lease_block(state: QueueState, lane: LaneState, planned: Plan) -> Reason | None:
    """Say what keeps anybody from a lease on a lane now, but for those who want it already."""
    room = _Room.of(state)
    block = _stopped_by(LEASE_RULES, state, lane, room, planned)
    return block or _about_to_start(state, lane, planned)


def _lend(state: QueueState, lane: LaneState, room: _Room, result: Plan) -> None:
    """Grant the leases that are asked for and can be had, when all jobs have had their turn."""
    name, earlier = lane.lane.name, ""
    for request in lane.requests:
        lease = request.lease
        block = _stopped_by(LEASE_RULES, state, lane, room, result)
        block = block or _wanted(state, lane, request, result)
        if block is None and earlier:
            block = Reason(Code.LEASED, f"{earlier} asked for lane {name} before", earlier)
        if block:
            result.leases[lease.id] = block
            earlier = earlier or (lease.who if request.wait else "")
        else:
            result.steps.append(Grant(lease, request.wait))
            room.take(name, lease.backing_unit)


def _wanted(
    state: QueueState, lane: LaneState, request: LeaseRequest, planned: Plan
) -> Reason | None:
    """Say which job a lease has to come after: one that waits for the lane, or is just about to
    start in a lane that excludes it. What is adopted is there already, and is what they wait for.
    """
    if request.lease.adopted:
        return None
    head = request.behind[-1] if request.behind else lane.line.head()
    if head and not lane.paused and (request.behind or not request.wait):
        return Reason(Code.EARLIER_JOB, f"{head} waits for lane {lane.lane.name}", head)
    return _about_to_start(state, lane, planned)


def _about_to_start(state: QueueState, lane: LaneState, planned: Plan) -> Reason | None:
    for other in sorted(excluding(state, lane)):
        block = planned.blocks.get(other)
        if block and block.code is Code.CHECKING:
            return Reason(Code.EXCLUDED_LANE, f"a job is about to start in lane {other}", other)
    return None


def _lingering(job: Job, room: _Room) -> Reason | None:
    """Have a job wait for the unit of its own last run: a name can be had only once."""
    if not any(job.unit in held for held in room.held.values()):
        return None
    return Reason(Code.LANE_TAKEN, f"{job.unit} of its last run is not gone yet", job.unit)


def _looking(lane: LaneState) -> Reason:
    return in_use(lane) or Reason(Code.CHECKING, f"who uses lane {lane.lane.name} is looked at")


def _step(
    state: QueueState, lane: LaneState, job: Job, behind: Iterator[str], now_sec: float
) -> Step | Reason:
    """Say what to do next for the head of a lane, or who keeps it from that.

    Its checks come first: who is not to run does not wait for anybody.
    """
    if needs_check(state, job, now_sec):
        return Check(job.lane, (job.name, *_check_with(state, job, behind, now_sec)))
    if lane.is_looking:
        return _looking(lane)
    if needs_look(state, lane, now_sec):
        return Look(lane.lane.name)
    if user := in_use(lane):
        return user
    if needs_measure(job, now_sec):
        return Measure(job.name)
    return Start(job.name, job.attempt)


def _check_with(
    state: QueueState, first: Job, behind: Iterator[str], now_sec: float
) -> Iterator[str]:
    """Name the jobs right behind that can be checked in the same unit: same owner, in order."""

    def fits(name: str) -> bool:
        job = state.jobs[name]
        uid = job.spec.uid if job.spec else 0
        return uid == first_uid and needs_check(state, job, now_sec)

    first_uid = first.spec.uid if first.spec else 0
    return islice(takewhile(fits, behind), CHECKS_MAX - 1)


def needs_check(state: QueueState, job: Job, now_sec: float) -> bool:
    """Say whether DONE_IF or REQUIRES must be asked before the job may start.

    A verdict holds as long as the interval at which waiting jobs are asked again.
    """
    holds_sec = state.config.recheck_usec / 1e6
    fresh = job.checked_sec and 0.0 <= now_sec - job.checked_sec <= holds_sec
    return not fresh and job.spec is not None and bool(job.spec.done_if or job.spec.requires)


MEASURE_SECONDS = 1.0
"""So long does a look at memory and disk hold: what starts meanwhile takes some."""


def needs_measure(job: Job, now_sec: float) -> bool:
    """Say whether memory or disk must be looked at before the job may start."""
    fresh = job.measured_sec and 0.0 <= now_sec - job.measured_sec <= MEASURE_SECONDS
    return not fresh and job.spec is not None and bool(job.spec.memory or job.spec.disk)


def _wake_sec(state: QueueState, result: Plan, now_sec: float) -> float:
    """Find the next time at which something changes by itself; 0 if never."""
    times = [state.timers[0][0]] if state.timers else []
    times += [lane.recheck_sec for lane in state.lanes.values() if lane.recheck_sec]
    blocks = result.blocks
    times += [look_again_sec(state, lane, blocks.get(name)) for name, lane in state.lanes.items()]
    times += [lane.refusal.until_sec for lane in state.lanes.values() if lane.refusal]
    return min((max(time, now_sec) for time in times if time), default=0.0)


def reason(state: QueueState, job: Job, planned: Plan) -> Reason | None:
    """Say why a queued job does not run: total. None if and only if it is not queued."""
    return _REASONS[job.phase](state, job, planned) if job.phase in _REASONS else None


def _own(_state: QueueState, job: Job, _planned: Plan) -> Reason:
    assert job.wait is not None, f"{job.name} is aside without a reason"
    return job.wait


def _asked(_state: QueueState, _job: Job, _planned: Plan) -> Reason:
    return Reason(Code.CHECKING, "its DONE_IF and REQUIRES are being asked")


def _looked_at(_state: QueueState, _job: Job, _planned: Plan) -> Reason:
    return Reason(Code.CHECKING, "memory and disk are being looked at")


def _leaving(_state: QueueState, _job: Job, _planned: Plan) -> Reason:
    return Reason(Code.STARTS_NOW, "it is on its way out of the queue")


def _in_line(state: QueueState, job: Job, planned: Plan) -> Reason:
    lane = state.lanes[job.lane]
    head = lane.line.head()
    if any(isinstance(step, Start) and step.name == job.name for step in planned.steps):
        return Reason(Code.STARTS_NOW, "it is about to start")
    if job.gate:
        return job.gate
    if head == job.name and job.lane in planned.blocks:
        return planned.blocks[job.lane]
    if head == job.name:
        return Reason(Code.CHECKING, "its checks are about to be asked")
    return Reason(Code.EARLIER_JOB, f"{head} is before it in lane {job.lane}", head or "")


_REASONS: dict[Phase, Callable[[QueueState, Job, Plan], Reason]] = {
    Phase.ASIDE: _own,
    Phase.CHECKING: _asked,
    Phase.MEASURING: _looked_at,
    Phase.LEAVING: _leaving,
    Phase.IN_LINE: _in_line,
}
