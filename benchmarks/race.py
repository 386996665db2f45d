"""A holder lets go while a job waits, and others want the lane: the job has to win, and soon.

Each round an engine has the lane, a job is put into the queue, the engine hears of it, serves on
for a random while and closes its descriptor. Rivals ask for the lane all the time, at random. Who
was next is read from events.jsonl: after the engine's `lease-end` it must be the job's `start`.

Printed: rounds and wins, how often rivals were refused meanwhile, and the time from the closing of
the descriptor to the job's first instruction, beside that of a bare StartTransientUnit on the same
bus from the call to JobRemoved.
"""

import asyncio
import os
import random
import statistics
import sys
import time
from contextlib import suppress
from itertools import pairwise

from benchmarks.handover import bare, p99
from benchmarks.throughput import Queue
from sdqueue.bus.connection import Bus
from sdqueue.bus.match import Match, Signal
from sdqueue.bus.wire import Variant
from sdqueue.words.errors import LaneBusy, RemoteError
from tests.harness.manager import PrivateManager
from tests.harness.waiting import eventually

ROUNDS = int(os.environ.get("ROUNDS", "1000"))
RIVALS = 4
SERVES_ON_SEC = 0.02
BODY = 'echo "$EPOCHREALTIME" >>"$HOME/begins"'
MANAGER = ("org.sdqueue1", "/org/sdqueue1", "org.sdqueue1.Manager")


async def acquire(bus: Bus, who: str, *, wait: bool = False) -> int:
    """Have a lease on the lane gpu; RemoteError where it is refused."""
    options = {"wait": Variant("b", wait)}
    ask = bus.call(*MANAGER, "AcquireLease", "sssa{sv}", "gpu", who, "", options, reply_fds=True)
    _, descriptor = await ask
    assert isinstance(descriptor, int)
    return descriptor


class Rivals:
    """Others who want the lane; `refused` counts how often they heard no."""

    def __init__(self) -> None:
        self.refused = 0
        self.had = 0

    async def want(self, address: str, name: str) -> None:
        """Ask again and again, and let go at once of what was had."""
        async with await Bus.connect(address) as bus:
            while True:
                await asyncio.sleep(random.expovariate(200))
                try:
                    os.close(await acquire(bus, name))
                    self.had += 1
                except RemoteError as error:
                    if error.name != LaneBusy.bus_name:
                        raise
                    self.refused += 1


async def rounds(queue: Queue) -> list[float]:
    """Play all rounds; return when the engine closed its descriptor, in unix time."""
    closed: list[float] = []
    wanted = asyncio.Event()

    def on_change(signal: Signal) -> None:
        if signal.body[0] == "org.sdqueue1.Lease" and "Waiters" in str(signal.body[1]):
            wanted.set()

    async with await Bus.connect(queue.manager.bus_address) as bus:
        await bus.add_match(Match(MANAGER[0], path_namespace="/org/sdqueue1/lease"), on_change)
        for number in range(ROUNDS):
            descriptor = await acquire(bus, "engine", wait=True)
            wanted.clear()
            queue.put(f"{number}-gpu-x", BODY)
            await wanted.wait()
            await asyncio.sleep(random.uniform(0, SERVES_ON_SEC))
            closed.append(time.time())
            os.close(descriptor)
            while not (queue.spool / f"done/{number}-gpu-x.job").exists():
                await asyncio.sleep(0.002)
    return closed


async def play(queue: Queue, rivals: Rivals) -> list[float]:
    """Play all rounds with rivals about."""
    address = queue.manager.bus_address
    others = [asyncio.create_task(rivals.want(address, f"rival {n}")) for n in range(RIVALS)]
    try:
        return await rounds(queue)
    finally:
        for other in others:
            other.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*others)


def wins(queue: Queue) -> int:
    """Count the rounds after which the job was next, by the log."""
    told = [
        each
        for each in queue.events()
        if each["event"] in ("lease", "lease-end", "start") and each.get("lane") == "gpu"
    ]
    return sum(
        one["event"] == "lease-end" and one["who"] == "engine" and other["event"] == "start"
        for one, other in pairwise(told)
    )


def main() -> int:
    """Play, and print who won and how fast."""
    rivals = Rivals()
    with PrivateManager() as manager, Queue(manager) as queue:
        free = lambda: queue.ask("ListLanes")[1]["state"] == "free"  # noqa: E731
        eventually(free, "the lane to be free")
        closed = asyncio.run(play(queue, rivals))
        limits = asyncio.run(bare(manager.bus_address, 200))
        begins = list(map(float, (manager.home / "begins").read_text().split()))
        won = wins(queue)
    spans = [begin - end for end, begin in zip(closed, begins, strict=True)]
    print(
        f"rounds {ROUNDS}, won by the job {won}; rivals refused {rivals.refused}, "
        f"had the lane between rounds {rivals.had}\n"
        f"descriptor closed to first instruction: p50 {statistics.median(spans) * 1e3:.1f} ms, "
        f"p99 {p99(spans) * 1e3:.1f} ms; bare start p50 {statistics.median(limits) * 1e3:.1f} ms, "
        f"p99 {p99(limits) * 1e3:.1f} ms; "
        f"ratio of p50 {statistics.median(spans) / statistics.median(limits):.1f}"
    )
    return 0 if won == ROUNDS else 1


if __name__ == "__main__":
    sys.exit(main())
