"""A message bus of a test's own, and what tests of connections need beside it.

    with private_bus(directory) as daemon:      a dbus-daemon on a socket below the directory
    async with fake_bus(directory, talk) as address:     a peer that says what the test wants
    with marshalling_by("dbus_fast"):           the other library does the marshalling
    await until(predicate)                      waits for what only the loop can bring about
    post(bus, destination, path, interface, member)      a call whose answer nobody wants

Nothing here is part of what is tested.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sdqueue.bus import wire
from sdqueue.bus.connection import Bus
from sdqueue.bus.wire import Kind, Message
from tests.harness.tools import require, require_programs
from tests.harness.waiting import LIMIT_SEC


@dataclass(slots=True)
class Daemon:
    """A running dbus-daemon."""

    address: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Have it do nothing, and not even notice, inside the block."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def private_bus(directory: Path) -> Iterator[Daemon]:
    """Start a dbus-daemon with the limits of a session bus, and end it."""
    require_programs("dbus-daemon")
    command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address"]
    command.append(f"--address=unix:path={directory}/bus")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield Daemon(process.stdout.readline().strip(), process)
        finally:
            process.kill()


@contextlib.contextmanager
def marshalling_by(library: str) -> Iterator[None]:
    """Use the one library or the other inside the block."""
    try:
        wire.use_library(library)
    except ImportError as error:
        require(str(error))
    try:
        yield
    finally:
        wire.use_library(wire.LIBRARIES[0])


async def until(predicate: Callable[[], object]) -> None:
    """Let the loop go on until the predicate holds."""
    async with asyncio.timeout(LIMIT_SEC):
        while not predicate():
            await asyncio.sleep(0.002)


def open_descriptors() -> int:
    """Count this process's descriptors, the one that counts them not included."""
    return len(os.listdir("/proc/self/fd")) - 1


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def fake_bus(directory: Path, talk: Talk) -> AsyncIterator[str]:
    """Listen where a bus would; `talk` says to each client what the test wants, then hangs up."""
    talks: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())  # type: ignore[arg-type]
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    path = directory / "fake"
    server = await asyncio.start_unix_server(answer, path)
    try:
        yield f"unix:path={path}"
    finally:
        server.close()
        await server.wait_closed()
        if talks:
            await asyncio.wait(talks)


async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Authenticate a client as a bus does, and read its Hello."""
    await reader.readuntil(b"BEGIN\r\n")
    writer.write(b"DATA\r\nOK 0123456789abcdef0123456789abcdef\r\nAGREE_UNIX_FD\r\n")
    await read_message(reader)


async def read_message(reader: asyncio.StreamReader) -> Message:
    """Read one message of a client."""
    fixed = await reader.readexactly(16)
    fields_bytes = int.from_bytes(fixed[12:16], "little")
    rest = fields_bytes + -fields_bytes % 8 + int.from_bytes(fixed[4:8], "little")
    return wire.decode(fixed + await reader.readexactly(rest))


def hello_reply(name: str = ":1.7") -> bytes:
    """Give the bytes of the bus's answer to a client's first message."""
    return message_bytes(Message(Kind.RETURN, 1, reply_serial=1, signature="s", body=(name,)))


def message_bytes(message: Message) -> bytes:
    """Give the bytes of a message."""
    return wire.encode(message)[0]


def post(
    bus: Bus,
    destination: str,
    path: str,
    interface: str,
    member: str,
    signature: str = "",
    *body: object,
) -> None:
    """Call a method, and say that no answer is wanted."""
    bus._send(
        Message(
            Kind.CALL,
            bus._next_serial(),
            path=path,
            interface=interface,
            member=member,
            destination=destination,
            signature=signature,
            body=body,
            flags=wire.NO_REPLY_EXPECTED,
        )
    )
