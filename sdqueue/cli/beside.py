"""Beside a command that `hold` became: a process that has the lease too, and hears who waits.

It is no child of the command, has no terminal and none of its files but standard error, ignores the
signals that end commands, and ends when the command has: by its descriptor of that, so that no pid
is ever taken for another. With a grace time it sends the command SIGTERM, once, when somebody has
waited that long; when the command has ended and others have the lease open still, them as well.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress

from sdqueue import pipes
from sdqueue.bus.address import system_bus_address, user_bus_address
from sdqueue.bus.connection import Bus
from sdqueue.bus.match import BUS_NAME, Match, Signal
from sdqueue.cli.client import NAME, PROPERTIES
from sdqueue.cli.hold import Held
from sdqueue.cli.place import Place
from sdqueue.cli.say import remark
from sdqueue.words.errors import BusError

LEASE = f"{NAME}.Lease"
AGAIN_SEC = 1.0
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def accompany(place: Place, held: Held, lane: str, grace_sec: float | None) -> None:
    """Start a process that goes along with this one, whatever this one becomes.

    `grace_sec` is after how long to give way to who waits, None for never.
    """
    command, parent = os.getpid(), os.pidfd_open(os.getpid())
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os.close(parent)
        return
    try:
        os.setsid()
        if not os.fork():
            _detach()
            asyncio.run(Companion(place, held, lane, grace_sec, command, parent).run())
    except Exception as error:
        _say(f"nobody hears who waits for lane {lane}: {error!r}")
    finally:
        os._exit(0)


def _say(text: str) -> None:
    """Say something where the command's standard error goes, if anybody reads that."""
    with suppress(OSError):
        remark(text)


def _detach() -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


class Companion:
    """Goes along with one command."""

    def __init__(
        self,
        place: Place,
        held: Held,
        lane: str,
        grace_sec: float | None,
        pid: int,
        pidfd: int,
    ) -> None:
        self._place = place
        self._held = held
        self._lane = lane
        self._grace_sec = grace_sec
        self._pid = pid
        self._pidfd = pidfd
        self._timer: asyncio.TimerHandle | None = None
        self._is_yielding = False

    async def run(self) -> None:
        """Listen until the command has ended."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pidfd, ended.set)
        listening = asyncio.create_task(self._listen())
        await ended.wait()
        loop.remove_reader(self._pidfd)
        listening.cancel()
        inode = os.fstat(self._held.descriptor).st_ino
        os.close(self._held.descriptor)
        self._see_heirs(inode)

    # Listening

    async def _listen(self) -> None:
        """Hear what becomes of the lease, over any number of connections."""
        address = system_bus_address if self._place.system else user_bus_address
        while True:
            try:
                async with await Bus.connect(address(os.environ)) as bus:
                    await self._follow(bus)
            except BusError:
                pass
            except Exception as error:  # whatever it is, listening goes on
                _say(f"trouble in hearing who waits for lane {self._lane}: {error!r}")
            await asyncio.sleep(AGAIN_SEC)

    async def _follow(self, bus: Bus) -> None:
        """Hear it on one connection, from whichever controller owns the name."""
        came = asyncio.Event()
        came.set()
        changes = Match(BUS_NAME, BUS_NAME, "NameOwnerChanged", arg0=NAME)
        await bus.add_match(Match(sender=NAME, path=self._held.path), self._heard)
        await bus.add_match(changes, lambda _signal: came.set())
        closed = asyncio.create_task(bus.wait_closed())
        try:
            while not closed.done():
                news = asyncio.create_task(came.wait())
                await asyncio.wait((news, closed), return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                came.clear()
                await self._look(bus)
        finally:
            closed.cancel()

    async def _look(self, bus: Bus) -> None:
        """Ask who waits; a controller that does not know the lease yet will tell by itself."""
        with suppress(BusError):
            (waiters,) = await bus.call(
                NAME, self._held.path, PROPERTIES, "Get", "ss", LEASE, "Waiters"
            )
            self._wait_began(waiters)

    def _heard(self, heard: Signal) -> None:
        if heard.member == "Revoked":
            self._revoked(str(heard.body[0]))
        elif heard.member == "PropertiesChanged" and heard.body[0] == LEASE:
            changed = heard.body[1]
            if isinstance(changed, dict) and "Waiters" in changed:
                self._wait_began(changed["Waiters"])

    # Giving way

    def _wait_began(self, waiters: object) -> None:
        """Begin the grace time where somebody waits, forget it where nobody does any more."""
        waiters = getattr(waiters, "value", waiters)
        if self._grace_sec is None or self._is_yielding:
            return
        if not waiters or not isinstance(waiters, list):
            if self._timer:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None:
            kind, who = waiters[0]
            after = f" in {self._grace_sec:g} s" if self._grace_sec else ""
            _say(f"{kind} {who} waits for lane {self._lane}: SIGTERM to pid {self._pid}{after}")
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._grace_sec, self._give_way)

    def _give_way(self) -> None:
        self._is_yielding = True
        _end(self._pid, self._pidfd)

    def _revoked(self, why: str) -> None:
        _say(f"the lease of lane {self._lane} was taken away: {why}")
        if self._grace_sec is not None and not self._is_yielding:
            self._give_way()

    # What the command leaves behind

    def _see_heirs(self, inode: int) -> None:
        """Tell of processes that have the lease open still; the lane is theirs until they end."""
        found = {pid: _open_process(pid) for pid in pipes.writers(inode)}
        there = set(pipes.writers(inode)) if found else set()
        for pid, pidfd in found.items():
            if pid in there and pidfd is not None:
                self._see_heir(pid, pidfd)

    def _see_heir(self, pid: int, pidfd: int) -> None:
        if not self._is_yielding:
            _say(f"pid {pid} of the command goes on, and has lane {self._lane} until it ends")
            return
        _say(f"SIGTERM to pid {pid} of the command, which goes on")
        _end(pid, pidfd)


def _end(pid: int, pidfd: int) -> None:
    """Ask a process to end; one that is stopped hears of it when it goes on."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        signal.pidfd_send_signal(pidfd, signal.SIGCONT)
    except ProcessLookupError:
        pass
    except PermissionError:
        _say(f"pid {pid} is another user's now: it can't be sent SIGTERM")


def _open_process(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
