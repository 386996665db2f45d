"""One connection to a message bus, for calling, for listening and for serving.

Knows serial numbers, pending calls, match rules and when a connection is over; it must not know
systemd, nor what the messages are about.

Theory of operation. One socket, read when it is readable: a reply wakes the one call that waits for
it, a signal goes to plain functions in the order of the wire, a call goes to whoever serves.
Written is through an `Outbox`. There is one end: `_end()`, called by whatever notices first that
the connection is gone, closes the descriptors, fails every pending call with BusGone, cancels the
handlers that still run, and lets `wait_closed()` return. A `Bus` is never reused; who wants to go
on connects anew and reconciles.

A call waits no longer than its time-out. The reply may come later all the same, with descriptors in
it, a lease perhaps: these are closed, or the lease would be held for ever.
"""

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from types import TracebackType

from sdqueue.bus import wire
from sdqueue.bus.framing import BrokenStream, MessageReader
from sdqueue.bus.header import Header, peek
from sdqueue.bus.login import open_socket
from sdqueue.bus.match import BUS_NAME, Listeners, Match, Signal, SignalHandler
from sdqueue.bus.outbox import Outbox
from sdqueue.bus.wire import Kind, Message
from sdqueue.words.errors import BusGone, CallTimeout, RemoteError, UsageError

log = logging.getLogger(__name__)

BUS_PATH = "/org/freedesktop/DBus"

_MESSAGES_PER_TURN = 128
_LINGER_SEC = 2.0

CallHandler = Callable[[Message], "asyncio.Task[object] | None"]
"""Answers a call; gives the task that does, where that is not done yet."""
Gate = Callable[[Header, bytes, list[int]], None]
"""Takes a call that is not unmarshalled yet, with its descriptors, and may `deliver` it."""


@dataclass(slots=True)
class _Pending:
    answer: "asyncio.Future[Message]"
    is_fds_wanted: bool


