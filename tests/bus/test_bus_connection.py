"""A connection lives through bursts, silence and hostile peers, and ends in one way only.

Every test runs with both libraries that can do the marshalling.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sdqueue.bus import wire
from sdqueue.bus.connection import BUS_PATH, Bus
from sdqueue.bus.match import BUS_NAME, Match, Signal
from sdqueue.bus.outbox import WAITING_BYTES_MAX
from sdqueue.bus.wire import Kind, Message, Variant
from sdqueue.words.errors import BusError, BusGone, CallTimeout, RemoteError, UsageError
from tests.bus.busdaemon import (
    Daemon,
    fake_bus,
    hello_reply,
    marshalling_by,
    message_bytes,
    open_descriptors,
    private_bus,
    read_message,
    until,
    welcome,
)

RunAsync = Callable[..., Any]
TEST = "org.example.Test"
PATH = "/org/example"
MIB = 1024 * 1024
BURST_LIMIT_SEC = 600.0
"""The bursts take two seconds of a free processor; a busy machine has its own idea of that."""

pytestmark = pytest.mark.usefixtures("no_new_files")


@pytest.fixture(autouse=True, params=wire.LIBRARIES)
def _library(request: pytest.FixtureRequest) -> Iterator[None]:
    with marshalling_by(request.param):
        yield


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with private_bus(tmp_path_factory.mktemp("bus")) as found:
        yield found


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A bus that the test may kill."""
    with private_bus(tmp_path) as found:
        yield found


@contextlib.asynccontextmanager
async def two(daemon: Daemon) -> AsyncIterator[tuple[Bus, Bus]]:
    """Connect twice."""
    async with (
        await Bus.connect(daemon.address) as one,
        await Bus.connect(daemon.address) as other,
    ):
        yield one, other


async def serve_raw(bus: Bus, answer: Callable[[Message], None]) -> str:
    bus.serve(answer)
    return bus.unique_name


def call(bus: Bus, destination: str, member: str = "Do", *rest: Any, **options: Any) -> Any:
    return bus.call(destination, PATH, TEST, member, *rest, **options)


# -- bursts ----------------------------------------------------------------------------------------


