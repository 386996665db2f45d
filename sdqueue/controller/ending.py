"""Ending what was queued or ran: written down first, and its unit let go after that.

A unit that is let go before its end is on disk would leave a controller after this one without it.
"""

import asyncio

from sdqueue.bus.systemd import reaction
from sdqueue.controller import moving
from sdqueue.controller.runner import RETRY_SEC, Runner
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.model import JobState
from sdqueue.words import names
from sdqueue.words.errors import BusError, RemoteError


async def settle(runner: Runner, action: act.Settle) -> None:
    """Write the end of a run down, then let the unit go: one that ended well went by itself."""
    superseded = await runner.persist(moving.settle, action)
    unit = names.unit_of_job(action.name)
    if any(unit in lane.occupants for lane in runner.state.lanes.values()):
        await let_go(runner, unit)
    runner.post(ev.Settled(action.name, action, superseded))
    if superseded:
        runner.relook(action.name)


async def let_go(runner: Runner, unit: str) -> None:
    """Have PID 1 forget a unit that failed; that it is forgotten already is as good."""
    try:
        await runner.manager().reset_failed(unit)
    except BusError:
        return


async def skip(runner: Runner, action: act.Skip) -> None:
    """Move a queued job to done/."""
    await _leave(runner, action, JobState.DONE)


async def park(runner: Runner, action: act.Park) -> None:
    """Move a queued job to parked/."""
    await _leave(runner, action, JobState.PARKED)


async def _leave(runner: Runner, action: act.Skip | act.Park, to: JobState) -> None:
    moved = await runner.persist(moving.leave, action.name, to)
    runner.post(ev.Settled(action.name, action, vanished=not moved))


async def stop_unit(runner: Runner, action: act.StopUnit) -> None:
    """Stop a unit; that it is gone already is as good."""
    try:
        await runner.manager().stop_unit(action.unit)
    except BusError as error:
        if isinstance(error, RemoteError) and reaction(error) != "later":
            return
        # A reconciliation that finds the unit still running has it stopped again.
        await asyncio.sleep(RETRY_SEC)
        runner.recheck()
