"""Served objects answer every call once, tell nothing of our inside, and leak no descriptor.

busctl is the witness that does not share our marshalling. Every test runs with both libraries.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import pytest

from sdqueue.bus import wire
from sdqueue.bus.connection import Bus
from sdqueue.bus.interface import Interface, Method, Property, SignalSpec, args
from sdqueue.bus.match import Match, Signal
from sdqueue.bus.service import PROPERTIES, Request, Service
from sdqueue.bus.tree import CHILDREN_MAX, ObjectTree, object_path
from sdqueue.bus.wire import Variant
from sdqueue.words.errors import BusGone, RemoteError, WrongState
from tests.bus.busdaemon import (
    Daemon,
    marshalling_by,
    open_descriptors,
    post,
    private_bus,
    until,
)

RunAsync = Callable[..., Any]
NAME = "org.example.Shop"
ROOT = "/org/example/shop"
SHELF = f"{ROOT}/shelf"
FAILED = "org.sdqueue1.Error.Failed"

pytestmark = pytest.mark.usefixtures("no_new_files")


@pytest.fixture(autouse=True, params=wire.LIBRARIES)
def _library(request: pytest.FixtureRequest) -> Iterator[None]:
    with marshalling_by(request.param):
        yield


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with private_bus(tmp_path_factory.mktemp("bus")) as found:
        yield found


@dataclass
class Shop:
    """An object that does what the tests need done."""

    count: int = 3
    leases: list[int] = field(default_factory=list)
    looked_up: list[str] = field(default_factory=list)
    entered: int = 0
    cancelled: int = 0

    def lease(self, _request: Request) -> int:
        read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.leases.append(read_end)
        return write_end

    async def slow(self, _request: Request) -> None:
        self.entered += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1

    async def who(self, request: Request) -> tuple[int, int]:
        who = await request.credentials()
        return who.uid, who.pid


def refuse(_request: Request, _shop: Shop, what: str) -> None:
    raise WrongState(f"{what} is closed")


async def refuse_later(_request: Request, _shop: Shop) -> None:
    await asyncio.sleep(0)
    raise WrongState("still closed")


def crash(_request: Request, _shop: Shop) -> None:
    raise KeyError("/secret/path of the shop")


async def crash_later(_request: Request, _shop: Shop) -> None:
    await asyncio.sleep(0)
    raise KeyError("/secret/path of the shop")


def echo(_request: Request, _shop: Shop, value: object) -> Variant:
    return Variant("s", repr(value))


def read_of(_request: Request, _shop: Shop, fd: int) -> bytes:
    assert not os.get_inheritable(fd)
    return os.pread(fd, 100, 0)


SHOP = Interface(
    NAME,
    methods=(
        Method("Refuse", refuse, args("what:s")),
        Method("RefuseLater", refuse_later),
        Method("Crash", crash),
        Method("CrashLater", crash_later),
        Method("Slow", lambda request, shop: shop.slow(request)),
        Method("Lease", lambda request, shop: shop.lease(request), gives=args("fd:h")),
        Method("Who", lambda request, shop: shop.who(request), gives=args("uid:u", "pid:u")),
        Method("Echo", echo, args("value:v"), args("seen:v")),
        Method("ReadOf", read_of, args("fd:h"), args("content:ay")),
        Method("Pair", lambda _r, _s: [(1, "a"), (2, "b")], gives=args("pairs:a(us)")),
        Method("Unsendable", lambda _r, _s: 5, gives=args("text:s")),
        Method("Odd", lambda _r, _s: {"a\0": [("\udc80", 1)]}, gives=args("odd:a{sa(si)}")),
        Method("TooFew", lambda _r, _s: 1, gives=args("one:u", "two:u")),
        Method("BadLease", lambda r, s: (s.lease(r), 5), gives=args("fd:h", "text:s")),
    ),
    properties=(
        Property("Count", "u", lambda shop: shop.count),
        Property("Big", "s", lambda _shop: "x" * 10, emits="invalidates"),
        Property("Fixed", "as", lambda _shop: ["a", "b"], emits="const"),
    ),
    signals=(SignalSpec("Opened", args("by:s")),),
)
ITEM = Interface(
    "org.example.Item", properties=(Property("Name", "s", lambda name: name, emits="const"),)
)

Client = Callable[..., Awaitable[tuple[object, ...]]]


@dataclass(slots=True)
class Scene:
    """A served shop and a client of it."""

    address: str
    server: Bus
    client: Bus
    service: Service
    shop: Shop

    async def call(self, member: str, signature: str = "", *body: Any, **options: Any) -> Any:
        path = options.pop("path", ROOT)
        interface = options.pop("interface", NAME)
        return await self.client.call(
            self.server.unique_name, path, interface, member, signature, *body, **options
        )

    async def error_of(self, *rest: Any, **options: Any) -> tuple[str, str]:
        with pytest.raises(RemoteError) as caught:
            await self.call(*rest, **options)
        return caught.value.name, caught.value.text

    async def busctl(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "busctl", f"--address={self.address}", *words, stdout=-1, stderr=-1
        )
        out, err = await process.communicate()
        return (out or err).decode().strip()


@pytest.fixture
def scene(daemon: Daemon, run_async: RunAsync) -> Callable[[Callable[[Scene], Any]], Any]:
    """Return the function that serves a shop while a coroutine function looks at it."""

    async def play(act: Callable[[Scene], Awaitable[None]]) -> None:
        async with (
            await Bus.connect(daemon.address) as server,
            await Bus.connect(daemon.address) as client,
        ):
            shop = Shop()
            service = Service(server, shop_tree(shop))
            service.start()
            assert await server.request_name(NAME)
            try:
                await act(Scene(daemon.address, server, client, service, shop))
            finally:
                for fd in shop.leases:
                    os.close(fd)

    return lambda act: run_async(play(act))


def shop_tree(shop: Shop) -> ObjectTree:
    def find(name: str) -> str | None:
        shop.looked_up.append(name)
        return name if name.startswith("item-") and name[5:].isdecimal() else None

    tree = ObjectTree()
    tree.add(ROOT, shop, SHOP)
    tree.add_family(SHELF, find, lambda: (f"item-{number}" for number in range(100_000)), ITEM)
    return tree


Play = Callable[[Callable[[Scene], Awaitable[None]]], None]


# -- answers ---------------------------------------------------------------------------------------


def test_our_errors_keep_their_name_and_their_words(scene: Play) -> None:
    async def act(it: Scene) -> None:
        wanted = "org.sdqueue1.Error.WrongState"
        assert await it.error_of("Refuse", "s", "it") == (wanted, "it is closed")
        assert await it.error_of("RefuseLater") == (wanted, "still closed")

    scene(act)


@pytest.mark.parametrize("member", ["Crash", "CrashLater", "Unsendable", "TooFew", "BadLease"])
def test_a_fault_of_ours_is_logged_once_and_tells_the_client_nothing(
    member: str, scene: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(it: Scene) -> None:
        name, text = await it.error_of(member)
        assert name == FAILED
        assert text == f"{member}: internal error, see the journal"
        await it.client.ask_bus("GetId")

    scene(act)
    ours = [record for record in caplog.records if record.name == "sdqueue.bus.service"]
    assert len(ours) == 1
    assert ours[0].exc_info
    assert not [record for record in caplog.records if record.name == "root"]


def test_a_cancelled_handler_still_answers(scene: Play) -> None:
    async def act(it: Scene) -> None:
        waiting = asyncio.ensure_future(it.error_of("Slow"))
        await until(lambda: it.shop.entered)
        (task,) = it.server._tasks
        task.cancel()
        assert await waiting == (FAILED, "Slow was cancelled")
        assert it.shop.cancelled == 1

    scene(act)


def test_closing_ends_handlers_and_each_call_is_answered(scene: Play) -> None:
    """Among them those that the close cancels before their first step."""

    async def act(it: Scene) -> None:
        waiting = [asyncio.ensure_future(it.error_of("Slow")) for _ in range(20)]
        await until(lambda: it.server._tasks)
        await it.server.aclose()
        answers = await asyncio.gather(*waiting)
        assert {name for name, _ in answers} <= {FAILED, "org.freedesktop.DBus.Error.UnknownObject"}
        assert (FAILED, "Slow was cancelled") in answers
        assert it.shop.cancelled == it.shop.entered
        await it.server.wait_closed()

    scene(act)


def test_handlers_end_with_the_connection(scene: Play) -> None:
    async def act(it: Scene) -> None:
        waiting = asyncio.ensure_future(it.call("Slow"))
        await until(lambda: it.shop.entered)
        it.server.close()
        await it.server.wait_closed()
        assert it.shop.cancelled == 1
        with pytest.raises((RemoteError, BusGone)):
            await waiting

    scene(act)


def test_a_call_that_wants_no_answer_gets_none(scene: Play) -> None:
    async def act(it: Scene) -> None:
        unasked: list[wire.Message] = []
        it.client._on_reply = unasked.append  # type: ignore[assignment,method-assign]
        for member in ("Crash", "Who", "Nothing", "Lease"):
            post(it.client, it.server.unique_name, ROOT, NAME, member)
        await until(lambda: it.shop.leases)
        del it.client._on_reply
        await it.call("Pair")
        assert unasked == []

    scene(act)


def test_a_client_that_leaves_while_its_call_is_answered_harms_nobody(
    scene: Play, daemon: Daemon
) -> None:
    async def act(it: Scene) -> None:
        leaver = await Bus.connect(daemon.address)
        post(leaver, it.server.unique_name, ROOT, NAME, "Slow")
        going = asyncio.ensure_future(
            leaver.call(it.server.unique_name, ROOT, NAME, "Slow", timeout_sec=60)
        )
        await until(lambda: it.shop.entered == 2)
        leaver.close()
        with pytest.raises(BusGone):
            await going
        assert await it.call("Pair") == ([(1, "a"), (2, "b")],)

    scene(act)


UNKNOWN = {
    "object": (("Pair",), {"path": "/org/example/nothing"}, "UnknownObject"),
    "object of a family": (("Get",), {"path": f"{SHELF}/nothing"}, "UnknownObject"),
    "another spelling": (("Get",), {"path": object_path(SHELF, "item-1") + "_"}, "UnknownObject"),
    "interface": (("Pair",), {"interface": "org.example.Nothing"}, "UnknownInterface"),
    "method": (("Nothing",), {}, "UnknownMethod"),
    "method without interface": (("Nothing",), {"interface": ""}, "UnknownMethod"),
    "step on the way": (("Pair",), {"path": "/org"}, "UnknownInterface"),
    "signature": (("Refuse", "u", 1), {}, "InvalidArgs"),
    "no arguments": (("Refuse",), {}, "InvalidArgs"),
    "property": (("Get", "ss", NAME, "No"), {"interface": PROPERTIES.name}, "UnknownProperty"),
    "properties": (("GetAll", "s", "a.b"), {"interface": PROPERTIES.name}, "UnknownInterface"),
    "setting": (
        ("Set", "ssv", NAME, "Count", Variant("u", 1)),
        {"interface": PROPERTIES.name},
        "PropertyReadOnly",
    ),
}


@pytest.mark.parametrize(("call", "where", "name"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_there_is_said_by_the_name_d_bus_has_for_it(
    call: tuple[Any, ...], where: dict[str, str], name: str, scene: Play
) -> None:
    async def act(it: Scene) -> None:
        assert (await it.error_of(*call, **where))[0] == f"org.freedesktop.DBus.Error.{name}"

    scene(act)


def test_a_call_without_an_interface_finds_the_method(scene: Play) -> None:
    async def act(it: Scene) -> None:
        assert await it.call("Pair", interface="") == ([(1, "a"), (2, "b")],)

    scene(act)


def test_variants_arrive_as_plain_values(scene: Play) -> None:
    value = {"a": Variant("(us)", (1, "x")), "b": Variant("v", Variant("ay", b"\0\1"))}

    async def act(it: Scene) -> None:
        (seen,) = await it.call("Echo", "v", Variant("a{sv}", value))
        assert seen == repr({"a": (1, "x"), "b": b"\0\1"})

    scene(act)


def test_text_that_d_bus_can_not_carry_is_told_escaped(scene: Play) -> None:
    async def act(it: Scene) -> None:
        got: list[Signal] = []
        await it.client.add_match(Match(NAME), got.append)
        assert await it.call("Odd") == ({r"a\0": [(r"\udc80", 1)]},)
        it.service.emit(ROOT, SHOP, "Opened", "by\0\udc80")
        await until(lambda: got)
        assert got[0].body == (r"by\0\udc80",)

    scene(act)


def test_a_caller_is_known_by_what_the_bus_says_and_asked_for_once(scene: Play) -> None:
    async def act(it: Scene) -> None:
        asked: list[str] = []
        ask = it.server.ask_bus

        async def counted(member: str, signature: str = "", *body: object) -> object:
            asked.append(member)
            return await ask(member, signature, *body)

        it.server.ask_bus = counted  # type: ignore[method-assign]
        for _ in range(3):
            assert await it.call("Who") == (os.getuid(), os.getpid())
        assert asked == ["GetConnectionCredentials"]

    scene(act)


# -- descriptors -----------------------------------------------------------------------------------


def test_a_lease_lives_as_long_as_the_clients_copy_and_no_longer(scene: Play) -> None:
    async def act(it: Scene) -> None:
        before = open_descriptors()
        for _ in range(20):
            (fd,) = await it.call("Lease", reply_fds=True)
            read_end = it.shop.leases.pop()
            with pytest.raises(BlockingIOError):
                os.read(read_end, 1)
            os.close(fd)
            await until(lambda r=read_end: _is_at_end(r))  # type: ignore[misc]
            os.close(read_end)
        assert open_descriptors() == before

    scene(act)


def _is_at_end(fd: int) -> bool:
    try:
        return os.read(fd, 1) == b""
    except BlockingIOError:
        return False


def test_a_descriptor_can_be_handed_in_and_is_closed_after(scene: Play) -> None:
    async def act(it: Scene) -> None:
        before = open_descriptors()
        with os.fdopen(os.memfd_create("x"), "wb") as file:
            file.write(b"content")
            file.flush()
            for _ in range(10):
                assert await it.call("ReadOf", "h", file.fileno()) == (b"content",)
        assert open_descriptors() == before

    scene(act)


def test_unknown_methods_called_with_descriptors_leave_none_open(scene: Play) -> None:
    async def act(it: Scene) -> None:
        with open("/dev/null", "rb") as null:
            fd = null.fileno()
            await it.error_of("Nothing", "h", fd)
            before = open_descriptors()
            for member in ("Nothing", "Pair", "Refuse", "Crash", "Slow"):
                for _ in range(10):
                    await it.error_of(member, "ah", [fd] * 3)
            await it.call("Echo", "v", Variant("h", fd))
            assert open_descriptors() == before

    scene(act)


def test_a_descriptor_that_is_missing_is_the_callers_fault(scene: Play) -> None:
    async def act(it: Scene) -> None:
        data, fds = wire.encode(
            wire.Message(
                wire.Kind.CALL,
                4242,
                path=ROOT,
                interface=NAME,
                member="ReadOf",
                destination=it.server.unique_name,
                signature="h",
                body=(0,),
            )
        )
        answer: asyncio.Future[wire.Message] = asyncio.get_running_loop().create_future()
        it.client._on_reply = answer.set_result  # type: ignore[assignment,method-assign]
        # An index that no descriptor has: one is sent, the second is named.
        it.client._outbox.put(data[:-4] + (1).to_bytes(4, "little"), fds)
        assert (await answer).error_name == "org.freedesktop.DBus.Error.InvalidArgs"
        del it.client._on_reply

    scene(act)


# -- properties and introspection ------------------------------------------------------------------


def test_properties_are_read_one_by_one_and_all_at_once(scene: Play) -> None:
    everything = {"Count": 3, "Big": "x" * 10, "Fixed": ["a", "b"]}

    async def act(it: Scene) -> None:
        where = {"interface": PROPERTIES.name}
        assert await it.call("Get", "ss", NAME, "Count", **where) == (3,)
        assert await it.call("Get", "ss", "", "Count", **where) == (3,)
        assert await it.call("GetAll", "s", NAME, **where) == (everything,)
        assert await it.call("GetAll", "s", "", **where) == (everything,)
        assert await it.call("GetAll", "s", PROPERTIES.name, **where) == ({},)

    scene(act)


def test_a_change_is_told_as_each_property_declares(scene: Play) -> None:
    async def act(it: Scene) -> None:
        got: list[Signal] = []
        await it.client.add_match(Match(NAME), got.append)
        it.shop.count = 4
        it.service.changed(ROOT, SHOP, "Count", "Big", "Fixed")
        it.service.changed(ROOT, SHOP, "Fixed")
        it.service.changed("/org/example/nothing", SHOP, "Count")
        it.service.emit(ROOT, SHOP, "Opened", "somebody")
        await until(lambda: len(got) == 2)
        assert [(signal.member, signal.body) for signal in got] == [
            ("PropertiesChanged", (NAME, {"Count": 4}, ["Big"])),
            ("Opened", ("somebody",)),
        ]

    scene(act)


def test_introspection_shows_every_member_and_only_real_children(scene: Play) -> None:
    async def act(it: Scene) -> None:
        where = {"interface": "org.freedesktop.DBus.Introspectable"}
        (xml,) = await it.call("Introspect", **where)
        node = ElementTree.fromstring(xml)
        ours = next(each for each in node if each.get("name") == NAME)
        assert [each.get("name") for each in ours.iter("method")] == [m.name for m in SHOP.methods]
        assert [each.get("name") for each in ours.iter("property")] == ["Count", "Big", "Fixed"]
        assert [each.get("name") for each in node.findall("node")] == ["shelf"]
        for path, child in (("/", "org"), ("/org", "example"), ("/org/example", "shop")):
            (xml,) = await it.call("Introspect", path=path, **where)
            assert [each.get("name") for each in ElementTree.fromstring(xml).findall("node")] == [
                child
            ]

    scene(act)


def test_introspection_lists_a_thousand_of_a_hundred_thousand_objects(scene: Play) -> None:
    async def act(it: Scene) -> None:
        where = {"interface": "org.freedesktop.DBus.Introspectable", "path": SHELF}
        (xml,) = await it.call("Introspect", **where)
        assert len(ElementTree.fromstring(xml).findall("node")) == CHILDREN_MAX

    scene(act)


def test_of_a_hundred_thousand_objects_only_the_one_asked_for_is_looked_up(scene: Play) -> None:
    async def act(it: Scene) -> None:
        path = object_path(SHELF, "item-77777")
        where = {"interface": PROPERTIES.name}
        assert await it.call("Get", "ss", ITEM.name, "Name", path=path, **where) == ("item-77777",)
        assert it.shop.looked_up == ["item-77777"]

    scene(act)


def test_peer_is_answered_on_every_path(scene: Play) -> None:
    async def act(it: Scene) -> None:
        where = {"interface": "org.freedesktop.DBus.Peer", "path": "/nowhere/at/all"}
        assert await it.call("Ping", **where) == ()

    scene(act)


@pytest.mark.needs("busctl")
def test_busctl_reads_calls_and_introspects_what_we_serve(scene: Play) -> None:
    async def act(it: Scene) -> None:
        assert await it.busctl("get-property", NAME, ROOT, NAME, "Count") == "u 3"
        assert await it.busctl("call", NAME, ROOT, NAME, "Pair") == 'a(us) 2 1 "a" 2 "b"'
        echoed = await it.busctl("call", NAME, ROOT, NAME, "Echo", "v", "(ub)", "1", "true")
        assert echoed == 'v s "(1, True)"'
        assert await it.busctl("call", NAME, ROOT, NAME, "Refuse", "s", "it") == (
            "Call failed: it is closed"
        )
        listing = await it.busctl("--no-legend", "introspect", NAME, ROOT)
        rows = {tuple(line.split()[:3]) for line in listing.splitlines()}
        assert (".Echo", "method", "v") in rows
        assert (".Count", "property", "u") in rows
        assert (".Opened", "signal", "s") in rows

    scene(act)


def test_the_loggers_that_speak_are_our_own(scene: Play, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def act(it: Scene) -> None:
        await it.error_of("Nothing")
        await it.error_of("RefuseLater")
        await it.error_of("Refuse", "u", 1)

    scene(act)
    names = {record.name for record in caplog.records}
    assert names <= {"asyncio"}, "a client's mistake is the client's to read, not the journal's"
