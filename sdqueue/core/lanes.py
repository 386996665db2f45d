"""What happens to lanes and to the queue as a whole, rather than to one job."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Log
from sdqueue.core.byhand import ended_by_hand
from sdqueue.core.foreign import owners_seen
from sdqueue.core.hooks import hook_failed, noticed
from sdqueue.core.lending import (
    drop_requests,
    lease_asked,
    lease_ended,
    lease_parked,
    lease_passed,
    lease_refused,
    lease_revoked,
    lease_seen,
    lease_started,
    lease_withdrawn,
)
from sdqueue.core.line import Line
from sdqueue.core.model import Code, LaneState, Phase, QueueState
from sdqueue.core.placing import (
    place,
    refuse,
    reopen_gates,
    replace_successors,
    ring,
)
from sdqueue.core.spec import Lane
from sdqueue.words import names


def _file_ended(state: QueueState, event: ev.FileEnded, now_sec: float) -> list[Action]:
    told = ended_by_hand(state, event)
    if state.ended.get(event.name) is event.state:
        return told
    if event.state is None:
        state.ended.pop(event.name, None)
    else:
        state.ended[event.name] = event.state
    return told + replace_successors(state, event.name, now_sec)


def _unit_seen(state: QueueState, event: ev.UnitSeen, _now_sec: float) -> list[Action]:
    if lane := state.lanes.get(event.lane):
        lane.occupants.setdefault(event.unit, event.job)
    return []


def _unit_gone(state: QueueState, event: ev.UnitGone, _now_sec: float) -> list[Action]:
    told: list[Action] = []
    for lane in list(state.lanes.values()):
        if event.unit in lane.occupants:
            told += lease_ended(lane, event.unit)
            _release(state, lane, event.unit)
        _forget_lane(state, lane)
        if lane.refusal and lane.refusal.blocker == event.unit:
            lane.refusal = None
    return told


_HOLDING = frozenset({Phase.CLAIMING, Phase.UNKNOWN, Phase.ACTIVE, Phase.VERIFYING})


def _release(state: QueueState, lane: LaneState, unit: str) -> None:
    """Free a slot whose unit is gone, unless the run's end or a check's answer is still to be told.

    In CLAIMING it may be the unit of an earlier run that is gone; in VERIFYING the slot is the
    question's, in MEASURING the start's.
    """
    job = state.jobs.get(lane.occupants[unit])
    if unit == names.unit_of_checks(lane.lane.name) and lane.lane.name in state.asked.values():
        lane.is_asker_gone = True
    elif job and job.phase in _HOLDING:
        job.is_unit_gone = True
    elif not job or job.phase is not Phase.MEASURING:
        del lane.occupants[unit]


def take_answer(state: QueueState, name: str) -> None:
    """Take note that the question to a name is answered; the last answer frees the asker's slot."""
    lane = state.lanes.get(state.asked.pop(name, ""))
    if lane and lane.is_asker_gone and lane.lane.name not in state.asked.values():
        lane.is_asker_gone = False
        lane.occupants.pop(names.unit_of_checks(lane.lane.name), None)
        _forget_lane(state, lane)


def _forget_lane(state: QueueState, lane: LaneState) -> None:
    """Drop a lane that is configured no more, once nothing of it is left."""
    name = lane.lane.name
    if name not in state.config.lanes and not lane.occupants and name not in state.asked.values():
        state.lanes.pop(name, None)


def _checks_refused(state: QueueState, event: ev.ChecksRefused, now_sec: float) -> list[Action]:
    """Free the slot of checks that did not start; their jobs are in line again."""
    refuse(state, event.lane, event.reason, now_sec)
    lane = state.lanes.get(event.lane)
    if lane is None:
        return []
    lane.occupants.pop(names.unit_of_checks(event.lane), None)
    lane.is_asker_gone = False
    actions: list[Action] = []
    for name in [name for name, asker in state.asked.items() if asker == event.lane]:
        del state.asked[name]
        job = state.jobs.get(name)
        if job and job.phase is Phase.CHECKING:
            job.is_stale, job.unreached = False, 0
            actions += place(state, job, now_sec)
    for head in filter(None, [lane.line.head()]):
        state.jobs[head].unreached = 0
    _forget_lane(state, lane)
    return actions


