"""How the queue changes: one event in, the actions that follow out. No I/O, no clock.

Theory of operation. A job is a small machine whose phases are `model.Phase`; `TRANSITIONS` says for
each (phase, event) which function takes it on. What is not in the table but in `IGNORED` is news
that came too late to matter (a check's verdict about a file that is gone). Anything else can't
happen: it raises, the controller dies, systemd starts it again, and it reconciles.

A job with no checks, played through:

    FileQueued            (none)   → IN_LINE
      decide(): Start     IN_LINE  → CLAIMING   (its unit counts as the lane's occupant from here)
    Claimed, Started      CLAIMING → ACTIVE
    Ended(rc 0)           ACTIVE   → SETTLING   (Settle: record, memory, file; each durable)
    UnitGone                                    (the lane's slot is free; in any order with Settled)
    Settled               SETTLING → (none)     `ended` has its name now

To be kept in step by hand: a job in IN_LINE is in its lane's line and nowhere else; a job in
CLAIMING or later has its unit among its lane's occupants until its run has ended (and DONE_IF was
asked, where it is) *and* PID 1 has forgotten the unit, in either order; or until Refused or Lost.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Log, Park, Settle, Skip, StopUnit, Verify
from sdqueue.core.lanes import QUEUE_HANDLERS, take_answer
from sdqueue.core.model import (
    FORGET,
    Code,
    Job,
    JobState,
    Memory,
    Phase,
    QueueState,
    Reason,
)
from sdqueue.core.placing import (
    ask_gates,
    close_gate,
    enter,
    occupy,
    place,
    refuse,
    replace_successors,
    set_aside,
    vacate,
    withdraw,
)
from sdqueue.core.results import ASK_DONE_IF, SPENDS, Outcome, Verdict, after_done_if, judge


class ImpossibleTransition(AssertionError):
    """An event that can't happen in this phase: a bug, never a person's mistake."""


def apply(state: QueueState, event: ev.Event, now_sec: float) -> list[Action]:
    """Take one event on: change the state, and say what must be done because of it."""
    on_queue = QUEUE_HANDLERS.get(type(event))
    if on_queue:
        return on_queue(state, event, now_sec)
    if isinstance(event, ANSWERS):
        take_answer(state, event.name)
    job = state.jobs.get(getattr(event, "name"))  # noqa: B009  (every JobEvent has a name)
    key = (job.phase if job else None, type(event))
    if key in IGNORED:
        return []
    if key not in TRANSITIONS:
        raise ImpossibleTransition(f"{type(event).__name__} for a job that is {key[0]}: {event}")
    return TRANSITIONS[key](state, job, event, now_sec)


# Files in queue/ and running/


def _file_queued(
    state: QueueState, _job: None, event: ev.FileQueued, now_sec: float
) -> list[Action]:
    job = Job(event.name, event.spec, Phase.IN_LINE, now_sec, event.memory)
    job.problem = event.problem
    return enter(state, job, now_sec) + ask_gates(state, now_sec)


def _file_changed(
    state: QueueState, job: Job, event: ev.FileQueued, now_sec: float
) -> list[Action]:
    same = (job.spec, job.problem, job.memory) == (event.spec, event.problem, event.memory)
    if same and job.phase is not Phase.ASIDE:
        return []
    withdraw(state, job)
    if job.spec != event.spec:
        job.gate = None
    job.spec, job.problem, job.memory = event.spec, event.problem, event.memory
    job.checked_sec = job.measured_sec = 0.0
    return enter(state, job, now_sec)


def _file_running(
    state: QueueState, job: Job | None, event: ev.FileRunning, now_sec: float
) -> list[Action]:
    if job:
        withdraw(state, job)
    spec = event.spec
    found = Job(event.name, spec, Phase.UNKNOWN, now_sec, event.memory, run=event.run)
    found.started_sec, found.cancel_uid = event.started_sec, event.cancel_uid
    state.jobs[event.name] = found
    occupy(state, found)
    return []


def _file_again(_state: QueueState, job: Job, event: ev.FileQueued, now_sec: float) -> list[Action]:
    """Keep a name that was queued anew while its job is still on its way."""
    job.reseeded = Job(event.name, event.spec, Phase.IN_LINE, now_sec, event.memory)
    job.reseeded.problem = event.problem
    return []


def _file_gone_again(
    _state: QueueState, job: Job, _event: ev.FileGone, _now_sec: float
) -> list[Action]:
    job.reseeded = None
    return []


def _file_gone(state: QueueState, job: Job, _event: ev.FileGone, now_sec: float) -> list[Action]:
    return _leave(state, job, now_sec)


def _leave(state: QueueState, job: Job, now_sec: float) -> list[Action]:
    withdraw(state, job)
    del state.jobs[job.name]
    return replace_successors(state, job.name, now_sec)


# Checks before a start


UNREACHED_MAX = 3
"""So often in a row may a job's checks end without an answer, though it was the first asked."""


