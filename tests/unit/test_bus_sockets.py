"""Reading and writing messages over a socket that gives and takes as little as it likes."""

import asyncio
import os
import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sdqueue.bus import wire
from sdqueue.bus.framing import BrokenStream, MessageReader
from sdqueue.bus.outbox import Outbox
from sdqueue.bus.window import STARTS_MAX, StartWindow
from sdqueue.bus.wire import Kind, Message

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    first, second = socket.socketpair()
    first.setblocking(False)
    second.setblocking(False)
    with first, second:
        yield first, second


def message(text: str) -> bytes:
    return wire.encode(
        Message(Kind.SIGNAL, 1, path="/a", interface="a.B", member="C", signature="s", body=(text,))
    )[0]


def text_of(data: bytes) -> object:
    return wire.decode(data).body[0]


@given(st.lists(st.text("ab", max_size=30), min_size=1, max_size=5), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_messages_are_cut_right_however_the_bytes_arrive(
    pair: Pair, texts: list[str], data: st.DataObject
) -> None:
    stream = b"".join(map(message, texts))
    reader, got = MessageReader(pair[1]), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        pair[0].sendall(stream[:size])
        stream = stream[size:]
        while (item := reader.read()) is not None:
            got.append(text_of(item[0]))
    assert got == texts


def test_descriptors_belong_to_the_message_that_they_were_sent_with(pair: Pair) -> None:
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    for number, fds in enumerate(([], [null], [], [null, null], [])):
        data = message(str(number))
        assert socket.send_fds(pair[0], [data], fds) == len(data)
    os.close(null)
    reader, counts = MessageReader(pair[1]), []
    while (item := reader.read()) is not None:
        counts.append((text_of(item[0]), len(item[1])))
        for fd in item[1]:
            assert not os.get_inheritable(fd)
            os.close(fd)
    assert counts == [("0", 0), ("1", 1), ("2", 0), ("3", 2), ("4", 0)]


@pytest.mark.usefixtures("no_new_files")
def test_descriptors_of_a_message_that_never_ends_are_closed(pair: Pair) -> None:
    socket.send_fds(pair[0], [message("x")[:20]], [0, 0])
    pair[0].close()
    reader = MessageReader(pair[1])
    with pytest.raises(BrokenStream, match="closed the connection"):
        reader.read()
    reader.close()


def drain(sock: socket.socket) -> bytes:
    got = b""
    while True:
        try:
            data = sock.recv(1 << 20)
        except BlockingIOError:
            return got
        if not data:
            return got
        got += data


@pytest.mark.usefixtures("no_new_files")
def test_a_full_socket_is_waited_for_and_order_is_kept(pair: Pair) -> None:
    parts = [bytes([number]) * 100_000 for number in range(20)]

    async def main() -> bytes:
        outbox = Outbox(pair[0], pytest.fail)
        for part in parts:
            outbox.put(part)
        assert outbox.waiting_bytes > 0
        got = b""
        draining = asyncio.ensure_future(outbox.wait_drained())
        while not draining.done():
            got += drain(pair[1])
            await asyncio.sleep(0)
        outbox.close()
        return got + drain(pair[1])

    assert asyncio.run(main()) == b"".join(parts)


@pytest.mark.usefixtures("no_new_files")
def test_a_closed_peer_breaks_the_queue_once_and_what_comes_after_is_dropped(pair: Pair) -> None:
    broken: list[str] = []

    async def main() -> None:
        outbox = Outbox(pair[0], broken.append)
        pair[1].close()
        for _ in range(3):
            outbox.put(b"x", [0])
        await outbox.wait_drained()

    asyncio.run(main())
    assert broken == ["Broken pipe"]


@pytest.mark.usefixtures("no_new_files")
def test_a_descriptor_that_is_not_open_puts_nothing_in(pair: Pair) -> None:
    async def main() -> None:
        outbox = Outbox(pair[0], pytest.fail)
        with pytest.raises(OSError, match="Bad file descriptor"):
            outbox.put(b"x", [0, 999_999])
        outbox.put(b"y")
        assert drain(pair[1]) == b"y"
        outbox.close()

    asyncio.run(main())


# -- the window ------------------------------------------------------------------------------------


def test_an_end_that_is_read_before_the_reply_is_not_lost() -> None:
    async def main() -> None:
        window = StartWindow()
        for job in range(STARTS_MAX * 2):
            await window.wait_place()
            with window.starting() as started:
                window.ended(job)
                started(job)
        assert window.open_starts == 0

    asyncio.run(main())


def test_a_start_that_failed_gives_its_place_back() -> None:
    async def main() -> None:
        window = StartWindow()
        for _ in range(STARTS_MAX * 2):
            await window.wait_place()
            with pytest.raises(ZeroDivisionError), window.starting():
                _ = 1 // 0
        assert window.open_starts == 0

    asyncio.run(main())


def test_an_old_end_of_a_number_that_comes_again_is_forgotten() -> None:
    async def main() -> None:
        window = StartWindow()
        window.ended(7)
        await window.wait_place()
        with window.starting() as started:
            started(7)
        assert window.open_starts == 1
        window.ended(7)
        window.ended(7)
        assert window.open_starts == 0

    asyncio.run(main())


def test_when_the_manager_goes_all_places_are_free() -> None:
    async def main() -> None:
        window = StartWindow()
        for job in range(STARTS_MAX):
            await window.wait_place()
            with window.starting() as started:
                started(job)
        waiting = asyncio.ensure_future(window.wait_place())
        await asyncio.sleep(0)
        assert not waiting.done()
        window.forget()
        await waiting
        assert window.open_starts == 0

    asyncio.run(main())
