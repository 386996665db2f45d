"""A run from its start to its end: what becomes of a job that leaves the queue for PID 1.

One function for each event that `apply.TRANSITIONS` has for such a job; it knows no file and no
bus. What the end of a run means is in `results`; here is where its job goes then.
"""

from dataclasses import replace

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Log, Park, Relook, Settle, Skip, StopUnit, Verify
from sdqueue.core.byhand import vanished
from sdqueue.core.hooks import hooks_of
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
    enter,
    leave,
    occupy,
    place,
    refuse,
    replace_successors,
    set_aside,
    vacate,
    withdraw,
)
from sdqueue.core.results import ASK_DONE_IF, SPENDS, Outcome, Verdict, after_done_if, judge

# The start


def claimed(state: QueueState, job: Job, event: ev.Claimed, now_sec: float) -> list[Action]:
    """Take note that the file is in running/, and of the number of the run."""
    state.troubles_told.clear()
    job.run, job.since_sec = event.run, now_sec
    # What was seen in queue/ until now may be the file that was claimed, or one put there since.
    return _look_anew(job)


def _look_anew(job: Job) -> list[Action]:
    """Have a name looked at of which something was seen in queue/ while its job was on its way."""
    seen, job.reseeded = job.reseeded, None
    return [Relook(job.name)] if seen else []


def not_claimed(state: QueueState, job: Job, event: ev.NotClaimed, now_sec: float) -> list[Action]:
    """Put a job back whose file stayed in queue/; it is tried again after a while."""
    vacate(state, job)
    if event.gone:
        return [*vanished(state, job), *leave(state, job, now_sec), *_look_anew(job)]
    if job.cancel_uid is not None:
        return park(state, job, job.cancel_uid)
    detail = "its file could not be moved to running/"
    aside = set_aside(state, job, Reason(Code.TROUBLE, detail, "", now_sec + CLAIM_SECONDS))
    return [*aside, *_look_anew(job)]


CLAIM_SECONDS = 5.0
"""How long a job whose file could not be claimed waits before that is tried again."""


def started(_state: QueueState, job: Job, event: ev.Started, now_sec: float) -> list[Action]:
    """Take note that PID 1 holds the lane for the job now."""
    job.phase = Phase.ACTIVE
    job.unit_job, job.invocation = event.unit_job, event.invocation
    return [_log_start(job, event.pid, now_sec), *stop_if_canceled(job)]


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


def refused(state: QueueState, job: Job, event: ev.Refused, now_sec: float) -> list[Action]:
    """Put a job back that PID 1 did not take, and have its lane wait."""
    vacate(state, job)
    refuse(state, job.lane, event.reason, now_sec)
    job.measured_sec = 0.0
    if job.cancel_uid is not None:
        return park(state, job, job.cancel_uid)
    return [*place(state, job, now_sec), *_look_anew(job)]


def reattached(_state: QueueState, job: Job, event: ev.Reattached, now_sec: float) -> list[Action]:
    """Take a unit for the run of a job that was thought to run."""
    before, job.phase = job.phase, Phase.ACTIVE
    job.unit_job, job.invocation = event.unit_job, event.invocation
    job.is_unit_gone = False
    told: list[Action] = []
    if before is Phase.CLAIMING:
        told.append(_log_start(job, 0, now_sec))
    elif before is Phase.UNKNOWN:
        told.append(Log("reattached", job.name, {"unit": job.unit}))
    return [*told, *stop_if_canceled(job)]


# The end


def ended(state: QueueState, job: Job, event: ev.Ended, now_sec: float) -> list[Action]:
    """Judge the end of a run, and ask DONE_IF after a failure before anything is settled."""
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


def verified(state: QueueState, job: Job, event: ev.Verified, now_sec: float) -> list[Action]:
    """Settle a failed run by DONE_IF's answer."""
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


def lost(state: QueueState, job: Job, event: ev.Lost, _now_sec: float) -> list[Action]:
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


def settled(state: QueueState, job: Job, event: ev.Settled, now_sec: float) -> list[Action]:
    """Let a job go whose end is on disk: it has ended, or is queued again."""
    action, again = event.action, job.reseeded
    if event.vanished:
        left = [*vanished(state, job), *leave(state, job, now_sec)]
        return left + enter(state, again, now_sec) if again else left
    withdraw(state, job)
    del state.jobs[job.name]
    actions: list[Action] = [_log_end(job, action, now_sec), *hooks_of(state, job, action)]
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
        actions += park(state, again, job.cancel_uid)
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


def park(state: QueueState, job: Job, uid: int) -> list[Action]:
    """Have a queued job moved to parked/."""
    withdraw(state, job)
    job.phase = Phase.LEAVING
    return [Park(job.name, uid)]


def stop_if_canceled(job: Job) -> list[Action]:
    """Have the unit of a job stopped whose end somebody asked for."""
    return [StopUnit(job.unit)] if job.cancel_uid is not None else []
