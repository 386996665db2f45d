"""Another user may look at a queue and change nothing, whatever the bus itself lets through."""

import asyncio
import functools
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sdqueue.bus.connection import Bus
from sdqueue.bus.interface import Interface, Method, args
from sdqueue.bus.match import Match, Signal
from sdqueue.bus.service import INTROSPECTABLE, PROPERTIES, Request, Service
from sdqueue.bus.tree import ObjectTree
from sdqueue.controller import manager_service
from sdqueue.controller.controller import Controller, Options
from sdqueue.controller.journal import Journal
from sdqueue.controller.lane_service import LANE_INTERFACE, LaneObject
from sdqueue.controller.lease_service import LEASES_MAX, have
from sdqueue.controller.offering import JOB, JOBS, LANE, LANES, LEASE, LEASES, MANAGER, NAME, PATH
from sdqueue.controller.permission import AUTHORITY, AUTHORITY_PATH, POLKIT
from sdqueue.controller.places import Places
from sdqueue.controller.privacy import public
from sdqueue.controller.service import QueueService
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.decide import step
from sdqueue.core.lease import Lease
from sdqueue.core.model import CODE_HELP, Code, Job, JobState, Phase, Reason
from sdqueue.core.spec import Config, JobSpec
from sdqueue.core.view import job_row
from sdqueue.spool.eventlog import EventLog
from sdqueue.spool.layout import Spool, open_spool
from sdqueue.words.errors import LimitsExceeded, RemoteError, SdqueueError
from tests.bus.busdaemon import until
from tests.harness.tools import require_programs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

OPEN_BUS = """
<busconfig>
  <type>session</type>
  <listen>unix:path={directory}/bus</listen>
  <policy context="default">
    <allow user="*"/> <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
"""
"""A bus that keeps nobody out: stricter ones do, and are not relied upon."""
NOBODY, OTHER, STRANGER = 65534, 1, 2
SECRET = "not for everybody"


class Asked(NamedTuple):
    """One question that the stand-in for polkit was asked."""

    kind: str
    uid: int
    action: str
    flags: int


@dataclass
class Answers:
    """What the stand-in for polkit says, and what it was asked."""

    answer: object = (True, False, {})
    asked: list[Asked] = field(default_factory=list)


ANSWERS: dict[str, object] = {
    "yes": (True, False, {}),
    "no": (False, False, {}),
    "needs a person": (False, True, {}),
    "a person said no": (False, True, {"polkit.dismissed": "true"}),
    "an error": SdqueueError("no such action"),
}
EXPECTED = {
    "yes": "",
    "no": "uid 65534 may not",
    "needs a person": "without authorization",
    "a person said no": "uid 65534 may not",
    "an error": "polkit can't be asked",
}
INTERACTIVE = {
    word: f"--allow-interactive-authorization={word == 'a person said no'}".lower()
    for word in ANSWERS
}


async def serve_polkit(bus: Bus, answers: Answers) -> None:
    """Be polkit on a bus, as far as it is asked."""

    async def check(
        request: Request,
        _target: object,
        subject: tuple[str, dict[str, str]],
        action: str,
        _details: object,
        flags: int,
        _cancellation: str,
    ) -> object:
        kind, details = subject
        caller = await request.service.credentials(details["name"])
        answers.asked.append(Asked(kind, caller.uid, action, flags))
        if isinstance(answers.answer, Exception):
            raise answers.answer
        return answers.answer

    takes = args("subject:(sa{sv})", "action:s", "details:a{ss}", "flags:u", "cancellation:s")
    method = Method("CheckAuthorization", check, takes, args("result:(bba{ss})"))
    tree = ObjectTree()
    tree.add(AUTHORITY_PATH, None, Interface(AUTHORITY, (method,)))
    Service(bus, tree).start()
    assert await bus.request_name(POLKIT)


@pytest.fixture
def bus_dir() -> Iterator[Path]:
    """Start a bus for all users, in a directory that all can enter."""
    require_programs("dbus-daemon", "busctl", "setpriv")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        config = directory / "bus.conf"
        config.write_text(OPEN_BUS.format(directory=directory))
        command = ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
            assert daemon.stdout is not None
            daemon.stdout.readline()
            yield directory
            daemon.kill()


