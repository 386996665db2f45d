"""What the kernel tells without being asked: that a process ended, a group emptied, a file opened.

One set of watches for each look at a lane, made before the look and let go of after the next one:
what happens in between is told by one of the two. A pid is never kept here, only its descriptor.
"""

import asyncio
import os
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress

from asyncinotify import InitFlags, Inotify, Mask

_EVENT = struct.Struct("iIII")
USED = Mask.OPEN | Mask.CLOSE
CAME = Mask.CREATE | Mask.MOVED_TO | Mask.ONLYDIR
READ_BYTES = 64 * 1024

Told = Callable[[], None]


class Notices:
    """A set of watches; each calls back in the loop. `close` lets go of all."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pidfds: set[int] = set()
        self._calls: dict[int, Told] = {}
        self._inotify: Inotify | None = None

    def watch_process(self, pidfd: int, told: Told) -> None:
        """Call once when a process has ended; the descriptor is ours from now on."""
        self._pidfds.add(pidfd)
        self._loop.add_reader(pidfd, self._ended, pidfd, told)

    def watch_files(self, files: Iterable[str], mask: Mask, told: Told) -> None:
        """Call for what happens to files; those that are not there are left out."""
        for file in files:
            with suppress(OSError):
                self._calls[self._add(file, mask)] = told

    def _add(self, file: str, mask: Mask) -> int:
        if self._inotify is None:
            self._inotify = Inotify(InitFlags.CLOEXEC | InitFlags.NONBLOCK)
            self._loop.add_reader(self._inotify.fd, self._happened)
        return int(self._inotify.add_watch(file, mask).wd)

    def _ended(self, pidfd: int, told: Told) -> None:
        self._let_go(pidfd)
        told()

    def _happened(self) -> None:
        """Read what there is; many events of one file are one call."""
        assert self._inotify is not None
        with suppress(BlockingIOError):
            data = os.read(self._inotify.fd, READ_BYTES)
            for told in {self._calls.get(wd) for wd in _watches(data)}:
                if told:
                    told()

    def _let_go(self, pidfd: int) -> None:
        self._pidfds.discard(pidfd)
        self._loop.remove_reader(pidfd)
        os.close(pidfd)

    def close(self) -> None:
        """Watch nothing any more."""
        for pidfd in list(self._pidfds):
            self._let_go(pidfd)
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify.fd)
            self._inotify.close()
            self._inotify = None


def _watches(data: bytes) -> list[int]:
    """Return the watches that events are of, as inotify(7) lays them out."""
    found, at = [], 0
    while at + _EVENT.size <= len(data):
        watch, _, _, length = _EVENT.unpack_from(data, at)
        found.append(watch)
        at += _EVENT.size + length
    return found
