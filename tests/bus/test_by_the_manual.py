"""The bus as a stranger has it who has read org.sdqueue1(5) and nothing of ours.

The client is dbus-fast's own, busctl is another. Names and paths are spelled as the manual has
them.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from dbus_fast import DBusError, PropertyAccess, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.introspection import Arg, Interface, Node

from tests.harness.engine import Engine
from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import LIMIT_SEC, eventually
from tests.unit.test_manual import BUS

NAME, PATH = "org.sdqueue1", "/org/sdqueue1"
PROPERTIES = "org.freedesktop.DBus.Properties"
LATE = "NOT_BEFORE: 2099-01-01"
GO = "go"

RunAsync = Callable[[Awaitable[Any]], Any]


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    with Queue(manager) as running:
        eventually(lambda: lane(running, "gpu") == "free", "the lane to be free")
        yield running


def lane(queue: Queue, name: str) -> str:
    rows = {row["name"]: row for row in queue.ask("ListLanes")}
    return str(rows[name]["state"])


# What is there ----------------------------------------------------------------------------------

SECTIONS = {
    "org.sdqueue1.Manager": "THE MANAGER",
    "org.sdqueue1.Lane": "LANES",
    "org.sdqueue1.Job": "JOBS",
    "org.sdqueue1.Lease": "LEASES",
}
TOLD = {"true": ", announced", "const": ", constant", "false": ""}
EMITS = "org.freedesktop.DBus.Property.EmitsChangedSignal"


def described(interface: Interface) -> dict[str, list[str]]:
    """Spell what introspection says of an interface as the manual's tags are spelled."""

    def spelled(arguments: list[Arg]) -> str:
        return ", ".join(f"{each.signature} {each.name}" for each in arguments)

    assert all(each.access is PropertyAccess.READ for each in interface.properties)
    return {
        "Methods": [
            f"{each.name}({spelled(each.in_args)}) → ({spelled(each.out_args)})"
            for each in interface.methods
        ],
        "Properties": [
            f"{each.name} ({each.signature}{TOLD[each.annotations[EMITS]]})"
            for each in interface.properties
        ],
        "Signals": [f"{each.name}({spelled(each.args)})" for each in interface.signals],
    }


def test_introspection_of_a_queue_at_work_says_what_the_manual_says(
    queue: Queue, run_async: RunAsync
) -> None:
    queue.put("52-gpu-laguna", "true", LATE)
    queue.wait_reason("52-gpu-laguna", "not-before")

    async def look(*paths: str) -> dict[str, Node]:
        bus = await connect(queue)
        try:
            return {path: await bus.introspect(NAME, path) for path in paths}
        finally:
            bus.disconnect()

    with Engine(queue.manager) as engine:
        lease = engine.acquire("cpu")
        job = f"{PATH}/job/_352_2dgpu_2dlaguna"
        nodes = run_async(look(PATH, f"{PATH}/lane/gpu", job, lease, f"{PATH}/job", f"{PATH}/lane"))
    found = {
        each.name: described(each)
        for node in nodes.values()
        for each in node.interfaces
        if each.name.startswith(NAME)
    }
    assert found == {
        name: {
            sub: BUS.tags.get((section, sub), []) for sub in ("Methods", "Properties", "Signals")
        }
        for name, section in SECTIONS.items()
    }
    assert [node.name for node in nodes[f"{PATH}/job"].nodes] == []
    assert {node.name for node in nodes[f"{PATH}/lane"].nodes} == {"cpu", "gpu", "net"}


async def connect(queue: Queue) -> MessageBus:
    return await MessageBus(bus_address=queue.manager.bus_address).connect()


# A program --------------------------------------------------------------------------------------


class Program:
    """A client of the queue: what it has been told of one lane, and of jobs."""

    def __init__(self, bus: MessageBus) -> None:
        self.bus = bus
        self.lane: dict[str, Any] = {}
        self.changes: list[dict[str, Any]] = []
        self.events: list[tuple[str, str, dict[str, Any]]] = []

    async def interface(self, path: str, name: str) -> Any:
        node = await self.bus.introspect(NAME, path)
        return self.bus.get_proxy_object(NAME, path, node).get_interface(name)

    async def follow(self, lane: str) -> None:
        self.manager = await self.interface(PATH, "org.sdqueue1.Manager")
        self.manager.on_event(self._on_event)
        self.path = await self.manager.call_get_lane(lane)
        self.properties = await self.interface(self.path, PROPERTIES)
        self.properties.on_properties_changed(self._on_changed)
        self.lane = await self.all_of("org.sdqueue1.Lane")

    async def all_of(self, interface: str) -> dict[str, Any]:
        found = await self.properties.call_get_all(interface)
        return {name: value.value for name, value in found.items()}

    def _on_event(self, event: str, job: str, fields: dict[str, Variant]) -> None:
        self.events.append((event, job, {key: each.value for key, each in fields.items()}))

    def _on_changed(self, interface: str, changed: dict[str, Variant], gone: list[str]) -> None:
        assert (interface, gone) == ("org.sdqueue1.Lane", [])
        news = {name: value.value for name, value in changed.items()}
        # Whatever is told is told because it is another.
        assert [name for name, value in news.items() if self.lane[name] == value] == []
        self.lane |= news
        self.changes.append(news)

    async def until(self, predicate: Callable[[], object]) -> None:
        async with asyncio.timeout(LIMIT_SEC):
            while not predicate():
                await asyncio.sleep(0.01)


