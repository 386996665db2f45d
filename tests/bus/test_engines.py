"""Engines beside a busy queue: who comes first, and what is left of one that is killed.

One queue, whose lane gpu is for a device that stands for a GPU, sees all scenes one after the
other; each begins and ends with the lane free. In SCENES each `yield` is a moment at which a
controller may be killed or stopped and followed by another: what comes after must be the same.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from subprocess import TimeoutExpired
from typing import Any

import pytest

from tests.harness import manager as managers
from tests.harness.engine import Engine
from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.tools import require
from tests.harness.waiting import eventually

SEED = 20261129
ROUNDS = 25
CROWD = 100
SERVES_SEC = 0.02
REFUSED = ("LaneBusy", "LimitsExceeded")
DEVICE = """
import os, sys
pairs = [os.openpty() for _ in range(40)]  # a number that no other terminal here has
print(os.ttyname(pairs[-1][1]), flush=True)
for _, slave in pairs:
    os.close(slave)
sys.stdin.read()
"""
COUNT = itertools.count(1)
ADOPT = ("AdoptOwner", "sss", "gpu")


class Lane:
    """The lane gpu of a queue, and the device that it is for."""

    def __init__(self, queue: Queue, device: str) -> None:
        self.queue = queue
        self.manager = queue.manager
        self.device = device
        self.seen = max((each["seq"] for each in queue.events()), default=0)

    def engine(self, unit: str = "") -> Engine:
        return Engine(self.manager, unit=unit)

    def row(self) -> dict[str, Any]:
        (found,) = [row for row in self.queue.ask("ListLanes") if row["name"] == "gpu"]
        return dict(found)

    def wait(self, state: str) -> None:
        """Wait until the lane is in that state."""

        def there() -> bool:
            found = self.row()
            assert found["state"] == state, found
            return True

        eventually(there, f"the lane to be {state}")

    def put(self, body: str = "true", *headers: str) -> str:
        """Put a job into the lane, with a name that comes after those before."""
        name = f"{next(COUNT):03}-gpu-x"
        self.queue.put(name, body, *headers)
        return name

    def held(self) -> tuple[str, Callable[[], None]]:
        """Put a job that runs until it is let go; return its name and what lets it go."""
        flag = self.manager.home / f"go-{next(COUNT)}"
        return self.put(f"until [ -e {flag} ]; do sleep 0.01; done"), flag.touch

    def told(self, *words: str) -> list[dict[str, Any]]:
        """Return what the log has of these kinds since the test began."""
        found = [each for each in self.queue.events() if each["event"] in words]
        return [each for each in found if each["seq"] > self.seen and each.get("lane") == "gpu"]


@pytest.fixture(scope="module")
def box() -> Iterator[tuple[PrivateManager, str]]:
    """Give a manager, and a device that nobody has open."""
    require(managers.missing())
    with PrivateManager() as manager, ExitStack() as stack:
        keeper = manager.popen([manager.python, "-c", DEVICE], stdin=-1, stdout=-1)
        stack.callback(keeper.communicate)
        assert keeper.stdout
        device = keeper.stdout.readline().strip()
        config = manager.home / ".config/sdqueue/sdqueue.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'recheck = "1h"\n[lane.gpu]\ndevices = ["{device}"]\n')
        yield manager, device


@pytest.fixture
def lane(box: tuple[PrivateManager, str]) -> Iterator[Lane]:
    """Give the lane, free, and see that it is left so."""
    manager, device = box
    with Queue(manager) as queue:
        lane = Lane(queue, device)
        lane.wait("free")
        yield lane
        lane.wait("free")
        assert queue.ask("ListLeases") == []


def refused(answer: str) -> bool:
    return any(word in answer for word in REFUSED)


# Who comes first


def test_an_engine_that_asks_between_the_jobs_of_a_busy_queue_is_refused_each_time(
    lane: Lane,
) -> None:
    with lane.engine() as engine:
        first, go_first = lane.held()
        names = [lane.put() for _ in range(ROUNDS)]
        last, go_last = lane.held()
        lane.queue.wait_running(first)
        engine.say("pester gpu")
        go_first()
        for name in names:
            lane.queue.wait(name, "done")
        lane.queue.wait_running(last)
        engine.say("rest")
        refusals, had = engine.next("rested")
        go_last()
        lane.queue.wait(last, "done")
    assert had == 0
    assert refusals > ROUNDS
    assert lane.told("lease") == []


def test_who_waits_for_an_engine_is_next_when_it_has_finished_whoever_else_asks(
    lane: Lane,
) -> None:
    """As reported: a swap cut off a request of twenty minutes; here the request is finished."""
    draw = random.Random(SEED)
    with lane.engine() as engine, lane.engine() as rival:
        rival.say("pester gpu")
        for number in range(ROUNDS):
            engine.acquire("gpu", wait=True)
            served = lane.manager.home / f"served-{number}"
            name = lane.put(f"rm {served}")
            engine.say(f"serve {draw.uniform(0, SERVES_SEC)} {served}")
            engine.next("served")
            lane.queue.wait(name, "done")
        rival.say("rest")
        refusals, _ = rival.next("rested")
    story = lane.told("lease", "lease-end", "start")
    after = [
        following["event"]
        for each, following in itertools.pairwise(story)
        if each["event"] == "lease-end" and each["pid"] == engine.pid
    ]
    assert after == ["start"] * ROUNDS
    assert refusals > ROUNDS


def test_from_the_instant_at_which_a_job_wants_the_lane_a_hundred_requests_at_once_get_nothing(
    lane: Lane,
) -> None:
    """As reported: one saw that nobody used it and began, and a request came into the gap."""
    draw = random.Random(SEED)
    with lane.engine() as crowd, lane.engine() as holder:
        for _ in range(5):
            holder.acquire("gpu", wait=True)
            name, go = lane.held()
            lane.queue.wait_reason(name, "leased")
            holder.say("close")
            answers = crowd.crowd("gpu", CROWD)
            assert [answer for answer in answers if not refused(answer)] == []
            lane.queue.wait_running(name)
            go()
            lane.queue.wait(name, "done")
            crowd.say(f"crowd gpu {CROWD}")
            with suppress(TimeoutExpired):
                crowd.process.wait(draw.uniform(0, 0.05))
            name = lane.put()
            answers = crowd.next("crowd")
            lane.queue.wait(name, "done")
            assert sum(not refused(answer) for answer in answers) <= 1
    for start in lane.told("start"):
        check_not_overtaken(lane, start["job"])


def check_not_overtaken(lane: Lane, job: str) -> None:
    """Fail where a lease was lent between the moment in which a job stood in line and its start.

    One that was just being lent in that moment is told after it; the job waits for that one, then.
    """
    story = [each for each in lane.told("wait", "lease", "start") if each["job"] in (job, "-")]
    waits = [i for i, each in enumerate(story) if each["job"] == job and each["event"] == "wait"]
    if waits:
        start = next(i for i, each in enumerate(story) if each["event"] == "start")
        lent = [each for each in story[waits[0] : start] if each["event"] == "lease"]
        assert len(lent) <= (story[waits[0]]["reason"] == "leased"), story


# What is left of one that is killed


@pytest.mark.parametrize("when", ["sent", "got"])
def test_one_that_is_killed_while_it_asks_or_is_answered_has_nothing(lane: Lane, when: str) -> None:
    """As reported: a lock file outlived its holder, and others waited for ever."""
    for _ in range(5):
        with lane.engine() as engine:
            engine.say(f"die {when} gpu")
            engine.process.wait()
        lane.queue.wait(lane.put(), "done")


def test_one_that_is_killed_at_any_moment_lets_the_next_have_it(lane: Lane) -> None:
    draw = random.Random(SEED)
    with lane.engine() as patient:
        for _ in range(10):
            with lane.engine() as engine:
                engine.say("acquire gpu wait")
                patient.say("acquire gpu wait")
                name = lane.put()
                delay_sec = draw.uniform(0, 0.01)
                with suppress(TimeoutExpired):  # it lives, as it should
                    engine.process.wait(delay_sec)
                engine.kill()
            assert str(patient.next("got", "refused")).startswith("/")
            patient.close()
            lane.queue.wait(name, "done")


def test_the_killed_main_process_of_a_unit_lets_go_with_all_that_it_started(lane: Lane) -> None:
    with lane.engine(unit="llm-engine-a.service") as engine:
        engine.acquire("gpu")
        engine.say("fork")
        engine.next("forked")
        name = lane.put()
        lane.queue.wait_reason(name, "leased")
        (wait,) = lane.told("gpu-wait")
        assert wait["unit"] == "llm-engine-a.service"
        lane.manager.systemctl("kill", "--kill-whom=main", "--signal=KILL", engine.unit)
        lane.queue.wait(name, "done")
    lane.manager.systemctl("reset-failed", "llm-engine-a.service")


# Another controller in the middle of it


def engine_holds(lane: Lane) -> Iterator[None]:
    """An engine has the lane, a job waits for it by name, and starts when it lets go."""
    with lane.engine() as engine:
        engine.acquire("gpu")
        yield
        name = lane.put()
        lane.queue.wait_reason(name, "leased")
        yield
        assert refused(engine.refused("gpu"))
        assert engine.next("waiters") == [["job", name]]
        assert [wait["pid"] for wait in lane.told("gpu-wait")][-1] == engine.pid
        engine.close()
        yield
        lane.queue.wait(name, "done")


def engine_is_refused(lane: Lane) -> Iterator[None]:
    """Jobs come one after the other, and an engine gets nothing in between."""
    first, go_first = lane.held()
    second, go_second = lane.held()
    lane.queue.wait_running(first)
    yield
    with lane.engine() as engine:
        assert refused(engine.refused("gpu"))
        yield
        go_first()
        yield
        lane.queue.wait_running(second)
        assert refused(engine.refused("gpu"))
        go_second()
        lane.queue.wait(second, "done")


def engine_is_killed(lane: Lane) -> Iterator[None]:
    """An engine ends by -9 in a unit, and what it left behind as well."""
    with lane.engine(unit="llm-engine-b.service") as engine:
        engine.acquire("gpu")
        name = lane.put()
        lane.queue.wait_reason(name, "leased")
        yield
        engine.kill()
        yield
        lane.queue.wait(name, "done")
    lane.manager.systemctl("reset-failed", "llm-engine-b.service")


def stranger_uses_the_device(lane: Lane) -> Iterator[None]:
    """A program that was started by hand has the device open; it is adopted, and ends."""
    with lane.engine() as engine:
        engine.open(lane.device)
        lane.wait("foreign")
        yield
        name = lane.put()
        lane.queue.wait_reason(name, "foreign")
        assert [wait["pid"] for wait in lane.told("gpu-wait")][-1] == engine.pid
        yield
        lane.queue.ask(*ADOPT, str(engine.pid), "by hand")
        lane.queue.wait_reason(name, "leased")
        yield
        lane.queue.wait_reason(name, "leased")
        assert [wait["pid"] for wait in lane.told("gpu-wait")][-1] == engine.pid
        engine.kill()
        yield
        lane.queue.wait(name, "done")


def engine_stays_on_the_device(lane: Lane) -> Iterator[None]:
    """An engine lets go of the lane, and goes on using the device."""
    with lane.engine() as engine:
        engine.acquire("gpu")
        engine.open(lane.device)
        name = lane.put()
        lane.queue.wait_reason(name, "leased")
        yield
        engine.close()
        lane.queue.wait_reason(name, "foreign")
        yield
        assert lane.queue.reason(name) in ("foreign", "checking")
        engine.say("shut")
        lane.queue.wait(name, "done")


SCENES = (
    engine_holds,
    engine_is_refused,
    engine_is_killed,
    stranger_uses_the_device,
    engine_stays_on_the_device,
)


@pytest.mark.parametrize("how", ["", "kill", "stop"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: str(scene.__name__))
def test_another_controller_in_the_middle_changes_nothing(
    lane: Lane, scene: Callable[[Lane], Iterator[None]], how: str
) -> None:
    """Played without another controller, each scene says what it says of itself."""
    for _ in scene(lane):
        if how:
            getattr(lane.queue, how)()
            lane.queue.start()
            eventually(lambda: lane.row()["state"] != "unknown", "the lane to be known")
