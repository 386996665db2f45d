"""Strangers may call as much as they like: each is answered or refused, and nobody else waits."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sdqueue.bus.connection import Bus
from sdqueue.bus.interface import Interface, Method, args
from sdqueue.bus.service import Service
from sdqueue.bus.tree import ObjectTree
from sdqueue.bus.turnstile import CALL_BYTES_MAX, CALLS_MAX, NO_DESCRIPTORS, TOO_LARGE, TOO_MANY
from sdqueue.words.errors import BusGone, LimitsExceeded, RemoteError
from tests.bus.busdaemon import Daemon, open_descriptors, post, private_bus, until

PATH, NAME = "/org/example/desk", "org.example.Desk"
SPEND_SEC = 0.002
TRUSTED = 0
ANNA, BERT = 1000, 1001

pytestmark = pytest.mark.usefixtures("no_new_files")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with private_bus(tmp_path_factory.mktemp("bus")) as found:
        yield found


class KnownService(Service):
    """A service that takes connections for those of the users whom a test names."""

    __slots__ = ("uids",)
    uids: dict[str, int]

    async def _uid_of(self, sender: str) -> int:
        await self.credentials(sender)
        return self.uids.get(sender, TRUSTED)


@dataclass
class Desk:
    """What is called: it counts, spends time, and can be held up."""

    seen: list[str] = field(default_factory=list)
    spent_sec: float = 0.0
    held: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    def spend(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() - began < SPEND_SEC:
            pass
        self.spent_sec += loop.time() - began

    async def hold(self) -> None:
        self.held += 1
        await self.go.wait()


DESK = Interface(
    NAME,
    (
        Method("Say", lambda _request, desk, word: desk.seen.append(word), args("word:s")),
        Method("Spend", lambda _request, desk: desk.spend()),
        Method("Hold", lambda _request, desk: desk.hold()),
        Method("Take", lambda _request, _desk, _fd: None, args("fd:h")),
    ),
)


@dataclass
class Scene:
    """A desk on a bus, and callers of several users."""

    daemon: Daemon
    server: Bus
    service: KnownService
    desk: Desk
    opened: list[Bus] = field(default_factory=list)

    async def caller(self, uid: int) -> Bus:
        bus = await Bus.connect(self.daemon.address)
        self.service.uids[bus.unique_name] = uid
        self.opened.append(bus)
        return bus

    async def call(self, caller: Bus, member: str, signature: str = "", *body: object) -> str:
        """Call, and return what came of it: "" or the error's text."""
        where = self.server.unique_name, PATH, NAME
        try:
            await caller.call(*where, member, signature, *body, timeout_sec=60)
        except RemoteError as error:
            return error.text if error.name == LimitsExceeded.bus_name else str(error)
        return ""


