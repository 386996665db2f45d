"""Lending a lane: the units of leases are started here, and their holders found.

A child that inherited the descriptor keeps a lease alive. So the process that took it is watched,
and when it ends, who has the pipe open now is looked for, and is the holder from then on.
"""

import asyncio
import os
from contextlib import suppress
from dataclasses import replace

from sdqueue import pipes
from sdqueue.bus.systemd import Reaction, reaction
from sdqueue.controller.blockers import refusal, tell_if_gone
from sdqueue.controller.leases import Asked, open_process
from sdqueue.controller.runner import Runner
from sdqueue.controller.whose import Asker, whose
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.lease import Lease, lease_properties
from sdqueue.core.model import Code, Reason
from sdqueue.core.unit import Property
from sdqueue.owners.box import look_at
from sdqueue.owners.clients import Process
from sdqueue.words.errors import BusError, LaneBusy, RemoteError

AGAIN_SEC = 1.0
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
    """Say whether the unit was started; if not, that is told.

    Where the answer is lost, who waits has it tried again, under the same name.
    """
    lease = action.lease
    lane = runner.state.lanes[lease.lane].lane
    source = os.dup(asked.source)  # whoever asked may go meanwhile, and close it
    try:
        properties = lease_properties(lease, lane, system=runner.places.system, argv=asked.argv)
        properties.append(("StandardInputFileDescriptor", "h", source))
        while error := await _refused(runner, lease.backing_unit, properties):
            is_asked = lease.id in runner.leases.asked
            if not (action.wait and is_asked and _reaction(error) == "later"):
                await _tell_refusal(runner, action, error)
                return False
            await asyncio.sleep(AGAIN_SEC)
    finally:
        os.close(source)
    return True


async def _refused(runner: Runner, unit: str, properties: list[Property]) -> BusError | None:
    """Have the unit started; give the error of a manager that did not, or that does not answer."""
    try:
        await runner.manager().start_transient(unit, properties)
    except BusError as error:
        # The name is the lease's alone: it is there if a start before this one has succeeded.
        return None if _reaction(error) == "exists" else error
    return None


async def _tell_refusal(runner: Runner, action: act.Grant, error: BusError) -> None:
    lease = action.lease
    if _reaction(error) == "later":
        why = Reason(Code.REFUSED, f"the service manager does not answer: {error}")
        runner.post(ev.LeaseRefused(lease, why))
        runner.recheck()  # it may have been started all the same
        return
    assert isinstance(error, RemoteError)
    why = await refusal(runner, lease.lane, error)
    runner.post(ev.LeaseRefused(lease, why, action.wait and lease.id in runner.leases.asked))
    await tell_if_gone(runner, why)


def _reaction(error: BusError) -> Reaction | None:
    """Say what a failed start means; one without an answer is one whose outcome is not known."""
    return reaction(error) if isinstance(error, RemoteError) else "later"


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
    for pid in await asyncio.to_thread(_writers, lease.pipe):
        heir = await describe(runner, replace(lease, pid=pid))
        lane = runner.state.lanes.get(lease.lane)
        if heir.started and lane and lease.backing_unit in lane.leases:
            runner.post(ev.LeasePassed(heir))
            watch(runner, heir)
            return


def _writers(pipe: int) -> list[int]:
    """List who has the pipe open, but for us, who have it until it is on its way to its holder."""
    with suppress(OSError):
        return [pid for pid in pipes.writers(pipe) if pid != os.getpid()]
    return []


async def describe(runner: Runner, lease: Lease) -> Lease:
    """Say of a lease which process its pid is: since when, its name, its unit."""
    process = await asyncio.to_thread(_look_at, lease.pid)
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
    comm = "".join(each if each.isprintable() else "?" for each in process.comm)
    return replace(lease, started=process.started, comm=comm, unit=unit)


def _look_at(pid: int) -> Process | None:
    with suppress(OSError):
        return look_at(pid)
    return None
