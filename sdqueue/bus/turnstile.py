"""Calls of strangers, let through one at a time, so that no flood of them stops who serves.

Knows users by uid, and time; it must not know what the calls are about.

Theory of operation. Calls of users who are trusted are answered as they come. The calls of each
other user stand in a line of that user's, unread: a body is unmarshalled when its turn comes. One
task takes one call from each line in turn, and after it rests four times as long as the answer
took, so that strangers have at most a fifth of the loop's time, whatever they ask for. A line has
room for CALLS_MAX calls, those among them whose answer takes a while; of what comes above that, and
of calls that bring descriptors, only the header is kept, and they are refused in their turn:
whoever waits for answers sends no faster than these are given. Above REFUSALS_MAX they are dropped.
A name that calls for the first time has its calls kept until the bus has said whose it is.
"""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from sdqueue.bus.header import Header
from sdqueue.bus.wire import NO_REPLY_EXPECTED
from sdqueue.words.errors import BusError

CALLS_MAX = 32
"""Calls of one user that wait or are being answered."""
CALL_BYTES_MAX = 256 * 1024
UNKNOWN_BYTES_MAX = 4 * 1024 * 1024
"""Size of all calls that are kept until it is known whose they are."""
REFUSALS_MAX = 1024
NAMES_MAX = 4096
REST = 4.0
REST_MAX_SEC = 10.0

TOO_MANY = f"this user has {CALLS_MAX} calls that are not answered yet"
TOO_LARGE = f"a call may have {CALL_BYTES_MAX} bytes"
NO_DESCRIPTORS = "no method takes a descriptor"

Answer = Callable[[bytes, list[int]], "asyncio.Task[object] | None"]
"""Unmarshals a call and has it answered; gives the task that does, where that is not done yet."""
Refuse = Callable[[Header, str], None]


class _Call(NamedTuple):
    """A call that waits: its bytes, or why it is refused."""

    header: Header
    data: bytes
    refusal: str = ""


class _Line:
    """The calls of one user; `waiting` are to be answered, `taken` are being answered."""

    def __init__(self) -> None:
        self.calls: deque[_Call] = deque()
        self.waiting = 0
        self.taken = 0

    def put(self, call: _Call) -> None:
        if not call.refusal and self.waiting + self.taken >= CALLS_MAX:
            call = _Call(call.header, b"", TOO_MANY)
        if not call.refusal:
            self.waiting += 1
        elif call.header.flags & NO_REPLY_EXPECTED or len(self.calls) >= REFUSALS_MAX:
            return
        self.calls.append(call)

    def take(self) -> _Call:
        call = self.calls.popleft()
        if not call.refusal:
            self.waiting -= 1
            self.taken += 1
        return call

    def done(self, _task: object = None) -> None:
        self.taken -= 1


class Turnstile:
    """The lines of all strangers: `arrive` takes what the bus brings, `run` has it answered."""

    def __init__(
        self,
        uid_of: Callable[[str], Awaitable[int]],
        is_trusted: Callable[[int], bool],
        answer: Answer,
        refuse: Refuse,
    ) -> None:
        self._uid_of = uid_of
        self._is_trusted = is_trusted
        self._answer = answer
        self._refuse = refuse
        self._uids: dict[str, int] = {}
        self._lines: dict[int, _Line] = {}
        self._unknown: dict[str, list[_Call]] = {}
        self._unknown_bytes = 0
        self._something = asyncio.Event()

    def arrive(self, header: Header, data: bytes, fds: list[int]) -> None:
        """Answer a call now, or put it in its line."""
        uid = self._uids.get(header.sender)
        if len(data) > CALL_BYTES_MAX:
            data = b""
        if uid is not None and self._is_trusted(uid) and data:
            self._answer(data, fds)
            return
        _close_all(fds)
        call = _Call(header, data, NO_DESCRIPTORS if fds else "" if data else TOO_LARGE)
        if uid is None:
            self._keep(call)
        else:
            self._lines.setdefault(uid, _Line()).put(call)
        self._something.set()

    def _keep(self, call: _Call) -> None:
        """Keep a call until it is known whose it is."""
        self._unknown_bytes += len(call.data)
        if self._unknown_bytes > UNKNOWN_BYTES_MAX:
            self._unknown_bytes -= len(call.data)
            call = _Call(call.header, b"", TOO_MANY)
        kept = self._unknown.setdefault(call.header.sender, [])
        if len(kept) < REFUSALS_MAX:
            kept.append(call)

    async def run(self) -> None:
        """Let calls through until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            while self._unknown or self._lines:
                await self._look_who_calls()
                await self._one_round()

    async def _look_who_calls(self) -> None:
        """Put the calls of names that are new into their users' lines."""
        while self._unknown:
            sender = next(iter(self._unknown))
            try:
                uid = await self._uid_of(sender)
            except BusError:  # it is gone
                self._forget_kept(sender)
                continue
            if len(self._uids) >= NAMES_MAX:
                del self._uids[next(iter(self._uids))]
            self._uids[sender] = uid
            for call in self._forget_kept(sender):
                self._sort(uid, call)

    def _forget_kept(self, sender: str) -> list[_Call]:
        calls = self._unknown.pop(sender)
        self._unknown_bytes -= sum(len(call.data) for call in calls)
        return calls

    def _sort(self, uid: int, call: _Call) -> None:
        if not self._is_trusted(uid):
            self._lines.setdefault(uid, _Line()).put(call)
        elif call.refusal:
            self._refuse(call.header, call.refusal)
        else:
            self._answer(call.data, [])

    async def _one_round(self) -> None:
        """Take one call from each line, and rest after each."""
        loop = asyncio.get_running_loop()
        for uid, line in list(self._lines.items()):
            if line.calls:
                began = loop.time()
                await self._pass(line.take(), line)
                await asyncio.sleep(min(REST * (loop.time() - began), REST_MAX_SEC))
            if not line.calls and not line.taken:
                del self._lines[uid]
        if self._lines and not self._unknown:
            await self._wait_more()

    async def _wait_more(self) -> None:
        """Wait for calls, where all that came are being answered."""
        if any(line.calls for line in self._lines.values()):
            return
        self._something.clear()
        try:
            async with asyncio.timeout(REST_MAX_SEC):
                await self._something.wait()
        except TimeoutError:
            pass

    async def _pass(self, call: _Call, line: _Line) -> None:
        """Answer one call, as far as that can be done now."""
        if call.refusal:
            self._refuse(call.header, call.refusal)
            return
        task = self._answer(call.data, [])
        if task is None:
            line.done()
            return
        task.add_done_callback(line.done)
        # Its first step, and the answer after it: what they cost is this call's.
        for _ in range(3):
            await asyncio.sleep(0)


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