def controller(directory: Path, address: str, *, system: bool = False) -> Controller:
    """Make a controller that is not at work: what is asked of it stays in its inbox."""
    spool = open_spool(Spool(str(directory / "spool")))
    config = Config()
    options = Options(address=address, system=system, runtime_unit_dir=str(directory))
    places = Places(spool, config.lanes)
    queue = Controller(options, config, places, Journal(EventLog(spool)), lambda: (config, ()))
    found: list[ev.Event] = [
        ev.FileQueued(name, JobSpec(name=name, lane="cpu", uid=uid, description=SECRET))
        for name, uid in (("roots", 0), ("nobodys", NOBODY), ("others", OTHER))
    ]
    step(queue.state, [*found, ev.FileQueued("bad", None, f"line 3: {SECRET}")], 1e9)
    return queue


async def busctl(address: str, uid: int, *call: str, path: str = PATH) -> str:
    """Call a method of the queue as some user, and return what is said, good or bad."""
    command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "busctl"]
    while call[0].startswith("--"):
        command, call = [*command, call[0]], call[1:]
    families = {LANES: LANE, LEASES: LEASE, JOBS: JOB}
    interface = families.get(path.rpartition("/")[0], MANAGER)
    command += [f"--address={address}", "call", NAME, path, interface, *call]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said, _ = await process.communicate()
    return said.decode()


Ask = Callable[..., Awaitable[str]]


@pytest.fixture
def play(
    bus_dir: Path, tmp_path: Path, run_async: Callable[[Awaitable[Any]], Any]
) -> Callable[..., None]:
    """Serve a queue, and play a scene with it and with what asks it as some user."""
    address = f"unix:path={bus_dir}/bus"

    async def playing(
        scene: Callable[[Controller, Ask], Awaitable[None]], system: bool, answers: Answers | None
    ) -> None:
        queue = controller(tmp_path, address, system=system)
        async with await Bus.connect(address) as bus, await Bus.connect(address) as other:
            if answers is not None:
                await serve_polkit(other, answers)
            await QueueService(queue, bus).open()
            await scene(queue, functools.partial(busctl, address))

    def play(
        scene: Callable[[Controller, Ask], Awaitable[None]],
        *,
        system: bool = False,
        polkit: Answers | None = None,
    ) -> None:
        run_async(playing(scene, system, polkit))

    return play


def test_what_is_announced_of_a_lane_is_what_has_changed_and_nothing_if_nothing_has(
    bus_dir: Path, tmp_path: Path, run_async: Callable[[Awaitable[Any]], Any]
) -> None:
    async def scene() -> None:
        address = f"unix:path={bus_dir}/bus"
        queue = controller(tmp_path, address)
        async with await Bus.connect(address) as bus, await Bus.connect(address) as listener:
            service = QueueService(queue, bus)
            heard: list[Signal] = []
            await service.open()
            changes = Match("", PROPERTIES.name, "PropertiesChanged")
            await listener.add_match(changes, heard.append)
            for events in ([], [ev.LanePaused("cpu", True)], [], [ev.LanePaused("cpu", False)]):
                queue.state.halt = None
                actions, queue.planned = step(queue.state, events, 1e9)
                for _ in range(2):
                    for action in actions:
                        if isinstance(action, act.LaneChanged) and action.lane == "cpu":
                            service.lane_changed(action.lane)
                    service.lane_changed("gpu")
            await until(lambda: [each for each in heard if "Paused" in str(each.body)][1:])
            await listener.ask_bus("GetId")
        bodies: list[Any] = [each.body for each in heard if each.path == f"{LANES}/cpu"]
        told = [changed for _, changed, _ in bodies]
        assert [each.pop("State") for each in told] == ["running", "paused", "running"]
        assert [each.get("Paused") for each in told] == [None, True, False]
        generations = [each.pop("Generation") for each in told]
        assert generations == sorted(set(generations))
        assert told[1] == {"Holder": "", "Detail": "a person has paused it", "Paused": True}
        assert len([each for each in heard if each.path == f"{LANES}/gpu"]) == 1

    run_async(scene())


def test_a_hundred_thousand_jobs_are_reached_by_name_and_not_listed(
    play: Callable[..., None],
) -> None:
    async def scene(queue: Controller, ask: Ask) -> None:
        names = [f"{number}-cpu-x" for number in range(100_000)]
        queue.state.jobs |= {name: Job(name, None, Phase.ASIDE, 1e9) for name in names}
        said = await ask(0, "GetJob", "s", "99999-cpu-x")
        assert said == f'o "{JOBS}/_399999_2dcpu_2dx"\n'
        assert "<node name" not in await introspected(queue, JOBS)
        there = await introspected(queue, f"{JOBS}/_399999_2dcpu_2dx")
        assert JOB in there
        with pytest.raises(RemoteError, match="UnknownObject"):
            await introspected(queue, f"{JOBS}/_3100000_2dcpu_2dx")
        assert 'name="job"' in await introspected(queue, PATH)

    play(scene)


