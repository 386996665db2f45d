"""Where a queued job stands: in its lane's line, or aside with a reason of its own.

Every way into the queue and back into the line ends in `place`; every way out in `withdraw`.
What ends a wait is kept where it can be found without looking at all jobs: names that come after
a name in `successors`, times in a heap, gates in their lane.
"""

from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush

from sdqueue.core.actions import Action, Log
from sdqueue.core.model import (
    GATES,
    PASSING,
    Code,
    Job,
    JobState,
    LaneState,
    Phase,
    QueueState,
    Reason,
)
from sdqueue.core.spec import JobSpec

Obstacle = Callable[[QueueState, Job, JobSpec, float], Reason | None]


def _bad_file(state: QueueState, _job: Job, spec: JobSpec, _now_sec: float) -> Reason | None:
    if spec.lane in state.config.lanes:
        return None
    lanes = ", ".join(state.config.lanes)
    return Reason(Code.BAD_FILE, f"no lane {spec.lane!r} is configured (there are {lanes})")


def _after(state: QueueState, _job: Job, spec: JobSpec, _now_sec: float) -> Reason | None:
    for name in spec.after:
        if name in state.jobs or state.ended.get(name) is not JobState.DONE:
            return Reason(Code.AFTER_NOT_DONE, f"{name} is {_whereabouts(state, name)}", name)
    for name in spec.after_any:
        if name in state.jobs:
            return Reason(Code.AFTER_NOT_DONE, f"{name} is {_whereabouts(state, name)}", name)
    return None


def _whereabouts(state: QueueState, name: str) -> str:
    if name in state.jobs:
        return state.jobs[name].state
    return state.ended.get(name, "not there")


def _not_before(_state: QueueState, _job: Job, spec: JobSpec, now_sec: float) -> Reason | None:
    until = spec.not_before_sec
    return Reason(Code.NOT_BEFORE, "its time has not come", "", until) if until > now_sec else None


def _retry(_state: QueueState, job: Job, _spec: JobSpec, now_sec: float) -> Reason | None:
    until = job.memory.retry_sec
    detail = f"attempt {job.memory.attempts} failed"
    return Reason(Code.RETRY_DELAY, detail, "", until) if until > now_sec else None


OBSTACLES: tuple[Obstacle, ...] = (_bad_file, _after, _not_before, _retry)
"""Asked in this order; the first that says something keeps the job out of the line."""


def place(state: QueueState, job: Job, now_sec: float) -> list[Action]:
    """Put a queued job in its line, or aside with the reason that keeps it out."""
    wait = _obstacle(state, job, now_sec)
    if wait:
        return set_aside(state, job, wait)
    lane = state.lanes[job.lane]
    lane.gated.discard(job.name)
    job.wait = None
    if job.name in state.asked:
        job.phase, job.is_stale = Phase.CHECKING, True
        return []
    job.phase = Phase.IN_LINE
    lane.line.add(job.name, job.rank)
    return []


def _obstacle(state: QueueState, job: Job, now_sec: float) -> Reason | None:
    if job.spec is None:
        return Reason(Code.BAD_FILE, job.problem)
    spec = job.spec
    return next(filter(None, (ask(state, job, spec, now_sec) for ask in OBSTACLES)), None)


def set_aside(state: QueueState, job: Job, wait: Reason) -> list[Action]:
    """Keep a queued job out of its line, for a reason of its own."""
    lane = state.lanes.get(job.lane)
    if lane:
        lane.line.discard(job.name)
        lane.gated.discard(job.name)
        if wait.code in GATES:
            lane.gated.add(job.name)
    if wait.until_sec and not (job.wait and job.wait.until_sec == wait.until_sec):
        heappush(state.timers, (wait.until_sec, job.name))
    job.phase, job.wait = Phase.ASIDE, wait
    job.checked_sec = job.measured_sec = 0.0
    return announce(job, wait)


def announce(job: Job, wait: Reason) -> list[Action]:
    """Log why a job waits, where the code of its reason is not the one that was logged last."""
    if job.announced is wait.code or wait.code in PASSING:
        return []
    job.announced = wait.code
    fields: dict[str, object] = {"reason": str(wait.code), "detail": wait.detail}
    return [Log("wait", job.name, {**fields, "lane": job.lane})]


def enter(state: QueueState, job: Job, now_sec: float) -> list[Action]:
    """Take a job into the queue, and let those that come after it know."""
    state.jobs[job.name] = job
    _cap_retry(job, now_sec)
    for name in _predecessors(job):
        state.successors.setdefault(name, set()).add(job.name)
    return place(state, job, now_sec) + replace_successors(state, job.name, now_sec)


def withdraw(state: QueueState, job: Job) -> None:
    """Take a job out of its line, out of the gates and out of the successors."""
    if job.phase is Phase.MEASURING:
        vacate(state, job)
    if lane := state.lanes.get(job.lane):
        lane.line.discard(job.name)
        lane.gated.discard(job.name)
    for name in _predecessors(job):
        waiting = state.successors.get(name, set())
        waiting.discard(job.name)
        if not waiting:
            state.successors.pop(name, None)