def _checked(state: QueueState, job: Job, event: ev.Checked, now_sec: float) -> list[Action]:
    if job.is_stale:
        return _ask_anew(state, job, now_sec)
    job.unreached = 0
    if event.done:
        withdraw(state, job)
        job.phase = Phase.LEAVING
        return [Skip(job.name)]
    if event.gate:
        return close_gate(state, job, event.gate, now_sec)
    job.checked_sec, job.gate = now_sec, None
    return place(state, job, now_sec)


def _not_checked(
    state: QueueState, job: Job, _event: ev.NotChecked, now_sec: float
) -> list[Action]:
    if job.is_stale:
        return _ask_anew(state, job, now_sec)
    if job.unreached >= UNREACHED_MAX:
        job.unreached = 0
        gate = Reason(Code.CHECK_FAILED, "its checks ended without an answer")
        return close_gate(state, job, gate, now_sec)
    return place(state, job, now_sec)


def _measured(state: QueueState, job: Job, event: ev.Measured, now_sec: float) -> list[Action]:
    vacate(state, job)
    if event.shortage:
        return close_gate(state, job, event.shortage, now_sec)
    job.measured_sec, job.gate = now_sec, None
    return place(state, job, now_sec)


def _measured_stale(
    state: QueueState, job: Job, _event: ev.Measured, now_sec: float
) -> list[Action]:
    return _ask_anew(state, job, now_sec)


def _ask_anew(state: QueueState, job: Job, now_sec: float) -> list[Action]:
    """Put a job in line of whose older file an answer came."""
    job.is_stale = False
    return place(state, job, now_sec)


# The start


def _claimed(_state: QueueState, job: Job, event: ev.Claimed, now_sec: float) -> list[Action]:
    job.run, job.since_sec = event.run, now_sec
    job.reseeded = None  # a file that was seen in queue/ until now is the one that was claimed
    return []


def _not_claimed(state: QueueState, job: Job, event: ev.NotClaimed, now_sec: float) -> list[Action]:
    vacate(state, job)
    if event.gone:
        return _leave(state, job, now_sec)
    if job.cancel_uid is not None:
        return _park(state, job, job.cancel_uid)
    detail = "its file could not be moved to running/"
    return set_aside(state, job, Reason(Code.TROUBLE, detail, "", now_sec + CLAIM_SECONDS))


CLAIM_SECONDS = 5.0
"""How long a job whose file could not be claimed waits before that is tried again."""


def _started(_state: QueueState, job: Job, event: ev.Started, now_sec: float) -> list[Action]:
    job.phase = Phase.ACTIVE
    job.unit_job, job.invocation = event.unit_job, event.invocation
    return [_log_start(job, event.pid, now_sec), *_stop_if_canceled(job)]


