"""What a controller does that has nothing to do: wake-ups and memory.

1,000 jobs stand behind a busy lane, none with REQUIRES; for SECONDS the context switches of all
threads of the controller are counted (each wake-up is at least one), and its resident memory read.
No watchdog is asked for, so nothing at all should happen.
"""

import sys
import time
from pathlib import Path

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually

SECONDS = 60
JOBS = 1000


def status(pid: int, field: str) -> int:
    """Sum one number of /proc/PID/task/*/status over all threads."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                total += int(line.split()[1])
    return total


def switches(pid: int) -> int:
    """Count the context switches of a process so far."""
    return status(pid, "voluntary_ctxt_switches") + status(pid, "nonvoluntary_ctxt_switches")


def main() -> int:
    """Measure once and print."""
    with PrivateManager() as manager, Queue(manager) as queue:
        queue.put("0-cpu-busy", "sleep 1000")
        queue.wait_running("0-cpu-busy")
        for number in range(1, JOBS + 1):
            queue.put(f"{number}-cpu-waits", "true")
        eventually(lambda: int(queue.ask("ListLanes")[0]["queued"]) == JOBS, "all to be queued")
        assert queue.process
        pid = queue.process.pid
        eventually(lambda: is_quiet(pid), "the controller to come to rest")
        before = switches(pid)
        time.sleep(SECONDS)
        woken = switches(pid) - before
        memory = next(
            int(line.split()[1]) / 1024
            for line in Path(f"/proc/{pid}/status").read_text().splitlines()
            if line.startswith("VmRSS:")
        )
        print(f"idle for {SECONDS} s with {JOBS} jobs waiting: {woken} wake-ups, {memory:.1f} MB")
        queue.ask("CancelJob", "s", "0-cpu-busy")
    return 0


def is_quiet(pid: int) -> bool:
    """Say whether the process did nothing for a second."""
    before = switches(pid)
    time.sleep(1)
    return switches(pid) == before


if __name__ == "__main__":
    sys.exit(main())
