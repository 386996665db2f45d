"""What waits to be written to a socket.

Knows bytes, descriptors and a socket that may be full; not what the bytes mean. A full socket is
nothing unusual: the rest waits until it is writable again. Descriptors are duplicated when they are
put in and closed when they are out, so a caller may close its own at once. A peer that never reads
is told apart from a slow one by the bytes that wait for it.
"""

import array
import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence

WAITING_BYTES_MAX = 64 * 1024 * 1024


class Outbox:
    """A queue of messages on their way out; `on_broken(why)` is called once, when it can't go on.

    After that, and after `close()`, what is put in is dropped.
    """

    def __init__(self, sock: socket.socket, on_broken: Callable[[str], None]) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._on_broken = on_broken
        self._queue: deque[tuple[memoryview, list[int]]] = deque()
        self._is_watched = False
        self._is_closed = False
        self._is_drained = asyncio.Event()
        self._is_drained.set()
        self.waiting_bytes = 0

    def put(self, data: bytes, fds: Sequence[int] = ()) -> None:
        """Send a message, now or when there is room, after everything that was put in before.

        Raises OSError where a descriptor is not open; then nothing was put in.
        """
        if self._is_closed:
            return
        self._queue.append((memoryview(data), _duplicate(fds)))
        self.waiting_bytes += len(data)
        if not self._is_watched:
            self._write()
        if self.waiting_bytes > WAITING_BYTES_MAX:
            self._break(f"the bus does not read: {self.waiting_bytes} bytes wait for it")

    async def wait_drained(self) -> None:
        """Return when everything is written, or nothing ever will be."""
        await self._is_drained.wait()

    def close(self) -> None:
        """Drop what is left, with its descriptors; the socket stays the caller's."""
        if self._is_closed:
            return
        self._is_closed = True
        self._watch(on=False)
        for _, fds in self._queue:
            _close_all(fds)
        self._queue.clear()
        self.waiting_bytes = 0
        self._is_drained.set()

    def _write(self) -> None:
        try:
            while self._queue:
                self._write_first()
        except (BlockingIOError, InterruptedError):
            self._is_drained.clear()
            self._watch(on=True)
        except OSError as error:
            self._break(error.strerror or str(error))
        else:
            self._watch(on=False)
            self._is_drained.set()

    def _write_first(self) -> None:
        """Write what can be of the first message; its descriptors go with its first byte."""
        data, fds = self._queue[0]
        if fds:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            count = self._sock.sendmsg([data], rights, socket.MSG_NOSIGNAL)
            _close_all(fds)
        else:
            count = self._sock.send(data, socket.MSG_NOSIGNAL)
        self.waiting_bytes -= count
        if count == len(data):
            self._queue.popleft()
        else:
            self._queue[0] = (data[count:], [])

    def _watch(self, *, on: bool) -> None:
        if on and not self._is_watched:
            self._loop.add_writer(self._sock.fileno(), self._write)
        elif not on and self._is_watched:
            self._loop.remove_writer(self._sock.fileno())
        self._is_watched = on

    def _break(self, why: str) -> None:
        self.close()
        self._on_broken(why)


def _duplicate(fds: Sequence[int]) -> list[int]:
    """Duplicate all descriptors, close-on-exec, or none of them."""
    copies: list[int] = []
    try:
        copies.extend(os.dup(fd) for fd in fds)
    except OSError:
        _close_all(copies)
        raise
    return copies


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
    fds.clear()
