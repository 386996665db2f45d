"""Jobs per second of a whole durable queue, against a bare loop over the same bus.

500 jobs of `true` in one lane, with one slot and with eight; the bare loop does StartTransientUnit
with the lane's target, waits for JobRemoved, and StopUnit, one unit after the other, with our own
bus module. Queue and loop take turns on one private user manager; printed are the ratios of the
pairs and their median. The spool lies where TMPDIR is: put it on a disk file system.
"""

import asyncio
import statistics
import sys
import time
from pathlib import Path

from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import JobRemoved, Systemd, SystemdEvent
from sdqueue.words.errors import RemoteError
from tests.harness.manager import Manager, PrivateManager
from tests.harness.queue import Queue as TestedQueue
from tests.harness.waiting import eventually

ROUNDS = 5
JOBS = 100


class Queue(TestedQueue):
    """A queue that keeps to itself what happened."""

    def _tell(self) -> None:
        pass


async def bare_loop(address: str, count: int) -> float:
    """Start `count` units one after the other, and return how many per second."""
    ended = asyncio.Event()
    removed: set[str] = set()

    def on_event(event: SystemdEvent) -> None:
        if isinstance(event, JobRemoved):
            removed.add(event.unit)
            ended.set()

    async with await Bus.connect(address) as bus:
        systemd = Systemd(bus, on_event, prefixes=("none-of-them",))
        await systemd.subscribe()
        began = time.perf_counter()
        for number in range(count):
            unit = f"bare-{number}.service"
            await systemd.start_transient(unit, PROPERTIES)
            while unit not in removed:
                ended.clear()
                await ended.wait()
            try:
                await systemd.stop_unit(unit)
            except RemoteError:
                pass  # it is gone already
        return count / (time.perf_counter() - began)


TARGET = "sdqueue-lane-cpu.target"
PROPERTIES = [
    ("Type", "s", "oneshot"),
    ("Requires", "as", [TARGET]),
    ("After", "as", [TARGET]),
    ("ExecStart", "a(sasb)", [("/bin/true", ["/bin/true"], False)]),
]


def queue_round(queue: Queue, number: int) -> float:
    """Put a round's jobs into the queue at once, and return how many per second were done."""
    names = [f"{number}-cpu-{job}" for job in range(JOBS)]
    queue.ask("PauseLane", "sb", "cpu", "true")
    for name in names:
        queue.put(name, "true")
    eventually(lambda: int(queue.ask("ListLanes")[0]["queued"]) == JOBS, "all to be queued")
    queue.ask("PauseLane", "sb", "cpu", "false")
    last = len(queue.events(event="done")) + JOBS
    done = queue.spool / "done"
    eventually(lambda: len(list(done.iterdir())) >= last, "all to be done", every_sec=0.05)
    eventually(lambda: len(queue.events(event="done")) >= last, "the last event")
    starts = [each["t"] for each in queue.events(event="start") if each["job"] in names]
    ends = [each["t"] for each in queue.events(event="done") if each["job"] in names]
    return JOBS / (max(ends) - min(starts))


def measure(manager: Manager, slots: int) -> None:
    """Print the ratios for a lane with that many slots."""
    config = Path(manager.env["XDG_CONFIG_HOME"]) / "sdqueue"
    config.mkdir(parents=True, exist_ok=True)
    (config / "sdqueue.toml").write_text(f"[lane.cpu]\nslots = {slots}\n")
    ratios = []
    with Queue(manager) as queue:
        for number in range(ROUNDS):
            ours = queue_round(queue, slots * 1000 + number)
            bare = asyncio.run(bare_loop(manager.bus_address, JOBS))
            ratios.append(ours / bare)
            print(
                f"  {slots} slots: {ours:6.1f} jobs/s, bare {bare:6.1f}/s, ratio {ours / bare:.2f}"
            )
    print(f"{slots} slots: median ratio {statistics.median(ratios):.2f} of {ROUNDS} pairs")


def main() -> int:
    """Measure with one slot and with eight."""
    for slots in (1, 8):
        with PrivateManager() as manager:
            measure(manager, slots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