def _log_start(job: Job, pid: int, now_sec: float) -> Log:
    job.announced = None
    job.started_sec = job.since_sec = now_sec
    fields: dict[str, object] = {
        "lane": job.lane,
        "pid": pid,
        "attempt": job.attempt,
        "unit": job.unit,
        "invocation": job.invocation,
    }
    return Log("start", job.name, fields)


def _refused(state: QueueState, job: Job, event: ev.Refused, now_sec: float) -> list[Action]:
    vacate(state, job)
    refuse(state, job.lane, event.reason, now_sec)
    job.measured_sec = 0.0
    if job.cancel_uid is not None:
        return _park(state, job, job.cancel_uid)
    return place(state, job, now_sec)


def _reattached(_state: QueueState, job: Job, event: ev.Reattached, now_sec: float) -> list[Action]:
    before, job.phase = job.phase, Phase.ACTIVE
    job.unit_job, job.invocation = event.unit_job, event.invocation
    job.is_unit_gone = False
    told: list[Action] = []
    if before is Phase.CLAIMING:
        told.append(_log_start(job, 0, now_sec))
    elif before is Phase.UNKNOWN:
        told.append(Log("reattached", job.name, {"unit": job.unit}))
    return [*told, *_stop_if_canceled(job)]


# The end


def _ended(state: QueueState, job: Job, event: ev.Ended, now_sec: float) -> list[Action]:
    told: list[Action] = []
    if job.phase is Phase.CLAIMING and event.end.main_code:
        job.invocation = event.end.invocation
        told.append(_log_start(job, 0, now_sec))
    job.end, job.outcome = event.end, judge(event.end)
    verdict = job.outcome.verdict
    if verdict is Verdict.SHUTDOWN and job.cancel_uid is None:
        job.phase = Phase.UNKNOWN
        return told
    if verdict is Verdict.UNBUILDABLE:
        job.is_unit_gone = True
    if verdict in ASK_DONE_IF and event.end.has_done_if:
        job.phase = Phase.VERIFYING
        occupy(state, job)
        return [*told, Verify(job.name)]
    return [*told, *_settle(state, job, job.outcome, now_sec)]


def _verified(state: QueueState, job: Job, event: ev.Verified, now_sec: float) -> list[Action]:
    assert job.outcome is not None, f"{job.name} is verified without having ended"
    job.outcome = after_done_if(job.outcome, holds=event.holds)
    return _settle(state, job, job.outcome, now_sec)


def _settle(state: QueueState, job: Job, outcome: Outcome, now_sec: float) -> list[Action]:
    """Decide where the job goes from the run's outcome, and have it written down."""
    to, word, memory = _destination(job, outcome, now_sec)
    job.phase = Phase.SETTLING
    if job.is_unit_gone:
        vacate(state, job)
    if lane := state.lanes.get(job.lane):
        lane.refusals = lane.refusals if outcome.verdict is Verdict.ENVIRONMENT else 0
    if outcome.verdict is Verdict.ENVIRONMENT:
        refuse(state, job.lane, Reason(Code.REFUSED, outcome.words), now_sec)
    return [
        Settle(
            job.name,
            job.run,
            to,
            word,
            job.attempt,
            memory,
            outcome.words,
            job.cancel_uid,
            outcome,
            job.end,
        )
    ]


def _destination(job: Job, outcome: Outcome, now_sec: float) -> tuple[JobState, str, Memory]:
    if outcome.success:
        return JobState.DONE, "done", FORGET
    if job.cancel_uid is not None:
        return JobState.PARKED, "canceled", FORGET
    if outcome.verdict is Verdict.STOPPED:
        return JobState.PARKED, "parked", FORGET
    if outcome.verdict not in SPENDS:
        return JobState.QUEUED, "recovered", job.memory
    last = job.spec is None or job.attempt >= job.spec.attempts_max
    if last or outcome.verdict is Verdict.UNBUILDABLE:
        return JobState.FAILED, "failed", FORGET
    delay_usec = job.spec.retry_delay_usec if job.spec else 0
    again = now_sec + delay_usec / 1e6 if delay_usec else 0.0
    return JobState.QUEUED, "retry", Memory(job.attempt, 0, again)