async def introspected(queue: Controller, path: str) -> str:
    """Return what an object says that it is."""
    async with await Bus.connect(queue.options.address) as bus:
        (xml,) = await bus.call(NAME, path, INTROSPECTABLE.name, "Introspect")
        return str(xml)


# A user's queue ---------------------------------------------------------------------------------


def test_another_user_may_look_and_change_nothing(play: Callable[..., None]) -> None:
    async def scene(queue: Controller, ask: Ask) -> None:
        refused = "only root and uid 0, whose queue this is, may"
        for method, *words in (
            ("PauseLane", "sb", "cpu", "true"),
            ("CancelJob", "s", "roots"),
            ("CancelJob", "s", "others"),
            ("CancelJob", "s", "bad"),
        ):
            assert refused in await ask(NOBODY, method, *words)
        for method in ("Pause", "Resume"):
            assert refused in await ask(NOBODY, method, path=f"{LANES}/cpu")
        assert refused in await ask(NOBODY, "Cancel", path=f"{JOBS}/roots")
        assert "cpu" in await ask(NOBODY, "ListLanes")
        assert queue._inbox == []
        assert "no job" in await ask(0, "CancelJob", "s", "a")
        await ask(0, "PauseLane", "sb", "cpu", "true")
        await ask(0, "Resume", path=f"{LANES}/cpu")
        assert queue._inbox == [ev.LanePaused("cpu", True), ev.LanePaused("cpu", False)]

    play(scene)


def test_whose_file_it_is_may_cancel_the_job(play: Callable[..., None]) -> None:
    async def scene(queue: Controller, ask: Ask) -> None:
        asking = asyncio.ensure_future(ask(NOBODY, "CancelJob", "s", "nobodys"))
        while not queue._inbox and not asking.done():
            await asyncio.sleep(0.01)
        assert queue._inbox == [ev.CancelAsked("nobodys", NOBODY)]
        assert "parked" in await parked(queue, "nobodys", asking)

    play(scene)


async def parked(queue: Controller, name: str, asking: Awaitable[str]) -> str:
    """Have a cancelled job be parked as the queue would, and return what its caller is told."""
    job = queue.state.jobs.pop(name)
    queue.state.ended[name] = JobState.PARKED
    queue._next_turn.set()
    said = await asking
    queue.state.jobs[name] = job
    return said


@pytest.mark.parametrize("system", [False, True])
def test_what_a_file_says_is_its_owner_s_to_see(system: bool, play: Callable[..., None]) -> None:
    methods = [("ListJobs", "as", "0"), ("ListAside",), ("Plan",), ("Why", "s", "bad")]

    async def scene(_queue: Controller, ask: Ask) -> None:
        secrets = {}
        for uid in (0, NOBODY, OTHER, STRANGER):
            said = [await ask(uid, *method) for method in methods]
            assert not [each for each in said if "bad-file" not in each]
            secrets[uid] = [each.count(SECRET) for each in said]
        assert secrets == {
            0: [5, 3, 5, 1],
            NOBODY: [1, 1, 1, 0],
            OTHER: [1, 0, 1, 0],
            STRANGER: [0, 0, 0, 0],
        }

    play(scene, system=system)


def test_why_the_head_of_a_lane_was_refused_is_for_who_may_see_its_file(
    play: Callable[..., None],
) -> None:
    async def scene(queue: Controller, ask: Ask) -> None:
        queue.planned.blocks["cpu"] = Reason(Code.REFUSED, SECRET)
        for uid, secrets in ((0, 1), (STRANGER, 0)):
            said = await ask(uid, "ListLanes")
            assert ("refused" in said, said.count(SECRET)) == (True, secrets)
        told = LANE_INTERFACE.property("Reason")
        assert told
        assert SECRET not in str(told.get(LaneObject(queue, "cpu")))

    play(scene, system=True)


def test_what_all_can_see_quotes_no_file_of_the_machine_s_queue(play: Callable[..., None]) -> None:
    async def scene(queue: Controller, _ask: Ask) -> None:
        row = job_row(queue.state, queue.state.jobs["bad"], queue.planned)
        event = {"reason": "bad-file", "detail": SECRET, "lane": "cpu", "description": SECRET}
        assert SECRET not in str(public(row))
        assert SECRET not in str(public(event))
        assert public(event)["detail"] == CODE_HELP[Code.BAD_FILE]
        foreign = {"reason": "foreign", "detail": "llm-engine has it"}
        assert public(foreign) == foreign

    play(scene)