@pytest.fixture
def play(daemon: Daemon, run_async: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that serves a desk while a coroutine function plays with it."""

    async def playing(act: Callable[[Scene], Awaitable[None]]) -> None:
        async with await Bus.connect(daemon.address) as server:
            desk, tree = Desk(), ObjectTree()
            tree.add(PATH, desk, DESK)
            service = KnownService(server, tree)
            service.uids = {}
            service.start(is_trusted=lambda uid: uid == TRUSTED)
            scene = Scene(daemon, server, service, desk)
            try:
                await act(scene)
            finally:
                for each in scene.opened:
                    await each.aclose()

    return lambda act: run_async(playing(act))


def test_a_flood_is_answered_or_refused_and_others_are_not_kept_waiting(
    play: Callable[..., Any],
) -> None:
    async def act(it: Scene) -> None:
        anna, bert, root = [await it.caller(uid) for uid in (ANNA, BERT, TRUSTED)]
        flood = [asyncio.ensure_future(it.call(anna, "Spend")) for _ in range(400)]
        for _ in range(20):
            assert await it.call(root, "Say", "s", "root") == ""
        assert await it.call(bert, "Say", "s", "bert") == ""
        assert not all(each.done() for each in flood)
        said = await asyncio.gather(*flood)
        assert set(said) == {"", TOO_MANY}
        assert said.count("") >= CALLS_MAX

    play(act)


def test_strangers_have_a_fifth_of_the_time_at_most(play: Callable[..., Any]) -> None:
    async def act(it: Scene) -> None:
        anna, loop = await it.caller(ANNA), asyncio.get_running_loop()
        began = loop.time()
        for _ in range(50):
            assert await it.call(anna, "Spend") == ""
        # The last rest is not waited for.
        assert loop.time() - began > 4.8 * it.desk.spent_sec

    play(act)


def test_answers_that_take_a_while_count_and_end(play: Callable[..., Any]) -> None:
    async def act(it: Scene) -> None:
        anna, other = await it.caller(ANNA), await it.caller(ANNA)
        held = [asyncio.ensure_future(it.call(anna, "Hold")) for _ in range(CALLS_MAX)]
        await until(lambda: it.desk.held == CALLS_MAX)
        assert await it.call(other, "Say", "s", "x") == TOO_MANY
        assert await it.call(await it.caller(BERT), "Say", "s", "bert") == ""
        it.desk.go.set()
        assert set(await asyncio.gather(*held)) == {""}
        assert await it.call(other, "Say", "s", "x") == ""

    play(act)


def test_a_large_call_is_not_read_whoever_sends_it(play: Callable[..., Any]) -> None:
    async def act(it: Scene) -> None:
        for uid in (ANNA, TRUSTED):
            caller = await it.caller(uid)
            for _ in range(2):
                assert await it.call(caller, "Say", "s", "x" * CALL_BYTES_MAX) == TOO_LARGE
            assert await it.call(caller, "Say", "s", "small") == ""
        assert it.desk.seen == ["small", "small"]

    play(act)


def test_a_stranger_s_descriptors_are_closed_at_once(play: Callable[..., Any]) -> None:
    async def act(it: Scene) -> None:
        anna, root = await it.caller(ANNA), await it.caller(TRUSTED)
        assert await it.call(root, "Say", "s", "x") == ""
        before = open_descriptors()
        with open("/dev/null") as file:
            said = [it.call(anna, "Take", "h", file.fileno()) for _ in range(50)]
            assert set(await asyncio.gather(*said)) == {NO_DESCRIPTORS}
            assert await it.call(root, "Take", "h", file.fileno()) == ""
        await until(lambda: open_descriptors() == before)

    play(act)


def test_a_newcomer_who_is_trusted_is_answered_in_order_and_never_refused(
    play: Callable[..., Any],
) -> None:
    async def act(it: Scene) -> None:
        root = await it.caller(TRUSTED)
        words = [str(number) for number in range(4 * CALLS_MAX)]
        said = await asyncio.gather(*(it.call(root, "Say", "s", word) for word in words))
        assert (set(said), it.desk.seen) == ({""}, words)

    play(act)


def test_the_calls_of_a_stranger_are_answered_in_order(play: Callable[..., Any]) -> None:
    async def act(it: Scene) -> None:
        anna = await it.caller(ANNA)
        words = [str(number) for number in range(CALLS_MAX)]
        said = await asyncio.gather(*(it.call(anna, "Say", "s", word) for word in words))
        assert (set(said), it.desk.seen) == ({""}, words)

    play(act)


def test_calls_that_want_no_answer_are_dropped_when_there_are_too_many(
    play: Callable[..., Any],
) -> None:
    async def act(it: Scene) -> None:
        anna = await it.caller(ANNA)
        assert await it.call(anna, "Say", "s", "first") == ""
        for _ in range(5000):
            post(anna, it.server.unique_name, PATH, NAME, "Say", "s", "flood")
        await until(lambda: len(it.desk.seen) > CALLS_MAX)
        while await it.call(anna, "Say", "s", "last") != "":
            await asyncio.sleep(0)
        assert it.desk.seen[-1] == "last"
        assert len(it.desk.seen) < 5000

    play(act)


def test_who_leaves_before_it_is_known_who_that_was_harms_nobody(play: Callable[..., Any]) -> None:
    async def act(it: Scene) -> None:
        for _ in range(20):
            leaver = await it.caller(ANNA)
            going = asyncio.ensure_future(it.call(leaver, "Hold"))
            await asyncio.sleep(0)
            leaver.close()
            with pytest.raises(BusGone):
                await going
        assert await it.call(await it.caller(BERT), "Say", "s", "bert") == ""
        assert await it.call(await it.caller(TRUSTED), "Say", "s", "root") == ""

    play(act)