def test_twenty_thousand_signals_of_one_tick_all_arrive_in_order(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with two(daemon) as (ours, other):
            got: list[Signal] = []
            await other.add_match(Match(ours.unique_name, TEST), got.append)
            for number in range(20_000):
                ours.emit(PATH, TEST, "Counted", "u", number)
            await until(lambda: len(got) == 20_000)
            assert [signal.body[0] for signal in got] == list(range(20_000))

    run_async(main(), limit_sec=BURST_LIMIT_SEC)


def test_two_thousand_calls_at_once_are_all_answered(daemon: Daemon, run_async: RunAsync) -> None:
    async def main() -> None:
        async with await Bus.connect(daemon.address) as bus:
            ask = (BUS_NAME, BUS_PATH, BUS_NAME, "GetNameOwner", "s", bus.unique_name)
            owners = await asyncio.gather(
                *(bus.call(*ask, timeout_sec=BURST_LIMIT_SEC) for _ in range(2000))
            )
            assert owners == [(bus.unique_name,)] * 2000

    run_async(main(), limit_sec=BURST_LIMIT_SEC)


def test_a_message_larger_than_the_socket_buffer_goes_through_both_ways(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):
            await serve_raw(peer, lambda message: peer.reply(message, "ay", *message.body))
            big = os.urandom(4 * MIB)
            answers = await asyncio.gather(
                *(call(bus, peer.unique_name, "Echo", "ay", big) for _ in range(3))
            )
            assert answers == [(big,)] * 3

    run_async(main())


# -- the end ---------------------------------------------------------------------------------------


def test_where_no_bus_is_the_error_names_the_address(tmp_path: Path, run_async: RunAsync) -> None:
    address = f"unix:path={tmp_path}/none"
    with pytest.raises(BusGone, match=r"/none: No such file or directory"):
        run_async(Bus.connect(address))


def test_the_next_address_is_tried_when_the_first_does_not_answer(
    daemon: Daemon, tmp_path: Path, run_async: RunAsync
) -> None:
    async def main() -> None:
        bus = await Bus.connect(f"unix:path={tmp_path}/none;{daemon.address}")
        await bus.aclose()

    run_async(main())


SAYINGS = {
    "nothing": b"",
    "half an answer": b"DATA\r\nOK 0123",
    "a refusal": b"DATA\r\nREJECTED EXTERNAL\r\n",
    "another protocol": b"220 smtp.example.org ESMTP\r\n",
    "a line without end": b"x" * 10_000,
    "no descriptors": b"DATA\r\nOK 0123\r\nERROR\r\n",
    "more than was asked": b"DATA\r\nOK 0123\r\nAGREE_UNIX_FD\r\nand more",
}


@pytest.mark.parametrize("saying", SAYINGS.values(), ids=SAYINGS.keys())
def test_a_peer_that_ends_during_authentication_is_no_bus(
    saying: bytes, tmp_path: Path, run_async: RunAsync
) -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(saying)

    async def main() -> None:
        async with fake_bus(tmp_path, talk) as address:
            with pytest.raises(BusGone, match="no message bus at"):
                await Bus.connect(address)

    run_async(main())


@pytest.mark.parametrize("last", ["", "authentication"])
def test_a_peer_that_falls_silent_is_given_up_in_time(
    last: str, tmp_path: Path, run_async: RunAsync
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if last:
            await welcome(reader, writer)
        await reader.read()

    async def main() -> None:
        async with fake_bus(tmp_path, talk) as address:
            with pytest.raises(BusGone, match=r"did not answer within 0\.3 s"):
                await Bus.connect(address, timeout_sec=0.3)

    run_async(main())


REFUSED = Message(
    Kind.ERROR,
    1,
    reply_serial=1,
    error_name=f"{BUS_NAME}.Error.LimitsExceeded",
    signature="s",
    body=("too many",),
)
HELLOS: dict[str, tuple[bytes, str]] = {
    "no answer": (b"", "the connection to .* is gone"),
    "a refusal": (message_bytes(REFUSED), r"refuses us: .*LimitsExceeded: too many"),
    "no unique name": (hello_reply("org.example.NotUnique"), "gave us no name"),
}


@pytest.mark.parametrize(("answer", "says"), HELLOS.values(), ids=HELLOS.keys())
def test_a_bus_that_answers_hello_without_a_name_of_ours_is_no_bus(
    answer: bytes, says: str, tmp_path: Path, run_async: RunAsync
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await welcome(reader, writer)
        writer.write(answer)

    async def main() -> None:
        async with fake_bus(tmp_path, talk) as address:
            with pytest.raises(BusGone, match=says):
                await Bus.connect(address)

    run_async(main())


def test_a_bus_that_dies_fails_every_pending_call_and_every_later_one(
    own_daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        bus, peer = await Bus.connect(own_daemon.address), await Bus.connect(own_daemon.address)
        asked: list[Message] = []
        await serve_raw(peer, asked.append)
        calls = [asyncio.ensure_future(call(bus, peer.unique_name)) for _ in range(50)]
        await until(lambda: len(asked) == 50)
        own_daemon.kill()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [BusGone] * 50
        with pytest.raises(BusGone):
            await bus.wait_closed()
        with pytest.raises(BusGone):
            await call(bus, peer.unique_name)
        bus.emit(PATH, TEST, "Dropped")
        with pytest.raises(BusGone):
            await peer.wait_closed()
        assert not bus.is_open

    run_async(main())


def test_a_bus_that_dies_with_a_full_queue_leaves_no_descriptor(
    own_daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        bus = await Bus.connect(own_daemon.address)
        with own_daemon.stopped(), open("/dev/null", "rb") as null:
            for _ in range(10):
                bus.emit(PATH, TEST, "Big", "ayh", bytes(MIB), null.fileno())
            own_daemon.kill()
        with pytest.raises(BusGone):
            await bus.wait_closed()

    run_async(main())


def test_a_bus_that_never_reads_is_given_up_before_memory_is(
    own_daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        bus = await Bus.connect(own_daemon.address)
        with own_daemon.stopped():
            for _ in range(WAITING_BYTES_MAX // (8 * MIB) + 2):
                bus.emit(PATH, TEST, "Big", "ay", bytes(8 * MIB))
            with pytest.raises(BusGone, match="does not read"):
                await bus.wait_closed()

    run_async(main())


def test_closing_it_oneself_is_no_error_and_still_fails_what_waits(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        bus, peer = await Bus.connect(daemon.address), await Bus.connect(daemon.address)
        asked: list[Message] = []
        await serve_raw(peer, asked.append)
        waiting = asyncio.ensure_future(call(bus, peer.unique_name))
        await until(lambda: asked)
        bus.close()
        bus.close()
        with pytest.raises(BusGone, match="closed here"):
            await waiting
        await bus.wait_closed()
        await peer.aclose()

    run_async(main())


def test_what_was_emitted_before_the_close_is_still_written(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        bus, peer = await Bus.connect(daemon.address), await Bus.connect(daemon.address)
        got: list[Signal] = []
        await peer.add_match(Match(bus.unique_name), got.append)
        for _ in range(4):
            bus.emit(PATH, TEST, "Big", "ay", bytes(MIB))
        await bus.aclose()
        await until(lambda: len(got) == 4)
        await peer.aclose()

    run_async(main())


# -- time-outs and late replies --------------------------------------------------------------------


def test_a_stopped_peer_costs_the_caller_its_timeout_and_not_the_connection(
    own_daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with await Bus.connect(own_daemon.address) as bus:
            with own_daemon.stopped(), pytest.raises(CallTimeout, match="did not answer"):
                await call(bus, BUS_NAME, "GetId", timeout_sec=0.2)
            assert await bus.ask_bus("GetId")

    run_async(main())


@pytest.mark.parametrize("how", ["timed out", "cancelled", "not asked for"])
def test_descriptors_of_a_reply_that_nobody_takes_are_closed(
    how: str, daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):
            asked: list[Message] = []
            await serve_raw(peer, asked.append)
            wanted = how != "not asked for"
            limit = 0.2 if how == "timed out" else 25.0
            waiting = asyncio.ensure_future(
                call(bus, peer.unique_name, timeout_sec=limit, reply_fds=wanted)
            )
            await until(lambda: asked)
            if how == "timed out":
                with pytest.raises(CallTimeout):
                    await waiting
            elif how == "cancelled":
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            read_end, write_end = os.pipe2(os.O_NONBLOCK)
            peer.reply(asked[0], "h", write_end)
            os.close(write_end)
            if how == "not asked for":
                await waiting
            await wait_readable(read_end)
            assert os.read(read_end, 1) == b""
            os.close(read_end)

    run_async(main())


def test_a_reply_and_the_callers_cancellation_in_one_tick_leak_no_descriptor(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):
            asked: list[Message] = []
            await serve_raw(peer, asked.append)
            waiting = asyncio.ensure_future(call(bus, peer.unique_name, reply_fds=True))
            await until(lambda: asked)
            read_end, write_end = os.pipe2(os.O_NONBLOCK)
            reply = Message(
                Kind.RETURN, 5, reply_serial=asked[0].serial, signature="h", body=(write_end,)
            )
            bus._on_bytes(*wire.encode(reply))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert os.read(read_end, 1) == b""
            os.close(read_end)

    run_async(main())


async def wait_readable(fd: int) -> None:
    ready = asyncio.Event()
    asyncio.get_running_loop().add_reader(fd, ready.set)
    await ready.wait()
    asyncio.get_running_loop().remove_reader(fd)


# -- descriptors -----------------------------------------------------------------------------------


def test_descriptors_may_be_closed_once_sent_and_arrive_close_on_exec(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):

            def answer(message: Message) -> None:
                peer.reply(message, "h", *message.body)
                message.close_fds()

            await serve_raw(peer, answer)
            for number in range(20):
                ours = os.memfd_create("sent")
                os.write(ours, b"%d" % number)
                waiting = asyncio.ensure_future(
                    call(bus, peer.unique_name, "Echo", "h", ours, reply_fds=True)
                )
                await asyncio.sleep(0)
                os.close(ours)
                (theirs,) = await waiting
                assert os.pread(theirs, 9, 0) == b"%d" % number
                assert not os.get_inheritable(theirs)
                os.close(theirs)

    run_async(main())


def test_the_same_descriptor_named_twice_and_one_never_named_leak_nothing(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):
            read_end, write_end = os.pipe2(os.O_NONBLOCK)

            def answer(message: Message) -> None:
                reply = Message(
                    Kind.RETURN,
                    99,
                    destination=message.sender,
                    reply_serial=message.serial,
                    signature="hh",
                    body=(write_end, write_end),
                )
                data, fds = wire.encode(reply)
                # The body ends in the two indices, 0 and 1; make both of them 0.
                assert data.endswith(struct.pack("<II", 0, 1))
                peer._outbox.put(data[:-8] + struct.pack("<II", 0, 0), fds)

            await serve_raw(peer, answer)
            first, second = await call(bus, peer.unique_name, reply_fds=True)
            os.close(write_end)
            assert second == -1
            os.close(first)
            assert os.read(read_end, 1) == b""
            os.close(read_end)

    run_async(main())


def test_calls_that_nobody_serves_are_refused_and_their_descriptors_closed(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):
            before = open_descriptors()
            with open("/dev/null", "rb") as null:
                for _ in range(10):
                    with pytest.raises(RemoteError, match="UnknownObject"):
                        await call(bus, peer.unique_name, "No", "hh", null.fileno(), null.fileno())
            assert open_descriptors() == before

    run_async(main())


def test_descriptors_of_a_signal_are_closed(daemon: Daemon, run_async: RunAsync) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):
            got: list[Signal] = []
            await bus.add_match(Match(peer.unique_name), got.append)
            read_end, write_end = os.pipe2(os.O_NONBLOCK)
            peer.emit(PATH, TEST, "Here", "sh", "x", write_end)
            os.close(write_end)
            await until(lambda: got)
            assert got[0].body == ("x", -1)
            await wait_readable(read_end)
            assert os.read(read_end, 1) == b""
            os.close(read_end)

    run_async(main())


# -- what is never sent, because the bus would throw us out ----------------------------------------

UNSENDABLE: dict[str, tuple[str, object]] = {
    "a NUL": ("s", "a\0b"),
    "a lone surrogate": ("s", "a\udc80b"),
    "a NUL deep inside": ("a{sv}", {"a": Variant("as", ["\0"])}),
    "a NUL in a key": ("a{ss}", {"\0": ""}),
    "a bad object path": ("o", "/a//b"),
    "an object path with a newline": ("o", "/a\n"),
    "a bad signature": ("g", "a{"),
    "a number too large": ("u", 2**32),
    "a negative number": ("t", -1),
    "a number for a string": ("s", 1),
    "a string for an array": ("as", "abc"),
    "a plain value for a variant": ("v", "abc"),
    "a variant of two types": ("v", Variant("ss", ("a", "b"))),
    "a struct too short": ("(ss)", ("a",)),
    "a message too large": ("ay", bytes(17 * MIB)),
    "seventeen descriptors": ("ah", [0] * 17),
    "a descriptor that is not open": ("h", 999_999),
    "a signature that is none": ("(s", "a"),
    "an array deeper than allowed": ("a" * 40 + "s", []),
}


@pytest.mark.parametrize(("signature", "value"), UNSENDABLE.values(), ids=UNSENDABLE.keys())
def test_what_a_bus_would_throw_us_out_for_is_refused_before_it_is_sent(
    signature: str, value: object, daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with await Bus.connect(daemon.address) as bus:
            with pytest.raises(UsageError):
                await call(bus, BUS_NAME, "Do", signature, value)
            with pytest.raises(UsageError):
                bus.emit(PATH, TEST, "Sent", signature, value)
            assert await bus.ask_bus("GetId")

    run_async(main())


@pytest.mark.parametrize(
    "where",
    [
        ("not a name", PATH, TEST, "Do"),
        (BUS_NAME, "no/path", TEST, "Do"),
        (BUS_NAME, PATH, "nodots", "Do"),
        (BUS_NAME, PATH, TEST, "Do.It"),
        (BUS_NAME, PATH, TEST, ""),
    ],
)
def test_a_call_to_a_name_that_is_none_is_refused_before_it_is_sent(
    where: tuple[str, str, str, str], daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with await Bus.connect(daemon.address) as bus:
            with pytest.raises(UsageError):
                await bus.call(*where)
            assert await bus.ask_bus("GetId")

    run_async(main())


def test_a_call_says_whether_a_person_may_be_asked_for_leave(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def act() -> None:
        async with two(daemon) as (server, client):
            flags: list[int] = []

            def answer(message: Message) -> None:
                flags.append(message.flags)
                server.reply(message)

            name = await serve_raw(server, answer)
            for interactive in (False, True):
                await call(client, name, interactive=interactive)
            assert flags == [0, wire.ALLOW_INTERACTIVE_AUTHORIZATION]

    run_async(act())


def test_an_error_text_of_any_kind_reaches_the_caller(daemon: Daemon, run_async: RunAsync) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):
            await serve_raw(
                peer, lambda message: peer.reply_error(message, TEST, "a\0b\udc80c" + "d" * 9999)
            )
            with pytest.raises(RemoteError) as caught:
                await call(bus, peer.unique_name)
            assert caught.value.name == TEST
            assert caught.value.text.startswith(r"a\0b\udc80cd")

    run_async(main())


# -- hostile peers ---------------------------------------------------------------------------------


def test_an_error_without_words_is_an_error(daemon: Daemon, run_async: RunAsync) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, peer):
            for signature, body in (("", ()), ("u", (7,))):
                await serve_raw(
                    peer,
                    lambda message, s=signature, b=body: peer._answer(  # type: ignore[misc]
                        Kind.ERROR, message, s, b, TEST
                    ),
                )
                with pytest.raises(RemoteError) as caught:
                    await call(bus, peer.unique_name)
                assert (caught.value.name, caught.value.text) == (TEST, "")

    run_async(main())


def test_a_signal_sent_to_us_by_somebody_else_is_not_the_name_owners(
    daemon: Daemon, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with (
            await Bus.connect(daemon.address) as bus,
            await Bus.connect(daemon.address) as owner,
            await Bus.connect(daemon.address) as forger,
        ):
            assert await owner.request_name(TEST)
            got: list[Signal] = []
            await bus.add_match(Match(TEST, TEST), got.append)
            forger._send(
                Message(
                    Kind.SIGNAL,
                    77,
                    path=PATH,
                    interface=TEST,
                    member="Forged",
                    destination=bus.unique_name,
                )
            )
            await forger.ask_bus("GetId")
            owner.emit(PATH, TEST, "True")
            await until(lambda: got)
            assert [signal.member for signal in got] == ["True"]

    run_async(main())


def test_signals_of_a_name_follow_it_to_its_next_owner(daemon: Daemon, run_async: RunAsync) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, second):
            first = await Bus.connect(daemon.address)
            assert await first.request_name(TEST)
            got: list[Signal] = []
            await bus.add_match(Match(TEST, TEST), got.append)
            assert not await second.request_name(TEST)
            second.emit(PATH, TEST, "TooEarly")
            await second.ask_bus("GetId")
            await first.aclose()
            await bus.name_owner(TEST)
            assert await second.request_name(TEST)
            second.emit(PATH, TEST, "InTime")
            await until(lambda: got)
            assert [signal.member for signal in got] == ["InTime"]

    run_async(main())


def test_a_message_that_can_not_be_read_is_skipped_and_the_next_one_is(
    tmp_path: Path, run_async: RunAsync, caplog: pytest.LogCaptureFixture
) -> None:
    good = message_bytes(Message(Kind.CALL, 5, path=PATH, member="Good", sender=":1.9"))

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await welcome(reader, writer)
        writer.write(hello_reply())
        bad = bytearray(message_bytes(Message(Kind.CALL, 4, path=PATH, member="Bad")))
        bad[1] = 9
        writer.write(bytes(bad) + good)
        assert (await read_message(reader)).reply_serial == 5

    async def main() -> None:
        async with fake_bus(tmp_path, talk) as address:
            bus = await Bus.connect(address)
            with pytest.raises(BusGone):
                await bus.wait_closed()

    run_async(main())
    assert [record.name for record in caplog.records] == ["sdqueue.bus.connection"]


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"l\1\0\2" + bytes(12),
        b"l\1\0\1" + struct.pack("<III", 0x7FFFFFFF, 1, 0x7FFFFFFF),
        b"l\1\0\1" + bytes(12),
    ],
    ids=["http", "another version", "a size of four gigabytes", "no header"],
)
def test_a_peer_that_stops_speaking_dbus_is_gone(
    noise: bytes, tmp_path: Path, run_async: RunAsync
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await welcome(reader, writer)
        writer.write(hello_reply() + noise)
        await reader.read()

    async def main() -> None:
        async with fake_bus(tmp_path, talk) as address:
            bus = await Bus.connect(address)
            with pytest.raises(BusGone, match=r"peer|bus"):
                await bus.wait_closed()

    run_async(main())


# -- names -----------------------------------------------------------------------------------------


def test_a_name_has_one_owner_and_nobody_queues_for_it(daemon: Daemon, run_async: RunAsync) -> None:
    async def main() -> None:
        async with two(daemon) as (bus, other):
            assert await bus.name_owner(TEST) == ""
            assert await bus.request_name(TEST)
            assert await bus.request_name(TEST)
            assert not await other.request_name(TEST, replace=True)
            assert await other.name_owner(TEST) == bus.unique_name
        async with await Bus.connect(daemon.address) as later:
            assert await later.name_owner(TEST) == ""

    run_async(main())


def test_a_call_without_a_receiver_is_a_remote_error(daemon: Daemon, run_async: RunAsync) -> None:
    async def main() -> None:
        async with await Bus.connect(daemon.address) as bus:
            with pytest.raises(RemoteError) as caught:
                await call(bus, "org.example.Nobody")
            assert caught.value.name == f"{BUS_NAME}.Error.ServiceUnknown"
            assert isinstance(caught.value, BusError)

    run_async(main())


def test_a_full_backlog_is_waited_for(tmp_path: Path, run_async: RunAsync) -> None:
    """A Unix socket whose backlog is full says EAGAIN, which is no connection under way."""
    path = tmp_path / "full"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(0)
    queued = []
    for _ in range(8):
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        queued.append(client)
        try:
            client.connect(str(path))
        except BlockingIOError:
            break
    else:
        pytest.fail("the backlog is never full")

    async def main() -> None:
        with pytest.raises(BusGone, match="did not answer within"):
            await Bus.connect(f"unix:path={path}", timeout_sec=0.3)

    run_async(main())
    for each in (*queued, listener):
        each.close()
