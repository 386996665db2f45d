"""100,000 waiting jobs against 100: what they cost the rest.

For each size, on one private manager: the time until a controller has begun, against `ls -l` of
the same directory; its memory; the time of `sdqueue status`; and the hand-over between jobs of a
lane in front of the crowd (from the last instruction of one to the first of the next, median).
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.throughput import Queue
from tests.harness.manager import PrivateManager
from tests.harness.waiting import eventually

SIZES = (100, 100_000)
FRONT = 30
STAMPS = 'echo "$EPOCHREALTIME" >>"$HOME/begins"; echo "$EPOCHREALTIME" >>"$HOME/ends"'
LIMIT_SEC = 300.0


def crowd(queue: Queue, count: int) -> None:
    """Write the waiting jobs: the front writes its times, the rest stands behind it."""
    directory = queue.spool / "queue"
    directory.mkdir(parents=True)
    for number in range(count):
        (directory / f"{number + 1000}-cpu-x.job").write_text(f"#!/bin/bash\n{STAMPS}\n")


def seconds_of(queue: Queue, *argv: str) -> float:
    """Time one program."""
    began = time.perf_counter()
    queue.manager.run([*argv], stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(count: int) -> dict[str, float]:
    """Measure one size."""
    with PrivateManager() as manager:
        queue = Queue(manager)
        crowd(queue, count)
        seconds_of(queue, "ls", "-l", str(queue.spool / "queue"))
        found = {"ls -l": seconds_of(queue, "ls", "-l", str(queue.spool / "queue"))}
        began = time.perf_counter()
        with queue:
            found["start"] = time.perf_counter() - began
            ends = manager.home / "ends"
            eventually(
                lambda: ends.exists() and len(ends.read_text().split()) > FRONT,
                "the front",
                limit_sec=LIMIT_SEC,
            )
            queue.ask("PauseLane", "sb", "cpu", "true")
            found["hand-over"] = hand_over(manager.home)
            sdqueue = str(Path(sys.executable).parent / "sdqueue")
            found["status"] = statistics.median(
                seconds_of(queue, sdqueue, "--user", "status") for _ in range(3)
            )
            assert queue.process
            found["MB"] = resident_mb(queue.process.pid)
    return found


def hand_over(home: Path) -> float:
    """Give the median gap between jobs."""
    begins = sorted(map(float, (home / "begins").read_text().split()))
    ends = sorted(map(float, (home / "ends").read_text().split()))
    return statistics.median(b - e for e, b in zip(ends, begins[1:], strict=False))


def resident_mb(pid: int) -> float:
    """Read a process's resident memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def main() -> int:
    """Print both sizes and the ratios."""
    small, large = (measure(size) for size in SIZES)
    for what, value in large.items():
        ratio = value / small[what]
        print(f"{what}: {small[what]:.3f} with 100, {value:.3f} with 100,000: {ratio:.1f} times")
    print(f"start on 100,000 files: {large['start'] / large['ls -l']:.1f} times ls -l")
    return 0


if __name__ == "__main__":
    sys.exit(main())