def _paused(state: QueueState, event: ev.LanePaused, _now_sec: float) -> list[Action]:
    lane = state.lanes.get(event.lane)
    if lane is None or lane.paused == event.paused:
        return []
    lane.paused = event.paused
    return [Log("paused" if event.paused else "resumed", "-", {"lane": event.lane})]


def _halted(state: QueueState, event: ev.Halted, _now_sec: float) -> list[Action]:
    """Stop or allow starts. A trouble that comes and goes is told once, until the disk is well."""
    state.halt, reason = event.reason, event.reason
    if not reason or reason.code is not Code.TROUBLE or reason.detail in state.troubles_told:
        return []
    state.troubles_told.add(reason.detail)
    return [Log("error", "-", {"what": reason.detail})]


_AT_REST = frozenset({Phase.IN_LINE, Phase.ASIDE})


def _config_read(state: QueueState, event: ev.ConfigRead, now_sec: float) -> list[Action]:
    """Take a new configuration on. A lane that it has no more stays until its units are gone."""
    old, state.config = state.lanes, event.config
    busy = set(state.asked.values())
    state.lanes = {name: _relaned(old.get(name), lane) for name, lane in event.config.lanes.items()}
    for name, lane in old.items():
        if name not in state.lanes and (lane.occupants or name in busy):
            state.lanes[name] = _relaned(lane, lane.lane)
    gone = [lane for name, lane in old.items() if name not in event.config.lanes]
    actions = [denied for lane in gone for denied in drop_requests(lane)]
    for job in list(state.jobs.values()):
        if job.phase in _AT_REST:
            actions += place(state, job, now_sec)
    return actions


def _relaned(old: LaneState | None, lane: Lane) -> LaneState:
    """Give a lane its new configuration; its jobs are placed anew, and it is looked at anew."""
    if old is None:
        return LaneState(lane)
    old.lane, old.line, old.gated, old.recheck_sec = lane, Line(), set(), 0.0
    old.looked_sec, old.is_looking = 0.0, False
    if not lane.is_watched:
        old.users, old.is_settling = (), False
    return old


def _tick(state: QueueState, _event: ev.Tick, now_sec: float) -> list[Action]:
    actions = ring(state, now_sec)
    latest = now_sec + state.config.recheck_usec / 1e6
    for lane in state.lanes.values():
        # A clock that was set back must not put off what was due within the interval.
        lane.recheck_sec = min(lane.recheck_sec, latest)
        if lane.recheck_sec and lane.recheck_sec <= now_sec:
            actions += reopen_gates(state, lane, now_sec)
        if lane.refusal and lane.refusal.until_sec > latest:
            lane.refusal = replace(lane.refusal, until_sec=latest)
        if lane.refusal and 0 < lane.refusal.until_sec <= now_sec:
            lane.refusal = None
    return actions


QueueHandler = Callable[[QueueState, Any, float], list[Action]]

QUEUE_HANDLERS: dict[type, QueueHandler] = {
    ev.FileEnded: _file_ended,
    ev.UnitSeen: _unit_seen,
    ev.UnitGone: _unit_gone,
    ev.ChecksRefused: _checks_refused,
    ev.LanePaused: _paused,
    ev.Halted: _halted,
    ev.OwnersSeen: owners_seen,
    ev.LeaseAsked: lease_asked,
    ev.LeaseWithdrawn: lease_withdrawn,
    ev.LeaseStarted: lease_started,
    ev.LeaseRefused: lease_refused,
    ev.LeaseSeen: lease_seen,
    ev.LeasePassed: lease_passed,
    ev.LeaseParked: lease_parked,
    ev.LeaseRevoked: lease_revoked,
    ev.HookFailed: hook_failed,
    ev.Noticed: noticed,
    ev.ConfigRead: _config_read,
    ev.Tick: _tick,
}
