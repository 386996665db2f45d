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
from typing import Any

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Skip
from sdqueue.core.byhand import changed_by_hand, queued_by_hand
from sdqueue.core.lanes import QUEUE_HANDLERS, take_answer
from sdqueue.core.model import Code, Job, LaneState, Phase, QueueState, Reason
from sdqueue.core.placing import (
    ask_gates,
    close_gate,
    enter,
    leave,
    occupy,
    place,
    vacate,
    withdraw,
)
from sdqueue.core.runs import (
    claimed,
    ended,
    lost,
    not_claimed,
    park,
    reattached,
    refused,
    settled,
    started,
    stop_if_canceled,
    verified,
)
from sdqueue.core.spec import Lane


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
    told = queued_by_hand(state, event)
    return told + enter(state, job, now_sec) + ask_gates(state, now_sec)


def _file_changed(
    state: QueueState, job: Job, event: ev.FileQueued, now_sec: float
) -> list[Action]:
    same = (job.spec, job.problem, job.memory) == (event.spec, event.problem, event.memory)
    if same and job.phase is not Phase.ASIDE:
        return []
    told = changed_by_hand(state, job, event)
    withdraw(state, job)
    if job.spec != event.spec:
        job.gate = None
    job.spec, job.problem, job.memory = event.spec, event.problem, event.memory
    job.checked_sec = job.measured_sec = 0.0
    return told + enter(state, job, now_sec)


def _file_running(
    state: QueueState, job: Job | None, event: ev.FileRunning, now_sec: float
) -> list[Action]:
    if job:
        withdraw(state, job)
    spec = event.spec
    found = Job(event.name, spec, Phase.UNKNOWN, now_sec, event.memory, run=event.run)
    found.started_sec, found.cancel_uid = event.started_sec, event.cancel_uid
    state.jobs[event.name] = found
    if spec and spec.lane not in state.lanes:
        state.lanes[spec.lane] = LaneState(Lane(spec.lane))  # configured no more: until it is gone
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
    return leave(state, job, now_sec)


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


# Cancel


def _cancel_queued(
    state: QueueState, job: Job, event: ev.CancelAsked, _now_sec: float
) -> list[Action]:
    return park(state, job, event.uid)


def _cancel_running(
    _state: QueueState, job: Job, event: ev.CancelAsked, _now_sec: float
) -> list[Action]:
    job.cancel_uid = event.uid
    return stop_if_canceled(job) if job.phase is Phase.ACTIVE else []


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
    (Phase.CLAIMING, ev.Claimed): claimed,
    (Phase.CLAIMING, ev.NotClaimed): not_claimed,
    (Phase.CLAIMING, ev.Started): started,
    (Phase.CLAIMING, ev.Refused): refused,
    **{(phase, ev.Reattached): reattached for phase in RUNS},
    **{(phase, ev.Lost): lost for phase in RUNS},
    **{(phase, ev.Ended): ended for phase in RUNS},
    (Phase.VERIFYING, ev.Verified): verified,
    **{(phase, ev.Settled): settled for phase in (Phase.SETTLING, Phase.LEAVING)},
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
