"""Waiting for the spool to change: inotify on its directories, and nothing decided.

A job's directory is its state, so this works while the controller restarts, or is not there.
"""

import os
import select
import time
from types import TracebackType

from asyncinotify import Inotify, Mask

from sdqueue.cli.rows import DIRECTORY_OF
from sdqueue.spool.layout import Spool

MOVES = Mask.MOVED_FROM | Mask.MOVED_TO | Mask.CREATE | Mask.DELETE | Mask.DELETE_SELF
WRITES = Mask.MODIFY | Mask.MOVED_TO | Mask.CREATE | Mask.DELETE_SELF
LOST_RETRY_SEC = 1.0
"""How soon to look again after one of the directories was removed."""


class Watch:
    """Wakes up when a job moves; with `log`, also when an event is written. A context manager."""

    def __init__(self, spool: Spool, *, log: bool = False) -> None:
        self._spool = spool
        self._wanted = {spool.state_dir(directory): MOVES for directory in DIRECTORY_OF.values()}
        if log:
            self._wanted[spool.root] = WRITES
        self._inotify = Inotify()
        self._is_whole = False
        self._add_all()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inotify.close()

    def _add_all(self) -> None:
        self._is_whole = True
        for directory, mask in self._wanted.items():
            try:
                self._inotify.add_watch(directory, mask)
            except OSError:
                self._is_whole = False

    def wait(self, until_sec: float | None = None, *also: int) -> bool:
        """Wait for a change, a readable descriptor of `also`, or the monotonic time `until_sec`.

        Return False when the time came first.
        """
        limit = None if until_sec is None else max(0.0, until_sec - time.monotonic())
        if not self._is_whole:
            limit = LOST_RETRY_SEC if limit is None else min(limit, LOST_RETRY_SEC)
        ready = bool(select.select([self._inotify.fd, *also], [], [], limit)[0])
        self.drain()
        if not self._is_whole:
            self._add_all()
            return until_sec is None or time.monotonic() < until_sec
        return ready

    def drain(self) -> bool:
        """Forget the changes so far; say whether there were any."""
        changed = False
        while select.select([self._inotify.fd], [], [], 0)[0]:
            os.read(self._inotify.fd, 1 << 16)
            changed = True
        # A removed directory ends its watch without a word that would be worth decoding.
        if changed and not all(map(os.path.isdir, self._wanted)):
            self._is_whole = False
        return changed


def state_of(spool: Spool, name: str) -> str | None:
    """Return the state of a job by its file, None if it has none at this instant."""
    for state, directory in DIRECTORY_OF.items():
        if os.path.lexists(spool.job_file(directory, name)):
            return str(state)
    return None


def settled_state_of(spool: Spool, name: str, watch: Watch) -> str | None:
    """Return the state of a job; None only if it is in no directory, and not just on its way."""
    while True:
        watch.drain()
        for _ in range(2):
            state = state_of(spool, name)
            if state is not None:
                return state
        if not watch.drain():
            return None
