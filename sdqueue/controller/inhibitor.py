"""logind's inhibitor lock against sleep, held while a job runs.

The lock is a descriptor: it is held as long as that is open, and gone with the process. Where it
can't be had (no logind, polkit says no) that is a notice, and the job runs all the same.
"""

import asyncio
import os
from collections.abc import Callable, Mapping

from sdqueue.bus.address import system_bus_address
from sdqueue.bus.connection import Bus
from sdqueue.core import events as ev
from sdqueue.words.errors import BusError, RemoteError, UsageError

LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
WHAT, WHO, WHY, MODE = "sleep:idle", "sdqueue", "a job runs", "block"
SOURCE = "inhibitor"


class Inhibitor:
    """Holds the lock or does not, as it was told last."""

    def __init__(
        self, post: Callable[[ev.Event], None], environ: Mapping[str, str] = os.environ
    ) -> None:
        self._post = post
        self._environ = environ
        self._is_wanted = False
        self._fd = -1
        self._one_at_a_time = asyncio.Lock()

    async def set(self, *, awake: bool) -> None:
        """Take the lock, or let go of it; of several calls at once the last one counts."""
        self._is_wanted = awake
        async with self._one_at_a_time:
            if self._is_wanted and self._fd < 0:
                await self._take()
            if not self._is_wanted:
                self.close()

    async def _take(self) -> None:
        try:
            self._fd = await self._ask()
        except (BusError, UsageError) as error:
            words = error.text or error.name if isinstance(error, RemoteError) else str(error)
            self._post(ev.Noticed(SOURCE, f"the box may go to sleep under a job: {words}"))
        else:
            self._post(ev.Noticed(SOURCE, None))

    async def _ask(self) -> int:
        async with await Bus.connect(system_bus_address(self._environ), timeout_sec=5) as bus:
            (fd,) = await bus.call(*LOGIND, "Inhibit", "ssss", WHAT, WHO, WHY, MODE, reply_fds=True)
        assert isinstance(fd, int), "the bus checks signatures"
        return fd

    def close(self) -> None:
        """Let go of the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
