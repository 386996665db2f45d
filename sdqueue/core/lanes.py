"""What happens to lanes and to the queue as a whole, rather than to one job."""

from collections.abc import Callable
from typing import Any

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Log
from sdqueue.core.model import Code, LaneState, Phase, QueueState
from sdqueue.core.placing import place, reopen_gates, replace_successors, ring


def _file_ended(state: QueueState, event: ev.FileEnded, now_sec: float) -> list[Action]:
    if state.ended.get(event.name) is event.state:
        return []
    if event.state is None:
        state.ended.pop(event.name, None)
    else:
        state.ended[event.name] = event.state
    return replace_successors(state, event.name, now_sec)


def _unit_seen(state: QueueState, event: ev.UnitSeen, _now_sec: float) -> list[Action]:
    if lane := state.lanes.get(event.lane):
        lane.occupants[event.unit] = event.job
    return []


def _unit_gone(state: QueueState, event: ev.UnitGone, _now_sec: float) -> list[Action]:
    for lane in state.lanes.values():
        if event.unit in lane.occupants:
            _release(state, lane, event.unit)
        if lane.refusal and lane.refusal.blocker == event.unit:
            lane.refusal = None
    return []


_HOLDING = frozenset({Phase.CLAIMING, Phase.UNKNOWN, Phase.ACTIVE, Phase.VERIFYING})


def _release(state: QueueState, lane: LaneState, unit: str) -> None:
    """Free a slot whose unit is gone, unless the run's end is still to be told.

    In CLAIMING it may be the unit of an earlier run that is gone; in VERIFYING the slot is the
    question's.
    """
    job = state.jobs.get(lane.occupants[unit])
    if job and job.phase in _HOLDING:
        job.is_unit_gone = True
    else:
        del lane.occupants[unit]


def _checks_refused(state: QueueState, event: ev.ChecksRefused, _now_sec: float) -> list[Action]:
    state.lanes[event.lane].refusal = event.reason
    return []


def _paused(state: QueueState, event: ev.LanePaused, _now_sec: float) -> list[Action]:
    lane = state.lanes.get(event.lane)
    if lane is None or lane.paused == event.paused:
        return []
    lane.paused = event.paused
    return [Log("paused" if event.paused else "resumed", "-", {"lane": event.lane})]


def _halted(state: QueueState, event: ev.Halted, _now_sec: float) -> list[Action]:
    before, state.halt = state.halt, event.reason
    if event.reason and event.reason.code is Code.TROUBLE and event.reason != before:
        return [Log("error", "-", {"what": event.reason.detail})]
    return []


_AT_REST = frozenset({Phase.IN_LINE, Phase.ASIDE})


def _config_read(state: QueueState, event: ev.ConfigRead, now_sec: float) -> list[Action]:
    """Take a new configuration on. A lane that it has no more stays until its units are gone."""
    old, state.config = state.lanes, event.config
    state.lanes = {
        name: _relaned(old.get(name), LaneState(lane)) for name, lane in event.config.lanes.items()
    }
    busy = {job.lane for job in state.jobs.values() if job.phase not in _AT_REST}
    for name, lane in old.items():
        if name not in state.lanes and (lane.occupants or name in busy):
            state.lanes[name] = _relaned(lane, LaneState(lane.lane))
    actions: list[Action] = []
    for job in list(state.jobs.values()):
        if job.phase in _AT_REST:
            actions += place(state, job, now_sec)
    return actions


def _relaned(old: LaneState | None, new: LaneState) -> LaneState:
    if old:
        new.occupants, new.paused, new.refusal = old.occupants, old.paused, old.refusal
    return new


def _tick(state: QueueState, _event: ev.Tick, now_sec: float) -> list[Action]:
    actions = ring(state, now_sec)
    for lane in state.lanes.values():
        if lane.recheck_sec and lane.recheck_sec <= now_sec:
            actions += reopen_gates(state, lane, now_sec)
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
    ev.ConfigRead: _config_read,
    ev.Tick: _tick,
}