def leave(state: QueueState, job: Job, now_sec: float) -> list[Action]:
    """Forget a job whose file is gone, and let those that come after it know."""
    withdraw(state, job)
    del state.jobs[job.name]
    return replace_successors(state, job.name, now_sec)


def occupy(state: QueueState, job: Job) -> None:
    """Have a job's unit hold a slot of its lane."""
    if lane := state.lanes.get(job.lane):
        lane.occupants[job.unit] = job.name


def vacate(state: QueueState, job: Job) -> None:
    """Free the slot that a job's unit held."""
    for lane in state.lanes.values():
        lane.occupants.pop(job.unit, None)


def _predecessors(job: Job) -> tuple[str, ...]:
    return (*job.spec.after, *job.spec.after_any) if job.spec else ()


def replace_successors(state: QueueState, name: str, now_sec: float) -> list[Action]:
    """Place those anew that come after a job whose whereabouts have changed."""
    actions: list[Action] = []
    for successor in sorted(state.successors.get(name, ())):
        job = state.jobs[successor]
        if job.phase in (Phase.IN_LINE, Phase.ASIDE) and not _is_gated(job):
            actions += place(state, job, now_sec)
    return actions


def _is_gated(job: Job) -> bool:
    return job.wait is not None and job.wait.code in GATES


def reopen_gates(state: QueueState, lane: LaneState, now_sec: float) -> list[Action]:
    """Put the jobs whose gates said no back in line, so that they are asked again."""
    lane.recheck_sec, lane.reopened_sec = 0.0, now_sec
    actions: list[Action] = []
    for name in sorted(lane.gated):
        actions += place(state, state.jobs[name], now_sec)
    return actions


GATES_SECONDS = 1.0
"""Changes have gates asked again at most this often: a burst of them is one change."""


def ask_gates(state: QueueState, now_sec: float) -> list[Action]:
    """Ask all gates again, at once or soon: something changed that they may have waited for."""
    actions: list[Action] = []
    for lane in state.lanes.values():
        if not lane.gated:
            continue
        if 0.0 <= now_sec - lane.reopened_sec < GATES_SECONDS:
            lane.recheck_sec = min(lane.recheck_sec, lane.reopened_sec + GATES_SECONDS)
        else:
            actions += reopen_gates(state, lane, now_sec)
    return actions


def close_gate(state: QueueState, job: Job, gate: Reason, now_sec: float) -> list[Action]:
    """Set a job aside whose gate said no, and see to it that it is asked again in time."""
    obstacle = _obstacle(state, job, now_sec)
    if obstacle:
        return set_aside(state, job, obstacle)
    lane = state.lanes[job.lane]
    due = now_sec + state.config.recheck_usec / 1e6
    lane.recheck_sec = min(filter(None, (lane.recheck_sec, due)))
    job.gate = replace(gate, since_sec=job.gate.since_sec if job.gate else now_sec)
    return set_aside(state, job, job.gate)


def refuse(state: QueueState, lane_name: str, why: Reason, now_sec: float) -> None:
    """Have a lane wait after a refusal: until its blocker is gone, but never without an end.

    The blocker may be gone already, or its end may never be told; and where there is none, the same
    refusal is tried for at growing intervals.
    """
    lane = state.lanes.get(lane_name)
    if lane is None:
        return
    longest = state.config.recheck_usec / 1e6
    pause = longest if why.blocker else min(longest, 2.0 ** min(lane.refusals, 30))
    lane.refusals += not why.blocker
    lane.refusal = replace(why, until_sec=max(why.until_sec, now_sec + pause))


def ring(state: QueueState, now_sec: float) -> list[Action]:
    """Place those anew whose time has come."""
    actions: list[Action] = []
    while state.timers and state.timers[0][0] <= now_sec:
        _, name = heappop(state.timers)
        job = state.jobs.get(name)
        if job and job.phase is Phase.ASIDE and job.wait and job.wait.until_sec:
            actions += place(state, job, now_sec)
    return actions


def put_back(state: QueueState, now_sec: float) -> list[Action]:
    """Shorten waits that a clock that was set back would make longer than they were meant to be."""
    actions: list[Action] = []
    for job in list(state.jobs.values()):
        if job.phase is not Phase.ASIDE or not job.wait or not job.wait.until_sec:
            continue
        _cap_retry(job, now_sec)
        actions += place(state, job, now_sec)
    return actions


def _cap_retry(job: Job, now_sec: float) -> None:
    """Let no retry be further off than RETRY_DELAY, whatever the clock said when it was set."""
    latest = now_sec + (job.spec.retry_delay_usec / 1e6 if job.spec else 0.0)
    if job.memory.retry_sec > latest:
        job.memory = replace(job.memory, retry_sec=latest)
