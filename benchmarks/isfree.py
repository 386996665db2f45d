"""Whether a lane is free, asked beside many processes: the answer must not cost more for them.

With FEW and with MANY sleeping processes more on the box, in pairs, one after the other: a bare
Peer.Ping of the controller, then the lane's State, the rows of all lanes or all owners, over one
connection; then as programs busctl calling Ping, and `busctl get-property` of the lane's State or
`sdqueue is-free`. Printed: medians, and the median of the ratios pair by pair.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sdqueue.bus.connection import Bus
from tests.harness.manager import PrivateManager
from tests.harness.queue import DAEMON, Queue
from tests.harness.waiting import eventually

FEW, MANY = 300, 3000
CALLS, PROGRAMS = 300, 20
NAME, PATH = "org.sdqueue1", "/org/sdqueue1"
LANE = f"{PATH}/lane/gpu"
CONFIG = '[lane.gpu]\nforeign = ["no-such-engine"]\n[lane.net]\n[lane.cpu]\n'

Ask = Callable[[], Awaitable[object]]


@contextmanager
def sleepers(count: int) -> Iterator[None]:
    """Have so many processes more on the box."""
    script = f"for _ in $(seq {count - 1}); do sleep 10000 & done; echo up; wait"
    shell = subprocess.Popen(
        ["bash", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert shell.stdout
    shell.stdout.readline()
    try:
        yield
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        shell.stdout.close()


async def calls(address: str) -> dict[str, list[tuple[float, float]]]:
    """Time each question after a bare Ping; (question, ping) in seconds."""
    async with await Bus.connect(address) as bus:
        questions: dict[str, Ask] = {
            "the lane's State": lambda: bus.call(
                NAME, LANE, "org.freedesktop.DBus.Properties", "Get", "ss", f"{NAME}.Lane", "State"
            ),
            "ListLanes": lambda: bus.call(NAME, PATH, f"{NAME}.Manager", "ListLanes"),
            "ListOwners": lambda: bus.call(NAME, PATH, f"{NAME}.Manager", "ListOwners", "s", ""),
        }
        spans: dict[str, list[tuple[float, float]]] = {what: [] for what in questions}
        for _ in range(CALLS):
            for what, question in questions.items():
                bare = await timed(
                    lambda: bus.call(NAME, PATH, "org.freedesktop.DBus.Peer", "Ping")
                )
                spans[what].append((await timed(question), bare))
    return spans


async def timed(question: Ask) -> float:
    """Say how long an answer took, in seconds."""
    began = time.perf_counter()
    await question()
    return time.perf_counter() - began


def programs(manager: PrivateManager) -> dict[str, list[tuple[float, float]]]:
    """Time each program after a bare `busctl call … Ping`; (program, ping) in seconds."""
    busctl = ["busctl", "--user"]
    ping = [*busctl, "call", NAME, PATH, "org.freedesktop.DBus.Peer", "Ping"]
    wanted = {
        "busctl get-property": [*busctl, "get-property", NAME, LANE, f"{NAME}.Lane", "State"],
        "sdqueue is-free": [*DAEMON[:-1], "is-free", "-q", "gpu"],
    }
    spans: dict[str, list[tuple[float, float]]] = {what: [] for what in wanted}
    for _ in range(PROGRAMS):
        for what, argv in wanted.items():
            bare = run(manager, ping)
            spans[what].append((run(manager, argv), bare))
    return spans


def run(manager: PrivateManager, argv: list[str]) -> float:
    """Run a program and say how long it took, in seconds."""
    began = time.perf_counter()
    manager.run(argv)
    return time.perf_counter() - began


def report(spans: dict[str, list[tuple[float, float]]], count: int) -> None:
    """Print a line for each question."""
    for what, pairs in spans.items():
        ours = statistics.median(span for span, _ in pairs) * 1e3
        bare = statistics.median(span for _, span in pairs) * 1e3
        ratio = statistics.median(span / bare for span, bare in pairs)
        print(f"  {what}: {ours:.2f} ms, Ping {bare:.2f} ms, ratio {ratio:.2f} ({count} pairs)")


def main() -> int:
    """Measure with few and with many processes."""
    with PrivateManager() as manager:
        config = manager.home / ".config/sdqueue"
        config.mkdir(parents=True)
        (config / "sdqueue.toml").write_text(CONFIG)
        with Queue(manager) as queue:
            eventually(lambda: queue.ask("ListLanes")[0]["state"] == "free", "the lane to be free")
            for count in (FEW, MANY):
                with sleepers(count):
                    there = sum(each.name.isdecimal() for each in Path("/proc").iterdir())
                    print(f"{there} processes:")
                    report(asyncio.run(calls(manager.bus_address)), CALLS)
                    report(programs(manager), PROGRAMS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