def test_an_answer_has_its_limit_and_a_stranger_s_a_smaller_one(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager_service, "ROWS_MAX", 4)
    monkeypatch.setattr(manager_service, "STRANGERS_ROWS_MAX", 3)

    async def scene(queue: Controller, ask: Ask) -> None:
        for method in (("ListJobs", "as", "0"), ("Plan",)):
            assert "these are 4 jobs, and one answer may tell of 3" in await ask(STRANGER, *method)
            assert "roots" in await ask(0, *method)
        for uid in (0, STRANGER):
            assert "bad" in await ask(uid, "ListAside")
            assert "roots" in await ask(uid, "ListJobs", "as", "1", "roots")
        names = ["l1", "l2"]
        step(queue.state, [ev.FileQueued(name, None, "bad") for name in names], 1e9)
        assert "these are 4 jobs" in await ask(STRANGER, "ListAside")
        assert "these are 6 jobs" in await ask(0, "Plan")

    play(scene, system=True)


# The machine's queue, with polkit ---------------------------------------------------------------

ACT = {
    "manage-lanes": ("PauseLane", "sb", "cpu", "true"),
    "manage-jobs": ("CancelJob", "s", "others"),
}


@pytest.mark.parametrize("action", ACT)
def test_the_machine_s_queue_asks_polkit_for_everybody_but_root(
    action: str, play: Callable[..., None]
) -> None:
    polkit = Answers()

    async def scene(queue: Controller, ask: Ask) -> None:
        said = {}
        for word, answer in ANSWERS.items():
            polkit.answer = answer
            asking = asyncio.ensure_future(ask(NOBODY, INTERACTIVE[word], *ACT[action]))
            while not queue._inbox and not asking.done():
                await asyncio.sleep(0.01)
            said[word] = bool(queue._inbox)
            queue._inbox.clear()
            assert EXPECTED[word] in await parked(queue, "others", asking)
        assert said == {word: word == "yes" for word in ANSWERS}
        assert [each.action for each in polkit.asked] == [f"org.sdqueue1.{action}"] * len(said)
        assert {each.kind for each in polkit.asked} == {"system-bus-name"}
        assert {each.uid for each in polkit.asked} == {NOBODY}
        assert [each.flags for each in polkit.asked] == [0, 0, 0, 1, 0]

    play(scene, system=True, polkit=polkit)


def test_root_and_owners_are_not_asked_about(play: Callable[..., None]) -> None:
    polkit = Answers()

    async def scene(queue: Controller, ask: Ask) -> None:
        await ask(0, *ACT["manage-lanes"])
        asking = asyncio.ensure_future(ask(OTHER, *ACT["manage-jobs"]))
        while len(queue._inbox) < 2:
            await asyncio.sleep(0.01)
        assert queue._inbox == [ev.LanePaused("cpu", True), ev.CancelAsked("others", OTHER)]
        await parked(queue, "others", asking)
        assert polkit.asked == []

    play(scene, system=True, polkit=polkit)


def test_who_may_take_a_lane_may_not_end_the_lease_of_another(play: Callable[..., None]) -> None:
    polkit = Answers((False, False, {}))

    async def scene(queue: Controller, ask: Ask) -> None:
        step(queue.state, [ev.LeaseSeen(Lease("a1", "gpu", "engine", uid=OTHER))], 1e9)
        said = await ask(NOBODY, "Release", "t", "0", path=f"{LEASES}/a1")
        assert "may not pause lanes" in said
        assert [each.action for each in polkit.asked] == ["org.sdqueue1.manage-lanes"]
        assert "no connection" in await ask(OTHER, "Release", "t", "0", path=f"{LEASES}/a1")
        assert len(polkit.asked) == 1

    play(scene, system=True, polkit=polkit)


def test_whoever_asks_for_all_at_once_has_no_more_than_who_asks_one_by_one(
    play: Callable[..., None],
) -> None:
    async def scene(queue: Controller, _ask: Ask) -> None:
        leases = [Lease(f"l{number}", "gpu", "engine", uid=OTHER) for number in range(20)]
        asking = [asyncio.create_task(have(queue, lease, wait=True)) for lease in leases]
        await asyncio.sleep(0)
        refused = [each.exception() for each in asking if each.done()]
        assert [type(error) for error in refused] == [LimitsExceeded] * (20 - LEASES_MAX)
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    play(scene)


def test_without_polkit_the_answer_is_no(play: Callable[..., None]) -> None:
    async def scene(queue: Controller, ask: Ask) -> None:
        for words in ACT.values():
            assert "polkit can't be asked" in await ask(NOBODY, *words)
        assert queue._inbox == []

    play(scene, system=True)
