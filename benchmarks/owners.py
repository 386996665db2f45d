"""What a look at who uses a lane costs: one full sweep, and one with what is remembered.

With FEW and with MANY sleeping processes more on the box, each with FILES descriptors: a sweep by
descriptors for a device that nobody has, first in full and then again, by names, and by both; each
against a bare listing of /proc with a look at every process's status, one after the other. Then a
controller whose lane has a device that is there, while nothing changes: its share of a processor,
from the time it takes for the looks in SECONDS with a recheck of RECHECK_SEC, and what that is at
the default recheck.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sdqueue.core.lane import Config, Lane
from sdqueue.owners.sweep import LaneMemory, Sweep
from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually

FEW, MANY, FILES = 300, 3000, 12
ROUNDS = 15
SECONDS, RECHECK_SEC = 30, 1
PROCESSES = """
import os, signal, sys
for _ in range(int(sys.argv[2])):
    os.open("/dev/null", os.O_RDONLY)
for _ in range(int(sys.argv[1]) - 1):
    if not os.fork():
        signal.pause()
print("up", flush=True)
signal.pause()
"""


@contextmanager
def processes(count: int) -> Iterator[None]:
    """Have so many processes more on the box."""
    argv = [sys.executable, "-c", PROCESSES, str(count), str(FILES - 3)]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert parent.stdout
    parent.stdout.readline()
    try:
        yield
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()


def bare() -> None:
    """List the processes and look at each one's status."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                os.stat(f"/proc/{name}/fd")
            except OSError:
                pass


def timed(work: Callable[[], object]) -> float:
    """Say how long something took, in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def sweeps(device: str) -> dict[str, tuple[float, float]]:
    """Give the median of each kind of sweep in ms, and of its ratio to the bare listing."""
    by_device = Lane("gpu", devices=(device,))
    by_name = Lane("gpu", foreign=("no-such-engine",))
    kinds = {
        "descriptors, full": (by_device, True),
        "descriptors, again": (by_device, False),
        "names": (by_name, False),
        "both, again": (by_device._replace(foreign=by_name.foreign), False),
    }
    memories = {kind: LaneMemory() for kind in kinds}
    spans: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, (lane, is_full) in kinds.items():
            against = timed(bare)
            sweep = Sweep(lane, memories[kind])
            took = timed(lambda sweep=sweep, full=is_full: sweep.whole(is_full=full))  # type: ignore[misc]
            spans[kind].append((took, against))
    return {
        kind: (
            statistics.median(took for took, _ in rows) * 1000,
            statistics.median(took / against for took, against in rows),
        )
        for kind, rows in spans.items()
    }


def cpu_sec(pid: int) -> float:
    """Say how much time of a processor a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def controller_share(device: str, recheck_sec: float) -> float:
    """Say which share of a processor a controller has that only looks now and then."""
    with PrivateManager() as manager:
        config = manager.home / ".config/sdqueue/sdqueue.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'recheck = "{recheck_sec}s"\n[lane.gpu]\ndevices = ["{device}"]\n')
        with Queue(manager) as queue:
            queue.put("1-gpu-a", "sleep 1000")
            queue.wait_running("1-gpu-a")
            assert queue.process
            pid = queue.process.pid
            eventually(lambda: is_quiet(pid), "the controller to come to rest")
            before = cpu_sec(pid)
            time.sleep(SECONDS)
            share = (cpu_sec(pid) - before) / SECONDS
            queue.ask("CancelJob", "s", "1-gpu-a")
            queue.wait("1-gpu-a", "parked")
    return share


def is_quiet(pid: int) -> bool:
    """Say whether the process did next to nothing for two seconds."""
    before = cpu_sec(pid)
    time.sleep(2)
    return cpu_sec(pid) - before < 0.5


def main() -> int:
    """Measure once and print."""
    master, slave = os.openpty()
    device = os.ttyname(slave)
    os.close(slave)
    default_sec = Config().recheck_usec / 1e6
    for count in (FEW, MANY):
        with processes(count):
            for kind, (ms, ratio) in sweeps(device).items():
                print(f"{count:5} processes: {kind:20} {ms:7.1f} ms, {ratio:5.1f} x a bare listing")
            share = controller_share(device, RECHECK_SEC)
            at_default = share * RECHECK_SEC / default_sec
            print(
                f"{count:5} processes: a controller beside a job that runs has {share:.2%} of a"
                f" processor with a recheck of {RECHECK_SEC} s, so {at_default:.3%} at"
                f" {default_sec:g} s"
            )
    os.close(master)
    return 0


if __name__ == "__main__":
    assert shutil.which("systemctl"), "systemd's programs are needed"
    sys.exit(main())
