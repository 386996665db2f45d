"""Lending a lane: the units of leases are started here, and their holders found.

A child that inherited the descriptor keeps a lease alive. So the process that took it is watched,
and when it ends, who has the pipe open now is looked for, and is the holder from then on.
"""

import asyncio
import os
from dataclasses import replace

from sdqueue import pipes
from sdqueue.bus.systemd import reaction
from sdqueue.controller.blockers import refusal, tell_if_gone
from sdqueue.controller.leases import Asked, open_process
from sdqueue.controller.runner import Runner
from sdqueue.controller.whose import Asker, whose
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.lease import Lease, lease_properties
from sdqueue.core.model import Code, Reason
from sdqueue.owners.box import look_at
from sdqueue.words.errors import BusError, LaneBusy, RemoteError

WHOSE_SEC = 1.0
"""How long to ask whose a process is, before it is taken on without that."""


async def grant(runner: Runner, action: act.Grant) -> None:
    """Start the unit of a lease, and let its holder have it."""
    lease, unit = action.lease, action.lease.backing_unit
    asked = runner.leases.asked.get(lease.id)
    try:
        if asked is None:
            runner.post(ev.UnitGone(unit))  # nobody waits any more: there is none
        elif await _start(runner, action, asked):
            runner.post(ev.LeaseStarted(unit))
            watch(runner, lease)
            if not asked.answer.done():
                asked.answer.set_result(None)
    finally:
        runner.leases.granting.discard(unit)


async def _start(runner: Runner, action: act.Grant, asked: Asked) -> bool:
    """Say whether the unit was started; if not, that is told."""
    lease = action.lease
    lane = runner.state.lanes[lease.lane].lane
    source = os.dup(asked.source)  # whoever asked may go meanwhile, and close it
    try:
        properties = lease_properties(lease, lane, system=runner.places.system, argv=asked.argv)
        properties.append(("StandardInputFileDescriptor", "h", source))
        await runner.manager().start_transient(lease.backing_unit, properties)
    except BusError as error:
        why = await _why_not(runner, lease, error)
        waits = action.wait and lease.id in runner.leases.asked and isinstance(error, RemoteError)
        runner.post(ev.LeaseRefused(lease, why, waits))
        await tell_if_gone(runner, why)
        return False
    finally:
        os.close(source)
    return True


async def _why_not(runner: Runner, lease: Lease, error: BusError) -> Reason:
    if isinstance(error, RemoteError) and reaction(error) != "later":
        return await refusal(runner, lease.lane, error)
    return Reason(Code.REFUSED, f"the service manager does not answer: {error}")


async def deny(runner: Runner, action: act.Deny) -> None:
    """Tell who asked for a lease why it can't be had."""
    asked = runner.leases.asked.get(action.lease.id)
    if asked and not asked.answer.done():
        said = "; ".join(reason.detail for reason in action.reasons)
        asked.answer.set_exception(LaneBusy(f"lane {action.lease.lane} can't be had: {said}"))


async def release(runner: Runner, lease: Lease, parked_bytes: int) -> None:
    """End a lease because its holder says so; it may keep memory on the device."""
    if parked_bytes:
        runner.post(ev.LeaseParked(lease.backing_unit, parked_bytes))
    runner.leases.releasing.add(lease.backing_unit)
    await runner.manager().stop_unit(lease.backing_unit)


def watch(runner: Runner, lease: Lease) -> None:
    """Be told when the process that holds a lease ends, since another may hold it then."""
    runner.leases.watch(lease, lambda ended: runner.spawn(_find_heir(runner, ended)))


async def _find_heir(runner: Runner, lease: Lease) -> None:
    """Find who has the pipe open now; where that can't be told, the lease says who had it."""
    if not lease.pipe:
        return
    for pid in await asyncio.to_thread(lambda: list(pipes.writers(lease.pipe))):
        heir = await describe(runner, replace(lease, pid=pid))
        lane = runner.state.lanes.get(lease.lane)
        if heir.started and lane and lease.backing_unit in lane.leases:
            runner.post(ev.LeasePassed(heir))
            watch(runner, heir)
            return


async def describe(runner: Runner, lease: Lease) -> Lease:
    """Say of a lease which process its pid is: since when, its name, its unit."""
    process = await asyncio.to_thread(look_at, lease.pid)
    if process is None or (pidfd := open_process(lease.pid, process.started)) is None:
        return replace(lease, started=0)
    try:
        async with asyncio.timeout(WHOSE_SEC):
            found = await whose(Asker(runner.systemd, runner.places.system), lease.pid, pidfd)
    except TimeoutError:
        found = None
    finally:
        os.close(pidfd)
    unit = found.unit if found else ""
    return replace(lease, started=process.started, comm=process.comm, unit=unit)