def _lost(state: QueueState, job: Job, event: ev.Lost, _now_sec: float) -> list[Action]:
    """Take a job back whose run left neither a unit nor a result: the attempt is not spent."""
    vacate(state, job)
    interrupted = job.memory.interrupted + event.reboot
    memory = replace(job.memory, interrupted=interrupted)
    to, word, note = JobState.QUEUED, "recovered", event.note
    if job.cancel_uid is not None:
        to, word, memory = JobState.PARKED, "canceled", FORGET
    elif interrupted >= state.config.interrupted_max:
        note = f"interrupted {interrupted} times in a row: {event.note}"
        to, word, memory = JobState.PARKED, "parked", FORGET
    job.phase, job.outcome = Phase.SETTLING, None
    return [Settle(job.name, job.run, to, word, job.attempt, memory, note, job.cancel_uid)]


def _settled(state: QueueState, job: Job, event: ev.Settled, now_sec: float) -> list[Action]:
    action, again = event.action, job.reseeded
    if event.vanished:
        left = _leave(state, job, now_sec)
        return left + enter(state, again, now_sec) if again else left
    withdraw(state, job)
    del state.jobs[job.name]
    actions: list[Action] = [_log_end(job, action, now_sec)]
    back = isinstance(action, Settle) and action.to is JobState.QUEUED
    if back and not event.superseded:
        actions += _queue_again(state, job, action.memory, now_sec)  # type: ignore[union-attr]
        return actions + ask_gates(state, now_sec)
    if not back:
        state.ended[job.name] = _END_STATES.get(type(action)) or action.to  # type: ignore[union-attr]
    if again:
        again.memory = FORGET
        actions += enter(state, again, now_sec)
    else:
        actions += replace_successors(state, job.name, now_sec)
    return actions + ask_gates(state, now_sec)


def _queue_again(state: QueueState, job: Job, memory: Memory, now_sec: float) -> list[Action]:
    """Take a job back that has another attempt, unless somebody cancelled it meanwhile."""
    again = job.reseeded or Job(job.name, job.spec, Phase.IN_LINE, now_sec, memory)
    actions = enter(state, again, now_sec)
    if job.cancel_uid is not None and not job.reseeded:
        actions += _park(state, again, job.cancel_uid)
    return actions


_END_STATES: dict[type, JobState] = {Skip: JobState.DONE, Park: JobState.PARKED}


def _log_end(job: Job, action: Settle | Skip | Park, now_sec: float) -> Log:
    if isinstance(action, Skip):
        return Log("skipped", job.name, {"note": "DONE_IF is true already", "lane": job.lane})
    if isinstance(action, Park):
        return Log("canceled", job.name, {"by": action.uid, "lane": job.lane})
    fields: dict[str, object] = {"lane": job.lane, "attempt": action.attempt, "note": action.note}
    if action.by is not None:
        fields["by"] = action.by
    if action.outcome and action.end:
        fields["rc"] = action.outcome.rc
        fields["verified"] = action.outcome.verified
        fields["result"] = action.end.service_result or action.end.job_result
        fields["seconds"] = _seconds(job, action.end.ended_sec or now_sec)
    return Log(action.word, job.name, fields)


def _seconds(job: Job, ended_sec: float) -> float | None:
    return round(max(0.0, ended_sec - job.started_sec), 3) if job.started_sec else None


# Cancel


def _cancel_queued(
    state: QueueState, job: Job, event: ev.CancelAsked, _now_sec: float
) -> list[Action]:
    return _park(state, job, event.uid)


def _park(state: QueueState, job: Job, uid: int) -> list[Action]:
    withdraw(state, job)
    job.phase = Phase.LEAVING
    return [Park(job.name, uid)]


