"""Leases as the controller keeps them: who asked and waits for an answer, and whose end is watched.

The holder of a lease gets the writing end of a pipe; its unit has the reading end as standard input
and waits for it to end. So the lease is over when nobody has the writing end open any more, however
they ended, and it takes neither the controller nor the holder to say so. For what is adopted the
unit's standard input is what tells its end: a descriptor of the process, or its control group's
cgroup.events. The units themselves are started in `lending`.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sdqueue import until_gone
from sdqueue.core import events as ev
from sdqueue.core.lease import WAIT_FOR_END, Lease
from sdqueue.owners.box import look_at

WAIT_UNTIL_GONE = (sys.executable, "-I", "-S", str(Path(until_gone.__file__)))


@dataclass(frozen=True, slots=True)
class Asked:
    """A lease that somebody waits for: its user, what its unit reads, and with which program."""

    uid: int
    answer: "asyncio.Future[None]"
    source: int
    argv: tuple[str, ...]


class Leases:
    """Requests that wait for an answer, and the processes that hold leases.

    `granting` are units of which `lending.grant` will report: no reconciliation may miss them.
    `releasing` are units that are stopped because their holders said so.
    """

    def __init__(self, post: Callable[[ev.Event], None]) -> None:
        self._post = post
        self._watched: dict[str, int] = {}
        self.asked: dict[str, Asked] = {}
        self.granting: set[str] = set()
        self.releasing: set[str] = set()

    # Asked for

    async def acquire(self, lease: Lease, *, wait: bool) -> int:
        """Have a lease, and give the descriptor that holds it, which is the caller's.

        LaneBusy where it can't be had; with `wait` it is waited for. Whoever is cancelled meanwhile
        has asked for nothing.
        """
        reader, writer = os.pipe2(os.O_CLOEXEC)
        try:
            held = replace(lease, pipe=os.fstat(writer).st_ino)
            await self._ask(held, reader, (WAIT_FOR_END,), wait=wait)
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(reader)
        return writer

    async def adopt(self, lease: Lease, descriptor: int) -> None:
        """Have a lease until `descriptor` says that its process or control group is gone."""
        await self._ask(lease, descriptor, WAIT_UNTIL_GONE, wait=False)

    async def _ask(self, lease: Lease, source: int, argv: tuple[str, ...], *, wait: bool) -> None:
        answer = asyncio.get_running_loop().create_future()
        self.asked[lease.id] = Asked(lease.uid, answer, source, argv)
        self._post(ev.LeaseAsked(lease, wait))
        try:
            await answer
        finally:
            del self.asked[lease.id]
            if answer.cancelled():
                self._post(ev.LeaseWithdrawn(lease.id))

    # Held

    def watch(self, lease: Lease, on_end: Callable[[Lease], None]) -> None:
        """Call `on_end` when the process that holds a lease ends, or has ended."""
        self.drop(lease.backing_unit)
        pidfd = open_process(lease.pid, lease.started)
        if pidfd is None:
            on_end(lease)
            return

        def ended() -> None:
            self.drop(lease.backing_unit)
            on_end(lease)

        self._watched[lease.backing_unit] = pidfd
        asyncio.get_running_loop().add_reader(pidfd, ended)

    def is_watched(self, unit: str) -> bool:
        """Say whether the holder of a lease is watched."""
        return unit in self._watched

    def is_revoked(self, unit: str, result: str) -> bool:
        """Say whether a unit job's end means that a lease was taken from its holder."""
        return result != "done" and unit not in self.releasing

    def gone(self, unit: str) -> None:
        """Watch nobody for a lease that is over."""
        self.releasing.discard(unit)
        self.drop(unit)

    def drop(self, unit: str) -> None:
        """Watch the holder of a lease no longer."""
        if (pidfd := self._watched.pop(unit, None)) is not None:
            asyncio.get_running_loop().remove_reader(pidfd)
            os.close(pidfd)

    def close(self) -> None:
        """Watch nobody any more; the leases run on."""
        for unit in list(self._watched):
            self.drop(unit)


def give_up(acquiring: "asyncio.Future[int]") -> None:
    """Want a descriptor no longer that may have come just now, and that nobody else would close."""

    def close(given_up: "asyncio.Future[int]") -> None:
        if not given_up.cancelled() and given_up.exception() is None:
            os.close(given_up.result())

    acquiring.add_done_callback(close)
    acquiring.cancel()


def open_process(pid: int, started: int) -> int | None:
    """Open the process that has this pid since `started`; None where it has ended, or can't be
    looked at."""
    with suppress(OSError):
        pidfd = os.pidfd_open(pid)
        with suppress(OSError):
            process = look_at(pid)
            if process and process.started == started:
                return pidfd
        os.close(pidfd)
    return None