class Bus:
    """A connected bus. `unique_name` is ours; `await Bus.connect(…)` is the only way to get one."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.address = address
        self.unique_name = ""
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._reader = MessageReader(sock)
        self._outbox = Outbox(sock, self._end)
        self._serials = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._listeners = Listeners()
        self._serve: CallHandler | None = None
        self._gate: Gate | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._gone: str | None = None
        self._is_ours_to_end = False
        self._ended = asyncio.Event()
        self._loop.add_reader(sock.fileno(), self._on_readable)

    @classmethod
    async def connect(cls, address: str, *, timeout_sec: float = 10.0) -> "Bus":
        """Connect, authenticate and say Hello; raise BusGone where that can't be done in time."""
        try:
            async with asyncio.timeout(timeout_sec):
                bus = cls(await open_socket(address), address)
                await bus._hello(timeout_sec)
        except TimeoutError:
            raise BusGone(f"{address} did not answer within {timeout_sec:g} s") from None
        return bus

    async def _hello(self, timeout_sec: float) -> None:
        try:
            (name,) = await self.call(
                BUS_NAME, BUS_PATH, BUS_NAME, "Hello", timeout_sec=timeout_sec
            )
            if not isinstance(name, str) or not name.startswith(":"):
                raise BusGone(f"{self.address} gave us no name but {name!r:.80}")
            self.unique_name = name
        except RemoteError as error:
            self._end("refused")
            raise BusGone(f"{self.address} refuses us: {error}") from None
        except BaseException:
            self._end("closed before Hello was answered")
            raise

    # -- calling -----------------------------------------------------------------------------------

    async def call(
        self,
        destination: str,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        *body: object,
        timeout_sec: float = 25.0,
        reply_fds: bool = False,
        interactive: bool = False,
    ) -> tuple[object, ...]:
        """Call a method and return the values of its reply; `interactive`: a person may be asked
        for leave.

        Descriptors in `body` stay the caller's and may be closed once the call waits; those in the
        reply are closed unless `reply_fds` asks for them, and then they are the caller's. Raise
        RemoteError, CallTimeout, BusGone, or UsageError where the message can't be sent.
        """
        request = Message(
            Kind.CALL,
            self._next_serial(),
            path=path,
            interface=interface,
            member=member,
            destination=destination,
            signature=signature,
            body=body,
            flags=wire.ALLOW_INTERACTIVE_AUTHORIZATION if interactive else 0,
        )
        data, fds = wire.encode(request)
        self._check_open()
        answer: asyncio.Future[Message] = self._loop.create_future()
        self._pending[request.serial] = _Pending(answer, reply_fds)
        try:
            self._put(data, fds)
            async with asyncio.timeout(timeout_sec):
                reply = await answer
        except BaseException as error:
            self._pending.pop(request.serial, None)
            _discard(answer)
            if isinstance(error, TimeoutError):
                raise CallTimeout(
                    f"{destination} did not answer {member} within {timeout_sec:g} s"
                ) from None
            raise
        return _result(reply)

    async def ask_bus(self, member: str, signature: str = "", *body: object) -> object:
        """Call a method of the bus itself and return its first value, None where there is none."""
        values = await self.call(BUS_NAME, BUS_PATH, BUS_NAME, member, signature, *body)
        return values[0] if values else None

    # -- listening ---------------------------------------------------------------------------------

    async def add_match(self, match: Match, handler: SignalHandler) -> None:
        """Have `handler` called with every signal that fits, in the order of the wire.

        Signals of a well-known `sender` count only if its owner of that moment sent them: anybody
        may address a signal to us. Handlers must not block and must not raise.
        """
        if match.sender and not match.sender.startswith(":"):
            await self._watch_owner(match.sender)
        if self._listeners.add(match, handler):
            try:
                await self.ask_bus("AddMatch", "s", match.rule())
            except BaseException:
                self._listeners.remove(match, handler)
                raise

    async def remove_match(self, match: Match, handler: SignalHandler) -> None:
        """Have a handler not called any more."""
        if self._listeners.remove(match, handler) and self.is_open:
            await self.ask_bus("RemoveMatch", "s", match.rule())

    async def wait_gone(self, name: str) -> None:
        """Wait until nobody owns a name; at once where nobody does."""
        gone = asyncio.Event()

        def on_change(signal: Signal) -> None:
            if not signal.body[2]:
                gone.set()

        changes = Match(BUS_NAME, BUS_NAME, "NameOwnerChanged", BUS_PATH, arg0=name)
        await self.add_match(changes, on_change)
        try:
            if await self.name_owner(name):
                await gone.wait()
        finally:
            await self.remove_match(changes, on_change)

    async def _watch_owner(self, name: str) -> None:
        owners = self._listeners.owners
        if name in owners:
            return

        def on_change(signal: Signal) -> None:
            owners[name] = str(signal.body[2])

        changes = Match(BUS_NAME, BUS_NAME, "NameOwnerChanged", BUS_PATH, arg0=name)
        await self.add_match(changes, on_change)
        owner = await self.name_owner(name)
        # A change that was read after the reply, but before we run, knows better.
        owners.setdefault(name, owner)

    async def name_owner(self, name: str) -> str:
        """Return the unique name of who owns a name, "" where nobody does."""
        try:
            return str(await self.ask_bus("GetNameOwner", "s", name))
        except RemoteError as error:
            if error.name == f"{BUS_NAME}.Error.NameHasNoOwner":
                return ""
            raise

    async def request_name(self, name: str, *, replace: bool = False) -> bool:
        """Own a well-known name, alone or not at all; return whether we do.

        Nobody may take it from us, and we do not queue for it. `replace` takes it from an owner
        that lets itself be replaced.
        """
        flags = 4 | (2 if replace else 0)
        return await self.ask_bus("RequestName", "su", name, flags) in (1, 4)

    # -- serving -----------------------------------------------------------------------------------

    def serve(self, handler: CallHandler | None, gate: Gate | None = None) -> None:
        """Have `handler` called with every method call that arrives; it owns the descriptors.

        With a `gate`, calls go there first.
        """
        self._serve, self._gate = handler, gate

    def deliver(self, data: bytes, fds: list[int]) -> "asyncio.Task[object] | None":
        """Unmarshal a call that a gate has let through, and have it answered."""
        message = self._decode(data, fds)
        return self._on_call(message) if message else None

    def refuse(self, header: Header, error_name: str, text: str) -> None:
        """Answer a call that a gate does not let through."""
        call = Message(Kind.CALL, header.serial, sender=header.sender, flags=header.flags)
        self.reply_error(call, error_name, text)

    def spawn(self, work: Coroutine[object, object, object], name: str) -> "asyncio.Task[object]":
        """Run a handler that waits; it is kept until it ends, and cancelled with the connection."""
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def emit(
        self, path: str, interface: str, member: str, signature: str = "", *body: object
    ) -> None:
        """Emit a signal to all who listen; silently dropped once the connection is gone."""
        self._send(
            Message(
                Kind.SIGNAL,
                self._next_serial(),
                path=path,
                interface=interface,
                member=member,
                signature=signature,
                body=body,
            )
        )

    def reply(self, to: Message, signature: str = "", *body: object) -> None:
        """Answer a call; descriptors in `body` stay the caller's and may be closed at once.

        Nothing is sent where no answer was asked for, or the connection is gone. Raise UsageError
        where the message can't be sent; then it is not answered yet.
        """
        self._answer(Kind.RETURN, to, signature, body)

    def reply_error(self, to: Message, error_name: str, text: str) -> None:
        """Answer a call with an error; whatever `text` is, it is made fit to be sent."""
        self._answer(Kind.ERROR, to, "s", (sendable(text),), error_name)

    def _answer(
        self,
        kind: Kind,
        to: Message,
        signature: str,
        body: tuple[object, ...],
        error_name: str = "",
    ) -> None:
        if to.flags & wire.NO_REPLY_EXPECTED:
            return
        self._send(
            Message(
                kind,
                self._next_serial(),
                destination=to.sender,
                reply_serial=to.serial,
                error_name=error_name,
                signature=signature,
                body=body,
            )
        )

    # -- the end -----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the connection still stands, as far as is known."""
        return self._gone is None

    async def wait_closed(self) -> None:
        """Wait until the connection is over and its handlers have ended; raise BusGone unless it
        was `close()` that ended it.
        """
        await self._ended.wait()
        if others := self._tasks - {asyncio.current_task()}:
            await asyncio.wait(others)
        if not self._is_ours_to_end:
            raise BusGone(self._gone or "")

    def close(self) -> None:
        """Close the connection now; what could not be written yet is lost."""
        self._is_ours_to_end = self._is_ours_to_end or self.is_open
        self._end("it was closed here")

    async def aclose(self) -> None:
        """End the handlers, let them answer, write what waits (for two seconds at most), close."""
        self._serve = None
        try:
            async with asyncio.timeout(_LINGER_SEC):
                if others := self._tasks - {asyncio.current_task()}:
                    _cancel_all(others)
                    await asyncio.wait(others)
                await self._outbox.wait_drained()
        except TimeoutError:
            pass
        finally:
            self.close()

    async def __aenter__(self) -> "Bus":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _end(self, why: str) -> None:
        if self._gone is not None:
            return
        self._gone = f"the connection to {self.address} is gone: {why}"
        self._loop.remove_reader(self._sock.fileno())
        self._outbox.close()
        self._reader.close()
        self._sock.close()
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(BusGone(self._gone))
        self._pending.clear()
        _cancel_all(self._tasks)
        self._ended.set()

    def _check_open(self) -> None:
        if self._gone is not None:
            raise BusGone(self._gone)

    # -- the wire ----------------------------------------------------------------------------------

    def _next_serial(self) -> int:
        return next(self._serials) & 0xFFFFFFFF or next(self._serials)

    def _put(self, data: bytes, fds: list[int]) -> None:
        try:
            self._outbox.put(data, fds)
        except OSError as error:
            raise UsageError(f"a descriptor to be sent is not open: {error.strerror}") from None

    def _send(self, message: Message) -> None:
        data, fds = wire.encode(message)
        if self.is_open:
            self._put(data, fds)

    def _on_readable(self) -> None:
        """Read what is there, up to a share that leaves the loop to others too."""
        for _ in range(_MESSAGES_PER_TURN):
            try:
                item = self._reader.read()
            except BrokenStream as error:
                self._end(str(error))
                return
            if item is None:
                return
            self._on_bytes(*item)
            if not self.is_open:
                return

    def _on_bytes(self, data: bytes, fds: list[int]) -> None:
        header = peek(data)
        if header is not None and header.kind == Kind.SIGNAL:
            _close_all(fds)
            self._listeners.dispatch(Signal(header, lambda: wire.decode(data).body))
            return
        if self._gate and data[1] == Kind.CALL:
            if header is None:
                _close_all(fds)
            else:
                self._gate(header, data, fds)
            return
        message = self._decode(data, fds)
        if message is None:
            return
        if message.kind is Kind.CALL:
            self._on_call(message)
        elif message.kind is Kind.SIGNAL:
            message.close_fds()
        else:
            self._on_reply(message)

    def _decode(self, data: bytes, fds: list[int]) -> Message | None:
        try:
            return wire.decode(data, fds)
        except wire.Malformed as error:
            # One message that can't be read is no reason to lose all the others.
            log.warning("a message of %d bytes can't be read: %s", len(data), error)
            _close_all(fds)
            return None

    def _on_reply(self, message: Message) -> None:
        pending = self._pending.pop(message.reply_serial, None)
        if pending is None or pending.answer.done():
            message.close_fds()
            return
        if message.fds and not pending.is_fds_wanted:
            message.close_fds()
            message = replace(message, fds=())
        pending.answer.set_result(message)

    def _on_call(self, message: Message) -> "asyncio.Task[object] | None":
        if self._serve is not None:
            return self._serve(message)
        message.close_fds()
        self.reply_error(message, f"{BUS_NAME}.Error.UnknownObject", "nothing is served here")
        return None


def sendable(text: str) -> str:
    """Return the text as a D-Bus string can hold it: no NUL, no lone surrogate, not endless."""
    return str(wire.escaped(text))[:4096]


def _result(reply: Message) -> tuple[object, ...]:
    """Return the reply's values, or raise it, where it is an error."""
    if reply.kind is Kind.RETURN:
        return reply.body
    reply.close_fds()
    text = reply.body[0] if reply.body else ""
    raise RemoteError(reply.error_name, text if isinstance(text, str) else "")


def _discard(answer: "asyncio.Future[Message]") -> None:
    """Give up an answer that nobody will look at, with the descriptors it may have brought."""
    if not answer.done():
        answer.cancel()
    elif not answer.cancelled() and answer.exception() is None:
        answer.result().close_fds()


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _cancel_all(tasks: "set[asyncio.Task[object]]") -> None:
    for task in tasks:
        task.cancel()