def _cancel_running(
    _state: QueueState, job: Job, event: ev.CancelAsked, _now_sec: float
) -> list[Action]:
    job.cancel_uid = event.uid
    return _stop_if_canceled(job) if job.phase is Phase.ACTIVE else []


def _stop_if_canceled(job: Job) -> list[Action]:
    return [StopUnit(job.unit)] if job.cancel_uid is not None else []


ANSWERS = (ev.Checked, ev.NotChecked, ev.Measured)

# The tables. `Any` is the event: the key says which it is.

Handler = Callable[[QueueState, Any, Any, float], list[Action]]

WAITING = (Phase.IN_LINE, Phase.ASIDE, Phase.CHECKING, Phase.MEASURING)
RUNS = (Phase.UNKNOWN, Phase.CLAIMING, Phase.ACTIVE)
ON_THE_WAY = (Phase.LEAVING, *RUNS, Phase.VERIFYING, Phase.SETTLING)

TRANSITIONS: dict[tuple[Phase | None, type], Handler] = {
    (None, ev.FileQueued): _file_queued,
    **{(phase, ev.FileQueued): _file_changed for phase in WAITING},
    **{(phase, ev.FileRunning): _file_running for phase in (None, *WAITING)},
    **{(phase, ev.FileQueued): _file_again for phase in ON_THE_WAY},
    **{(phase, ev.FileGone): _file_gone for phase in WAITING},
    **{(phase, ev.FileGone): _file_gone_again for phase in ON_THE_WAY},
    (Phase.CHECKING, ev.Checked): _checked,
    (Phase.CHECKING, ev.NotChecked): _not_checked,
    (Phase.MEASURING, ev.Measured): _measured,
    (Phase.CHECKING, ev.Measured): _measured_stale,
    (Phase.CLAIMING, ev.Claimed): _claimed,
    (Phase.CLAIMING, ev.NotClaimed): _not_claimed,
    (Phase.CLAIMING, ev.Started): _started,
    (Phase.CLAIMING, ev.Refused): _refused,
    **{(phase, ev.Reattached): _reattached for phase in RUNS},
    **{(phase, ev.Lost): _lost for phase in RUNS},
    **{(phase, ev.Ended): _ended for phase in RUNS},
    (Phase.VERIFYING, ev.Verified): _verified,
    **{(phase, ev.Settled): _settled for phase in (Phase.SETTLING, Phase.LEAVING)},
    **{(phase, ev.CancelAsked): _cancel_queued for phase in WAITING},
    **{(phase, ev.CancelAsked): _cancel_running for phase in (*RUNS, Phase.VERIFYING)},
    (Phase.SETTLING, ev.CancelAsked): _cancel_running,
}

_LATE: dict[type, tuple[Phase | None, ...]] = {
    ev.FileRunning: ON_THE_WAY,
    ev.FileGone: (None,),
    ev.Checked: tuple({None, *Phase} - {Phase.CHECKING}),
    ev.NotChecked: tuple({None, *Phase} - {Phase.CHECKING}),
    ev.Measured: tuple({None, *Phase} - {Phase.MEASURING, Phase.CHECKING}),
    ev.Started: (None, Phase.ACTIVE, Phase.VERIFYING, Phase.SETTLING),
    ev.Reattached: (None, Phase.VERIFYING, Phase.SETTLING),
    ev.Lost: (None, Phase.VERIFYING, Phase.SETTLING),
    ev.Ended: (None, Phase.VERIFYING, Phase.SETTLING),
    ev.Verified: (None, Phase.SETTLING),
    ev.Settled: (None,),
    ev.CancelAsked: (None, Phase.LEAVING),
}

IGNORED: frozenset[tuple[Phase | None, type]] = frozenset(
    (phase, event) for event, phases in _LATE.items() for phase in phases
)
"""News that came too late to matter."""
