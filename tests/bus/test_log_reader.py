"""A program that reads only the log and running/ knows of each lane what is-free says.

A queue goes through a random series of what jobs, engines, strangers, people and controllers do;
after each, once nothing changes any more, the reader's word is that of the controller. (That
whoever asks the controller hears the same word is tried in test_lane_agreement.)
"""

import random
from collections.abc import Callable, Iterator

import pytest

from tests.bus.test_engines import box  # noqa: F401  (a fixture)
from tests.harness.engine import Engine
from tests.harness.lane_reader import LaneReader
from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually

SEED = 20261129
STEPS = 30
LANES = ("gpu", "net", "cpu")
EXCLUDES = {"gpu": {"net"}, "net": {"gpu"}, "cpu": set[str]()}
NAME = "named-stranger"


class Doings:
    """What happens; each that can happen now is as likely as the others."""

    def __init__(self, queue: Queue, device: str, draw: random.Random) -> None:
        self.queue = queue
        self.device = device
        self.draw = draw
        self.count = 0
        self.strangers: list[Engine] = []
        self.holders: list[Engine] = []
        self.waiting: list[Engine] = []
        self.jobs: list[str] = []

    def all(self) -> Iterator[Callable[[], None]]:
        """List what can happen now."""
        yield from (self.submit, self.submit, self.pause, self.resume, self.restart, self.stop)
        yield self.stranger
        yield self.ask
        if self.strangers:
            yield self.leave
        if self.holders:
            yield from (self.close, self.close)
        if self.waiting:
            yield self.give_up
        if self.jobs:
            yield from (self.end, self.end, self.cancel)

    def submit(self, lane: str = "") -> None:
        self.count += 1
        name = f"{self.count:02}-{lane or self.draw.choice(LANES)}-j"
        self.queue.put(name, 'until [ -e "$HOME/end-$SDQUEUE_JOB" ]; do sleep 0.02; done')
        self.jobs.append(name)

    def end(self) -> None:
        name = self.jobs.pop(self.draw.randrange(len(self.jobs)))
        (self.queue.manager.home / f"end-{name}").touch()

    def cancel(self) -> None:
        self.queue.ask("CancelJob", "s", self.jobs.pop(self.draw.randrange(len(self.jobs))))

    def pause(self) -> None:
        self.queue.ask("PauseLane", "sb", self.draw.choice(LANES), "true")

    def resume(self) -> None:
        for lane in LANES:
            self.queue.ask("PauseLane", "sb", lane, "false")

    def restart(self) -> None:
        self.queue.kill()
        self.give_up()
        self.queue.start()

    def stop(self) -> None:
        self.queue.stop()
        self.give_up()
        self.queue.start()

    def stranger(self) -> None:
        engine = Engine(self.queue.manager)
        if self.draw.random() < 0.5:
            engine.say(f"name {NAME}")
            engine.next("named")
        engine.open(self.device)
        self.strangers.append(engine)

    def leave(self) -> None:
        with self.strangers.pop(0):
            pass

    def ask(self) -> None:
        engine = Engine(self.queue.manager)
        engine.say(f"acquire {self.draw.choice(LANES)} wait")
        if self.draw.random() < 0.3:
            engine.say(f"open {self.device}")
        self.waiting.append(engine)

    def close(self) -> None:
        engine = self.holders.pop(0)
        engine.close()
        self.strangers.append(engine)

    def give_up(self) -> None:
        """Have those who wait for a lease go; nobody waits for a controller that is gone."""
        while self.waiting:
            with self.waiting.pop():
                pass

    def sort(self) -> None:
        """See who has got what he asked for."""
        pids = {row["pid"] for row in self.queue.ask("ListLeases")}
        self.holders += [engine for engine in self.waiting if engine.pid in pids]
        self.waiting = [engine for engine in self.waiting if engine.pid not in pids]

    def begin(self) -> Iterator[Callable[[], None]]:
        """Have the lane gpu be all that it can be."""
        yield lambda: self.submit("net")
        yield lambda: self.submit("gpu")
        yield self.restart
        yield self.end
        yield self.end
        yield self.stranger
        yield self.leave

    def end_all(self) -> None:
        for engine in (*self.strangers, *self.holders, *self.waiting):
            with engine:
                pass


@pytest.fixture
def queue(box: tuple[PrivateManager, str]) -> Iterator[Queue]:  # noqa: F811
    manager, device = box
    config = manager.home / ".config/sdqueue/sdqueue.toml"
    config.write_text(
        f'recheck = "1h"\n[lane.gpu]\nexcludes = ["net"]\ndevices = ["{device}"]\n'
        f'foreign = ["{NAME}"]\n[lane.net]\n[lane.cpu]\n'
    )
    with Queue(manager) as running:
        yield running


def states(queue: Queue) -> dict[str, str]:
    return {row["name"]: row["state"] for row in queue.ask("ListLanes")}


def test_what_the_log_says_of_each_lane_is_what_is_free_says(
    queue: Queue,
    box: tuple[PrivateManager, str],  # noqa: F811
) -> None:
    doings = Doings(queue, box[1], random.Random(SEED))
    reader = LaneReader(queue.spool, EXCLUDES)
    seen: set[str] = set()

    def agree() -> bool:
        said = states(queue)
        reader.read()
        read = {lane: reader.state(lane) for lane in LANES}
        assert read == said == states(queue)
        seen.update(said.values())
        return True

    try:
        for doing in (*doings.begin(), *(None,) * STEPS):
            doing = doing or doings.draw.choice(list(doings.all()))
            doing()
            eventually(agree, f"the reader's word after {doing.__name__}")
            doings.sort()
        queue.stop()
        reader.read()
        assert {reader.state(lane) for lane in LANES} == {"unknown"}
    finally:
        doings.end_all()
    assert seen >= {"free", "running", "leased", "wanted", "foreign", "excluded", "paused"}
