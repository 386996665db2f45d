"""What the client says of systemd's manager, as coroutines that ask a real one.

    for claim in ALL: await claim(client)      each begins and ends with no unit of ours loaded

The tests walk this list with a private user manager (both libraries) and with PID 1 of every
version. `client_of(address)` gives the client; `TARGETS` must be among the manager's unit files.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from sdqueue.bus import systemd
from sdqueue.bus import systemd_words as words
from sdqueue.bus.connection import Bus
from sdqueue.bus.match import Match, Signal
from sdqueue.bus.systemd import (
    STARTS_MAX,
    JobRemoved,
    ManagerBack,
    ManagerGone,
    Properties,
    Reloading,
    Systemd,
    SystemdEvent,
    UnitChanged,
    UnitJob,
    UnitNew,
    UnitRemoved,
    reaction,
)
from sdqueue.bus.wire import Kind, Message, Variant
from sdqueue.words.errors import RemoteError
from tests.bus.busdaemon import post, until

E = TypeVar("E", bound=SystemdEvent)

TARGETS = {
    "sdqtest-a.target": "[Unit]\nConflicts=sdqtest-b.target\n",
    "sdqtest-b.target": "[Unit]\nConflicts=sdqtest-a.target\n",
}


@dataclass(slots=True)
class Client:
    """A connected client and all that it was told."""

    bus: Bus
    events: list[SystemdEvent] = field(default_factory=list)
    systemd: Systemd = field(init=False)

    def __post_init__(self) -> None:
        self.systemd = Systemd(self.bus, self.events.append, prefixes=("sdqtest-",))

    async def start(
        self, unit: str, *argv: str, more: Properties = (), mode: str = "fail"
    ) -> UnitJob:
        return await self.systemd.start_transient(unit, oneshot(*argv, more=more), mode=mode)

    async def told(self, kind: type[E], **wanted: object) -> E:
        """Wait until an event of that kind with those values is there, and return it."""

        def find() -> E | None:
            return next((e for e in self.events if isinstance(e, kind) and fits(e, wanted)), None)

        await until(find)
        found = find()
        assert found is not None
        return found

    async def ended(self, job: UnitJob) -> str:
        return (await self.told(JobRemoved, job_id=job.id)).result

    async def stop(self, unit: str, job: UnitJob) -> None:
        """Stop a unit whose start job is still queued, and see it off; it counts as failed then.

        The start job is cancelled at once; the stop job ends when the processes have.
        """
        stopping = await self.systemd.stop_unit(unit)
        assert await self.ended(job) == "canceled"
        assert await self.ended(stopping) == "done"
        with contextlib.suppress(RemoteError):
            await self.systemd.reset_failed(unit)
        await self.told(UnitRemoved, unit=unit)

    def of_unit(self, unit: str) -> list[SystemdEvent]:
        return [event for event in self.events if getattr(event, "unit", None) == unit]

    async def refusal(self, unit: str, **options: Any) -> str | None:
        with pytest.raises(RemoteError) as caught:
            await self.start(unit, "/bin/true", **options)
        return reaction(caught.value)


def fits(event: SystemdEvent, wanted: dict[str, object]) -> bool:
    return all(getattr(event, name) == value for name, value in wanted.items())


def oneshot(*argv: str, more: Properties = ()) -> Properties:
    return [("Type", "s", "oneshot"), *more, ("ExecStart", "a(sasb)", [(argv[0], argv, False)])]


@contextlib.asynccontextmanager
async def client_of(address: str) -> AsyncIterator[Client]:
    """Give a subscribed client; units that a failed claim leaves are seen off."""
    async with await Bus.connect(address) as bus:
        client = Client(bus)
        await client.systemd.subscribe()
        try:
            yield client
        finally:
            await clear(client)


async def clear(client: Client) -> None:
    """Let go of the units of a test that went wrong, or all after it would."""
    for unit in await client.systemd.list_units(["sdqtest-*.service"]):
        with contextlib.suppress(RemoteError):
            await client.ended(await client.systemd.stop_unit(unit.name))
            await client.systemd.reset_failed(unit.name)


def lane(own: str, other: str) -> Properties:
    return [
        ("Requires", "as", [f"sdqtest-{own}.target"]),
        ("After", "as", [f"sdqtest-{own}.target", f"sdqtest-{other}.target"]),
        ("Conflicts", "as", [f"sdqtest-{other}.target"]),
    ]


# -- signals ---------------------------------------------------------------------------------------


async def all_that_is_to_be_known_of_a_run_is_told_before_its_job_removed(it: Client) -> None:
    job = await it.start("sdqtest-seven.service", "/bin/sh", "-c", "exit 7")
    assert await it.ended(job) == "failed"
    await it.systemd.reset_failed("sdqtest-seven.service")
    await it.told(UnitRemoved, unit="sdqtest-seven.service")
    story = it.of_unit("sdqtest-seven.service")
    assert isinstance(story[0], UnitNew)
    assert isinstance(story[-1], UnitRemoved)
    end = next(i for i, event in enumerate(story) if isinstance(event, JobRemoved))
    known: dict[str, object] = {}
    for event in story[1:end]:
        assert isinstance(event, UnitChanged)
        known.update(event.properties)
    assert known["Result"] == "exit-code"
    assert known["ExecMainStatus"] == 7
    assert known["ActiveState"] == "failed"
    assert isinstance(known["InvocationID"], bytes)
    assert len(known["InvocationID"]) == 16


async def the_last_properties_changed_says_all_that_the_ones_before_it_said(it: Client) -> None:
    """That is why only the last of those read together is looked at."""

    seen: list[Signal] = []
    path = f"{words.UNIT_PATHS}/sdqtest_2dall_2eservice"
    await it.bus.add_match(Match(systemd.NAME, systemd.PROPERTIES, path=path), seen.append)
    job = await it.start("sdqtest-all.service", "/bin/true")
    await it.ended(job)
    await it.told(UnitRemoved, unit="sdqtest-all.service")
    for interface in (words.UNIT, words.SERVICE):
        keys = [set(signal.body[1]) for signal in seen if signal.arg0 == interface]  # type: ignore[call-overload]
        assert len(keys) >= 2
        assert all(each == keys[-1] for each in keys)


async def units_that_were_not_asked_for_are_not_told_but_their_job_ends_are(it: Client) -> None:
    job = await it.start("other-unit.service", "/bin/true")
    await it.ended(job)
    after = await it.start("sdqtest-after.service", "/bin/true")
    await it.ended(after)
    await it.told(UnitRemoved, unit="sdqtest-after.service")
    assert [type(event) for event in it.of_unit("other-unit.service")] == [JobRemoved]


async def a_forged_job_removed_is_not_believed(it: Client) -> None:
    async with await Bus.connect(it.bus.address) as forger:
        forger._send(
            Message(
                Kind.SIGNAL,
                9,
                path=words.PATH,
                interface=words.MANAGER,
                member="JobRemoved",
                destination=it.bus.unique_name,
                signature="uoss",
                body=(1, "/x", "sdqtest-forged.service", "done"),
            )
        )
        await forger.ask_bus("GetId")
    job = await it.start("sdqtest-true.service", "/bin/true")
    await it.ended(job)
    assert not it.of_unit("sdqtest-forged.service")


async def subscribing_twice_does_no_harm_and_tells_nothing_twice(it: Client) -> None:
    await it.systemd.subscribe()
    job = await it.start("sdqtest-once.service", "/bin/true")
    await it.ended(job)
    await it.told(UnitRemoved, unit="sdqtest-once.service")
    ends = [e for e in it.of_unit("sdqtest-once.service") if isinstance(e, JobRemoved)]
    assert len(ends) == 1


# -- refusals --------------------------------------------------------------------------------------


async def a_name_that_is_taken_is_refused_as_existing(it: Client) -> None:
    job = await it.start("sdqtest-taken.service", "/bin/sleep", "infinity")
    assert await it.refusal("sdqtest-taken.service") == "exists"
    await it.stop("sdqtest-taken.service", job)


async def a_start_in_an_excluded_lane_is_refused_and_leaves_nothing_loaded(it: Client) -> None:
    more = lane("a", "b")
    job = await it.start("sdqtest-a1.service", "/bin/sleep", "infinity", more=more)
    await it.told(UnitChanged, unit="sdqtest-a1.service")
    assert await it.refusal("sdqtest-b1.service", more=lane("b", "a")) == "occupied"
    assert await it.systemd.unit_properties("sdqtest-b1.service") is None
    (running,) = await it.systemd.list_units(["sdqtest-a1.*"])
    assert running.active_state == "activating"
    assert running.job_id == job.id
    await it.stop("sdqtest-a1.service", job)
    next_job = await it.start("sdqtest-b1.service", "/bin/true", more=lane("b", "a"))
    assert await it.ended(next_job) == "done"


MALFORMED: dict[str, tuple[tuple[str, str, object], str]] = {
    "a requirement that is not there": (("Requires", "as", ["no-such.target"]), "missing"),
    "a property that is unknown": (("Colour", "s", "blue"), "invalid"),
    "a property of another type": (("MemoryMax", "s", "37G"), "invalid"),
    "a value out of range": (("Nice", "i", 50), "invalid"),
}


async def a_start_that_can_not_be_is_refused_by_what_it_needs(it: Client) -> None:
    for prop, wanted in MALFORMED.values():
        assert await it.refusal("sdqtest-bad.service", more=[prop]) == wanted
        assert not await it.systemd.list_units(["sdqtest-bad.service"])


# -- reading ---------------------------------------------------------------------------------------


async def a_finished_unit_read_by_its_path_lies_and_we_say_it_is_gone(it: Client) -> None:
    more: Properties = [("CollectMode", "s", "inactive-or-failed")]
    job = await it.start("sdqtest-gone.service", "/bin/sh", "-c", "exit 7", more=more)
    assert await it.ended(job) == "failed"
    await it.told(UnitRemoved, unit="sdqtest-gone.service")
    path = f"{words.UNIT_PATHS}/sdqtest_2dgone_2eservice"
    (stub,) = await it.bus.call(
        systemd.NAME, path, systemd.PROPERTIES, "Get", "ss", words.SERVICE, "Result"
    )
    assert stub == "success"
    assert await it.systemd.unit_properties("sdqtest-gone.service") is None


async def a_failed_unit_is_kept_until_it_is_reset(it: Client) -> None:
    more: Properties = [("CollectMode", "s", "inactive")]
    job = await it.start("sdqtest-kept.service", "/bin/sh", "-c", "exit 7", more=more)
    await it.ended(job)
    properties = await it.systemd.unit_properties("sdqtest-kept.service")
    assert properties is not None
    assert (properties["Result"], properties["ExecMainStatus"]) == ("exit-code", 7)
    assert properties["ActiveState"] == "failed"
    (listed,) = await it.systemd.list_units(["sdqtest-kept.*"], ["failed"])
    assert (listed.name, listed.job_id) == ("sdqtest-kept.service", 0)
    assert not await it.systemd.list_units(["sdqtest-kept.*"], ["active"])
    await it.systemd.reset_failed("sdqtest-kept.service")
    await it.told(UnitRemoved, unit="sdqtest-kept.service")


async def what_runs_is_listed_found_by_its_process_and_can_be_killed(it: Client) -> None:
    job = await it.start("sdqtest-runs.service", "/bin/sleep", "infinity")
    await it.told(UnitChanged, unit="sdqtest-runs.service")
    jobs = await it.systemd.list_unit_jobs()
    found = next(each for each in jobs if each.id == job.id)
    assert (found.unit, found.type, found.state) == ("sdqtest-runs.service", "start", "running")
    properties = await it.systemd.unit_properties("sdqtest-runs.service")
    assert properties is not None
    pid = properties["MainPID"]
    assert isinstance(pid, int)
    assert await it.systemd.unit_by_pid(pid) == "sdqtest-runs.service"
    await it.systemd.kill_unit("sdqtest-runs.service", signal.SIGKILL)
    assert await it.ended(job) == "failed"
    assert await it.systemd.unit_by_pid(pid) is None
    await it.systemd.reset_failed("sdqtest-runs.service")


async def a_unit_has_a_state_as_long_as_it_is_loaded(it: Client) -> None:
    job = await it.start("sdqtest-state.service", "/bin/sleep", "infinity")
    await it.told(UnitChanged, unit="sdqtest-state.service")
    assert await it.systemd.active_state("sdqtest-state.service") == "activating"
    await it.stop("sdqtest-state.service", job)
    assert await it.systemd.active_state("sdqtest-state.service") == ""


async def the_manager_says_where_its_control_group_is(it: Client) -> None:
    root = await it.systemd.control_group()
    assert root == "" or root.startswith("/")
    assert not root.endswith(("/", "/init.scope"))


async def the_manager_says_its_version_and_that_it_has_started(it: Client) -> None:
    properties = await it.systemd.manager_properties()
    assert await it.systemd.version() >= 252
    assert str(properties["Version"]).startswith(str(await it.systemd.version()))
    assert properties["FinishTimestamp"]
    assert properties["SystemState"] in ("running", "degraded")


async def descriptors_can_be_handed_to_a_unit(it: Client) -> None:
    read_end, write_end = os.pipe()
    more: Properties = [("StandardOutputFileDescriptor", "h", write_end)]
    job = await it.start("sdqtest-pipe.service", "/bin/echo", "hello", more=more)
    os.close(write_end)
    assert await it.ended(job) == "done"
    assert await asyncio.to_thread(os.read, read_end, 100) == b"hello\n"
    assert await asyncio.to_thread(os.read, read_end, 100) == b""
    os.close(read_end)


# -- reload, re-execution, a bus that dies ---------------------------------------------------------


async def a_reload_keeps_the_unit_job_and_what_is_told_between_means_nothing(it: Client) -> None:
    job = await it.start("sdqtest-stays.service", "/bin/sleep", "infinity")
    await it.told(UnitChanged, unit="sdqtest-stays.service")
    it.events.clear()
    await it.systemd.reload()
    await it.told(Reloading, active=False)
    events = [event for event in it.events if not isinstance(event, UnitChanged)]
    assert events[0] == Reloading(True)
    assert UnitRemoved("sdqtest-stays.service") in events
    assert UnitNew("sdqtest-stays.service") in events
    assert events[-1] == Reloading(False)
    (unit,) = await it.systemd.list_units(["sdqtest-stays.service"])
    assert unit.job_id == job.id
    assert it.systemd.open_starts == 1
    it.events.clear()
    await it.stop("sdqtest-stays.service", job)
    assert it.systemd.open_starts == 0


async def after_a_reexecution_one_subscribes_again_and_learns_the_end(it: Client) -> None:
    job = await it.start("sdqtest-stays.service", "/bin/sleep", "infinity")
    await it.told(UnitChanged, unit="sdqtest-stays.service")
    post(it.bus, words.NAME, words.PATH, words.MANAGER, "Reexecute")
    await it.told(ManagerBack)
    assert it.events.index(ManagerGone()) < it.events.index(ManagerBack())
    assert it.systemd.open_starts == 0
    await it.systemd.subscribe()
    (unit,) = await it.systemd.list_units(["sdqtest-stays.service"])
    assert (unit.job_id, unit.active_state) == (job.id, "activating")
    it.events.clear()
    await it.stop("sdqtest-stays.service", job)


# -- the window ------------------------------------------------------------------------------------


async def no_more_than_sixty_four_starts_are_open_and_each_end_lets_one_in(it: Client) -> None:
    count = STARTS_MAX + 3
    starts = [
        asyncio.ensure_future(it.start(f"sdqtest-w{number}.service", "/bin/sleep", "infinity"))
        for number in range(count)
    ]
    await until(lambda: sum(start.done() for start in starts) == STARTS_MAX)
    assert it.systemd.open_starts == STARTS_MAX
    for number in range(count):
        await it.stop(f"sdqtest-w{number}.service", await starts[number])
    assert it.systemd.open_starts == 0


async def short_jobs_and_refused_starts_give_their_places_back(it: Client) -> None:
    for _ in range(STARTS_MAX + 1):
        assert await it.refusal("sdqtest-bad.service", more=[("No", "s", "")]) == "invalid"
    jobs = await asyncio.gather(
        *(it.start(f"sdqtest-s{number}.service", "/bin/true") for number in range(200))
    )
    for job in jobs:
        assert await it.ended(job) == "done"
    assert it.systemd.open_starts == 0
    await it.told(UnitRemoved, unit="sdqtest-s199.service")


async def a_variant_of_ours_means_the_same_to_the_manager_as_a_plain_property(it: Client) -> None:
    """Units beside the main one are Variants inside structs inside arrays."""

    more = [("Description", Variant("s", "of a slice"))]
    await it.bus.call(
        systemd.NAME,
        words.PATH,
        words.MANAGER,
        "StartTransientUnit",
        "ssa(sv)a(sa(sv))",
        "sdqtest-x.service",
        "fail",
        [("ExecStart", Variant("a(sasb)", [("/bin/true", ["true"], False)]))],
        [("sdqtest.slice", more)],
    )
    await it.told(JobRemoved, unit="sdqtest-x.service")


ALL: list[Callable[[Client], Awaitable[None]]] = [
    all_that_is_to_be_known_of_a_run_is_told_before_its_job_removed,
    the_last_properties_changed_says_all_that_the_ones_before_it_said,
    units_that_were_not_asked_for_are_not_told_but_their_job_ends_are,
    a_forged_job_removed_is_not_believed,
    subscribing_twice_does_no_harm_and_tells_nothing_twice,
    a_name_that_is_taken_is_refused_as_existing,
    a_start_in_an_excluded_lane_is_refused_and_leaves_nothing_loaded,
    a_start_that_can_not_be_is_refused_by_what_it_needs,
    a_finished_unit_read_by_its_path_lies_and_we_say_it_is_gone,
    a_failed_unit_is_kept_until_it_is_reset,
    what_runs_is_listed_found_by_its_process_and_can_be_killed,
    a_unit_has_a_state_as_long_as_it_is_loaded,
    the_manager_says_where_its_control_group_is,
    the_manager_says_its_version_and_that_it_has_started,
    descriptors_can_be_handed_to_a_unit,
    a_reload_keeps_the_unit_job_and_what_is_told_between_means_nothing,
    after_a_reexecution_one_subscribes_again_and_learns_the_end,
    no_more_than_sixty_four_starts_are_open_and_each_end_lets_one_in,
    short_jobs_and_refused_starts_give_their_places_back,
    a_variant_of_ours_means_the_same_to_the_manager_as_a_plain_property,
]
