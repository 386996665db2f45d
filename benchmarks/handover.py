"""From the last instruction of a job to the first of the next, against a bare StartTransientUnit.

Jobs of one lane with one slot write bash's EPOCHREALTIME as their first and last act; the gaps
between are the hand-overs. Once without checks, once with a DONE_IF that is false before and true
after. A bare hand-over is the time from calling StartTransientUnit for `true` to its JobRemoved, on
the same bus, in turns with the queue. Printed: p50 and p99 of both, and their ratios.
"""

import asyncio
import statistics
import sys
import time

from benchmarks.throughput import PROPERTIES, Queue
from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import JobRemoved, Systemd, SystemdEvent
from tests.harness.manager import PrivateManager
from tests.harness.waiting import eventually

ROUNDS = 5
JOBS = 60
BODY = 'echo "$EPOCHREALTIME" >>"$HOME/begins"; echo "$EPOCHREALTIME" >>"$HOME/ends"'
CHECKED = f'echo "$EPOCHREALTIME" >>"$HOME/begins"; >"$STATE_DIRECTORY/ok"; {BODY.split("; ")[1]}'


async def bare(address: str, count: int) -> list[float]:
    """Time `count` bare starts, each from the call to JobRemoved; seconds."""
    ended = asyncio.Event()

    def on_event(event: SystemdEvent) -> None:
        if isinstance(event, JobRemoved) and event.unit.startswith("bare-"):
            ended.set()

    spans = []
    async with await Bus.connect(address) as bus:
        systemd = Systemd(bus, on_event, prefixes=("none-of-them",))
        await systemd.subscribe()
        for number in range(count):
            ended.clear()
            began = time.perf_counter()
            await systemd.start_transient(f"bare-{number}.service", PROPERTIES)
            await ended.wait()
            spans.append(time.perf_counter() - began)
    return spans


def gaps(queue: Queue, body: str, prefix: str, *headers: str) -> list[float]:
    """Run a round of jobs, and return the hand-overs between them; seconds."""
    home = queue.manager.home
    for file in ("begins", "ends"):
        (home / file).unlink(missing_ok=True)
    queue.ask("PauseLane", "sb", "cpu", "true")
    for number in range(JOBS):
        queue.put(f"{prefix}{number}-cpu-x", body, *headers)
    eventually(lambda: int(queue.ask("ListLanes")[0]["queued"]) == JOBS, "all to be queued")
    queue.ask("PauseLane", "sb", "cpu", "false")
    queue.wait(f"{prefix}{JOBS - 1}-cpu-x", "done")
    begins = sorted(map(float, (home / "begins").read_text().split()))
    ends = sorted(map(float, (home / "ends").read_text().split()))
    return [begin - end for end, begin in zip(ends, begins[1:], strict=False)]


def p99(values: list[float]) -> float:
    """Give the 99th percentile."""
    return statistics.quantiles(values, n=100)[98]


def report(what: str, ours: list[float], limits: list[float]) -> None:
    """Print one line of figures, in milliseconds, and the ratios."""
    p50_ours, p50_bare = statistics.median(ours), statistics.median(limits)
    print(
        f"{what}: p50 {p50_ours * 1e3:.1f} ms, p99 {p99(ours) * 1e3:.1f} ms; "
        f"bare p50 {p50_bare * 1e3:.1f} ms, p99 {p99(limits) * 1e3:.1f} ms; "
        f"ratios p50 {p50_ours / p50_bare:.1f}, p99 {p99(ours) / p99(limits):.1f}"
    )


def main() -> int:
    """Measure in turns, with and without checks."""
    plain: list[float] = []
    checked: list[float] = []
    limits: list[float] = []
    ask = 'DONE_IF: test -e "$STATE_DIRECTORY/ok"'
    with PrivateManager() as manager, Queue(manager) as queue:
        for number in range(ROUNDS):
            plain += gaps(queue, BODY, f"1{number}")
            limits += asyncio.run(bare(manager.bus_address, JOBS))
            checked += gaps(queue, CHECKED, f"2{number}", ask)
    report("without checks", plain, limits)
    report("with DONE_IF", checked, limits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
