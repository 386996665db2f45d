"""How many starts are open at once.

Knows unit job ids and counts them; not what is started. Why there is a limit stands in `systemd`.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STARTS_MAX = 64


class StartWindow:
    """Counts starts from the call to the JobRemoved.

    The JobRemoved of a short job is on the wire before the task that started it has seen the reply;
    so while a call is under way, ends of jobs that we don't know are remembered.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(STARTS_MAX)
        self._open: set[int] = set()
        self._early: set[int] = set()
        self._calling = 0

    @property
    def open_starts(self) -> int:
        return len(self._open) + self._calling

    async def wait_place(self) -> None:
        """Wait until one start more may be open, and take the place."""
        await self._places.acquire()

    @contextmanager
    def starting(self) -> Iterator[Callable[[int], None]]:
        """Hold a place for a start; without being told its job, give the place back at the end."""
        self._calling += 1
        started: list[int] = []
        try:
            yield started.append
        finally:
            self._calling -= 1
            if started and started[0] not in self._early:
                self._open.add(started[0])
            else:
                self._places.release()
            if not self._calling:
                self._early.clear()

    def ended(self, job_id: int) -> None:
        """Give back the place of a job, if it is one of ours."""
        if job_id in self._open:
            self._open.remove(job_id)
            self._places.release()
        elif self._calling:
            self._early.add(job_id)

    def forget(self) -> None:
        """Give back all places: the manager has gone, and with it what it kept for us."""
        for _ in self._open:
            self._places.release()
        self._open.clear()