@pytest.fixture
def play(queue: Queue, run_async: RunAsync) -> Callable[..., None]:
    async def playing(scene: Callable[[Program], Awaitable[None]]) -> None:
        bus = await connect(queue)
        try:
            program = Program(bus)
            await program.follow("gpu")
            await scene(program)
            assert program.lane.keys() == (await program.all_of("org.sdqueue1.Lane")).keys()
        finally:
            bus.disconnect()

    return lambda scene: run_async(playing(scene))


def test_a_program_follows_a_lane_by_what_is_announced(
    queue: Queue, play: Callable[..., None]
) -> None:
    go = queue.manager.home / GO

    async def scene(it: Program) -> None:
        assert it.lane["State"] == "free"
        assert "jobs" in await it.manager.get_features()
        queue.put("1-gpu-a", f"until [ -e {go} ]; do sleep 0.02; done")
        await it.until(lambda: it.lane["State"] == "running")
        await it.until(lambda: ("start", "1-gpu-a") in [each[:2] for each in it.events])
        assert it.lane["Holder"] == "sdqueue-job-1-gpu-a.service"
        told = len(it.changes)
        # These change nothing of what is announced: no signal, although the queue is busy.
        for number in range(20):
            queue.put(f"2-gpu-{number:02}", "true", LATE)
        queue.put("3-cpu-a", "true")
        await it.until(lambda: ("done", "3-cpu-a") in [each[:2] for each in it.events])
        assert (await it.all_of("org.sdqueue1.Lane"))["Queued"] == 0
        assert len(it.changes) == told
        await it.manager.call_pause_lane("gpu", True)
        await it.until(lambda: it.lane["State"] == "paused")
        await it.manager.call_pause_lane("gpu", True)
        await it.manager.call_pause_lane("gpu", False)
        await it.until(lambda: it.lane["State"] == "running")
        assert [change["Paused"] for change in it.changes[told:]] == [True, False]
        go.touch()
        await it.until(lambda: it.lane["State"] == "free")
        now = await it.all_of("org.sdqueue1.Lane")
        assert {name: it.lane[name] for name in ("State", "Holder", "Detail", "Generation")} == {
            name: now[name] for name in ("State", "Holder", "Detail", "Generation")
        }
        generations = [each["Generation"] for each in it.changes if "Generation" in each]
        assert generations == sorted(set(generations))

    play(scene)


def test_a_program_looks_at_a_job_and_cancels_it(queue: Queue, play: Callable[..., None]) -> None:
    async def scene(it: Program) -> None:
        queue.put("52-gpu-laguna", "true", LATE, "RETRIES: 5")
        await it.until(lambda: ("wait", "52-gpu-laguna") in [each[:2] for each in it.events])
        path = await it.manager.call_get_job("52-gpu-laguna")
        assert path == f"{PATH}/job/_352_2dgpu_2dlaguna"
        job = await it.interface(path, "org.sdqueue1.Job")
        assert await job.get_state() == "queued"
        assert (await job.get_reason())["code"].value == "not-before"
        assert (await job.get_attempts_max(), await job.get_rc()) == (5, -1)
        assert await job.get_uid() == os.getuid()
        assert await job.call_cancel() == "parked"
        with pytest.raises(DBusError) as gone:
            await job.get_state()
        assert gone.value.type == "org.freedesktop.DBus.Error.UnknownObject"
        for name, error in (("52-gpu-laguna", "WrongState"), ("nobody", "NoSuchJob")):
            with pytest.raises(DBusError) as refused:
                await it.manager.call_cancel_job(name)
            assert refused.value.type == f"org.sdqueue1.Error.{error}"
        with pytest.raises(DBusError) as unknown:
            await it.manager.call_get_lane("gup")
        assert unknown.value.type == "org.sdqueue1.Error.InvalidArgs"

    play(scene)


def test_a_running_job_is_an_object_with_its_unit(queue: Queue, play: Callable[..., None]) -> None:
    async def scene(it: Program) -> None:
        queue.put("1-gpu-a", '[ "$SDQUEUE_ATTEMPT" = 2 ] || exit 7; sleep 1000', "RETRIES: 2")
        await it.until(lambda: [each[0] for each in it.events].count("start") == 2)
        job = await it.interface(await it.manager.call_get_job("1-gpu-a"), "org.sdqueue1.Job")
        assert (await job.get_state(), await job.get_run(), await job.get_attempt()) == (
            "running",
            2,
            2,
        )
        (started,) = [each[2] for each in it.events[-1:] if each[0] == "start"]
        assert await job.get_unit() == started["unit"] == "sdqueue-job-1-gpu-a.service"
        assert await job.get_invocation_id() == started["invocation"]
        assert await job.call_cancel() == "stopping"
        await it.until(lambda: "canceled" in [each[0] for each in it.events])

    play(scene)


# The manual's own examples ----------------------------------------------------------------------


def test_the_examples_of_the_manual_say_what_it_says(queue: Queue) -> None:
    queue.put("1-gpu-a", "sleep 1000")
    queue.wait_running("1-gpu-a")
    queue.put("52-gpu-laguna", "true")
    queue.wait_reason("52-gpu-laguna", "lane-taken")
    *examples, monitor = BUS.examples["EXAMPLES"]
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(examples), re.M):
        done = queue.manager.run(["bash", "-c", command])
        assert done.stdout
        assert expected in ("", done.stdout)
    command = monitor.removeprefix("$ ")
    file = queue.manager.home / "monitored"
    with (
        file.open("w") as out,
        queue.manager.popen(["bash", "-c", f"exec {command}"], stdout=out, stderr=out) as watching,
    ):
        try:
            eventually(lambda: "Monitoring" in file.read_text(), "the monitor")
            queue.put("1-cpu-seen", "true")
            eventually(lambda: "Member=Event" in file.read_text(), "the signal")
        finally:
            watching.kill()
