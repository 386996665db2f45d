"""sdqueue beside its peers: jobs per second at one slot, and what each loses to kill -9.

Each queue is given JOBS small jobs at once, and timed from the first submission to the last end.
The peers come from Debian's packages (task-spooler, nq) and from systemd (systemd-run --wait). Then
the daemon (nq: its waiting processes) is killed with -9 while the first of LOSS jobs runs, started
again where that is possible, and the jobs that were done in the end are counted.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from benchmarks.throughput import Queue
from tests.harness.manager import PrivateManager
from tests.harness.waiting import eventually

JOBS = 200
LOSS = 10
SETTLE_SEC = 5.0
NUMBERS = count(1)


class TaskSpooler:
    """`tsp`, with a server of its own."""

    def __init__(self, directory: Path) -> None:
        self.env = {**os.environ, "TS_SOCKET": str(directory / "tsp"), "TMPDIR": str(directory)}

    def submit(self, *argv: str) -> None:
        """Queue one command."""
        subprocess.run(["tsp", "-n", *argv], env=self.env, stdout=subprocess.DEVNULL, check=True)

    def kill(self) -> None:
        """Kill the server with -9."""
        found = subprocess.run(["fuser", self.env["TS_SOCKET"]], capture_output=True, text=True)
        for pid in found.stdout.split():
            os.kill(int(pid), signal.SIGKILL)

    def close(self) -> None:
        """End the server."""
        subprocess.run(["tsp", "-K"], env=self.env, stderr=subprocess.DEVNULL)


class Nq:
    """`nq`, whose queue is a directory and its waiting processes."""

    def __init__(self, directory: Path) -> None:
        self.env = {**os.environ, "NQDIR": str(directory)}
        self.directory = directory

    def submit(self, *argv: str) -> None:
        """Queue one command."""
        subprocess.run(["nq", *argv], env=self.env, stdout=subprocess.DEVNULL, check=True)

    def kill(self) -> None:
        """Kill everything that waits, as a power cut would."""
        for file in self.directory.glob(",*"):
            pid = int(file.name.rpartition(".")[2])
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def close(self) -> None:
        """End what waits."""
        self.kill()


def rate(submit: Callable[..., None], log: Path) -> float:
    """Queue JOBS jobs that each write a line, and return how many per second were done."""
    began = time.perf_counter()
    for _ in range(JOBS):
        submit("sh", "-c", f"echo x >>{log}")
    eventually(lambda: log.exists() and log.stat().st_size >= 2 * JOBS, "all to be done")
    return JOBS / (time.perf_counter() - began)


def survivors(submit: Callable[..., None], kill: Callable[[], None], log: Path) -> int:
    """Kill the queue in the middle, and count the jobs that were done in the end."""
    log.unlink(missing_ok=True)
    for _ in range(LOSS):
        submit("sh", "-c", f"echo begun >>{log}.begun; sleep 0.3; echo x >>{log}")
    eventually(Path(f"{log}.begun").exists, "the first to run")
    kill()
    deadline = time.monotonic() + SETTLE_SEC
    while time.monotonic() < deadline and (not log.exists() or log.stat().st_size < 2 * LOSS):
        time.sleep(0.1)
    return log.stat().st_size // 2 if log.exists() else 0


def main() -> int:
    """Print one line for each."""
    with PrivateManager() as manager:
        home = manager.home
        for name, program, kind in (("task-spooler", "tsp", TaskSpooler), ("nq", "nq", Nq)):
            if not shutil.which(program):
                print(f"{name}: not installed")
                continue
            directory = home / program
            directory.mkdir()
            peer = kind(directory)
            speed = rate(peer.submit, home / f"{program}.log")
            left = survivors(peer.submit, peer.kill, home / f"{program}.loss")
            peer.close()
            print(f"{name}: {speed:.0f} jobs/s, {left} of {LOSS} jobs done after kill -9")
        speed = rate(lambda *argv: run_waiting(manager, argv), home / "systemd-run.log")
        print(f"systemd-run --wait, one after the other: {speed:.0f} jobs/s, keeps no queue")
        with Queue(manager) as queue:
            speed = rate(lambda *argv: submit_file(queue, argv), home / "sdqueue.log")
            left = survivors(
                lambda *argv: submit_file(queue, argv), lambda: restart(queue), home / "ours.loss"
            )
        print(f"sdqueue: {speed:.0f} jobs/s, {left} of {LOSS} jobs done after kill -9")
    return 0


def run_waiting(manager: PrivateManager, argv: tuple[str, ...]) -> None:
    """Run one command as a transient unit, and wait for it."""
    manager.run(["systemd-run", "--user", "--quiet", "--wait", *argv])


def submit_file(queue: Queue, argv: tuple[str, ...]) -> None:
    """Drop one job into the queue."""
    queue.put(f"{next(NUMBERS)}-cpu-peer", argv[2])


def restart(queue: Queue) -> None:
    """Kill the controller with -9 and start another, as systemd would."""
    queue.kill()
    queue.start()


if __name__ == "__main__":
    sys.exit(main())
