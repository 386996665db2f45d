"""A fixed queue that goes through every transition, disturbed at will, and what must come of it.

Each job writes a line when a run of it begins and one when it ends, with the attempt that it was
told. Whatever happens to the controller, these lines and the directories must come out as in an
undisturbed run: no job lost, doubled, or run twice at once, and each attempt spent once.

The scenario drives itself (a job opens another's gate, a job queues itself anew while it runs), but
for two cancels and a stranger's unit, which `drive` brings in.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.manager import PrivateManager
from tests.harness.queue import STATES, Queue
from tests.harness.waiting import eventually

CONFIG = 'recheck = "1s"\n[lane.cpu]\nslots = 6\n'
ONE_THREAD = Path(__file__).parents[1] / "harness/onethread"
MARK = 'mark() { echo "$1 $SDQUEUE_ATTEMPT $EPOCHREALTIME" >>"$HOME/marks/$SDQUEUE_JOB"; }\n'
AGAIN = """\
if [ ! -e "$HOME/reseeded" ]; then
    : >"$HOME/reseeded"
    cp "$XDG_STATE_HOME/sdqueue/running/9-cpu-again.job" "$HOME/again.aside"
    mv "$HOME/again.aside" "$XDG_STATE_HOME/sdqueue/queue/9-cpu-again.job"
    sleep 0.2
fi
"""


@dataclass(frozen=True, slots=True)
class Planned:
    """One job, and its end: directory, what its marks say, and the last run's outcome."""

    name: str
    body: str
    headers: tuple[str, ...]
    state: str
    marks: tuple[str, ...]
    outcome: str = ""


def _ran(*attempts: int) -> tuple[str, ...]:
    """Give the marks of runs that begin and end."""
    return tuple(f"{word} {attempt}" for attempt in attempts for word in ("begin", "end"))


OPEN = 'test -e "$HOME/open"'
JOBS: tuple[Planned, ...] = (
    Planned("1-cpu-skip", "true", ("DONE_IF: true",), "done", ()),
    Planned("2-cpu-gate", "true", (f"REQUIRES: {OPEN}",), "done", _ran(1), "done"),
    Planned(
        "3-cpu-open",
        '[ "$SDQUEUE_ATTEMPT" = 1 ] || : >"$HOME/open"',
        (f"DONE_IF: {OPEN}",),
        "done",
        _ran(1, 2),
        "done",
    ),
    Planned("4-cpu-retry", '[ "$SDQUEUE_ATTEMPT" = 2 ] || end 5', (), "done", _ran(1, 2), "done"),
    Planned("5-cpu-fail", "end 7", ("RETRIES: 2",), "failed", _ran(1, 2), "failed"),
    Planned("6-cpu-never", "true", ("REQUIRES: false",), "parked", ()),
    Planned("7-cpu-long", "sleep 1000", (), "parked", ("begin 1",), "canceled"),
    Planned("8-net-refused", "true", (), "done", _ran(1), "done"),
    Planned("9-cpu-again", AGAIN, (), "done", _ran(1, 1), "done"),
    Planned(
        "10-cpu-slow", "sleep 1000", ("TIMEOUT: 1s", "RETRIES: 1"), "failed", ("begin 1",), "failed"
    ),
    Planned(
        "11-cpu-true",
        ': >"$STATE_DIRECTORY/whole"; end 3',
        ('DONE_IF: test -e "$STATE_DIRECTORY/whole"',),
        "done",
        _ran(1),
        "done",
    ),
    Planned("12-gpu-after", "true", ("AFTER: 8-net-refused",), "done", _ran(1), "done"),
)
CANCELED_QUEUED, CANCELED_RUNNING = "6-cpu-never", "7-cpu-long"
AHEAD = ("9-cpu-again.job.~1~",)
"""What may lie beside: the first of two files of one name that both ended."""

STRANGER = (
    *("systemd-run", "--user", "--no-block", "--quiet", "--unit=stranger", "--collect"),
    *("--property=Type=oneshot", "--property=Requires=sdqueue-lane-gpu.target"),
    *("--property=After=sdqueue-lane-gpu.target", "sleep", "0.7"),
)
LANES = ("cpu", "gpu", "net")


def wipe(queue: Queue) -> None:
    """Take away what an earlier round left, so that one manager serves many."""
    home = queue.manager.home
    for path in (queue.spool, home / "marks", home / ".config/sdqueue"):
        shutil.rmtree(path, ignore_errors=True)
    for name in ("open", "reseeded"):
        (home / name).unlink(missing_ok=True)
    (home / "marks").mkdir()
    config = home / ".config/sdqueue/sdqueue.toml"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG)
    queue.log.unlink(missing_ok=True)
    queue.manager.run(["systemctl", "--user", "stop", "sdqueue-*.service", "stranger*"])
    queue.manager.run(["systemctl", "--user", "reset-failed"])


def seed(queue: Queue) -> None:
    """Put all jobs into the queue."""
    for job in JOBS:
        ending = 'end() { mark end; trap - EXIT; exit "${1:-0}"; }\n'
        queue.put(job.name, f"{MARK}{ending}mark begin\n{job.body}\nend", *job.headers)


def injected(call: str, fault: str) -> tuple[str, ...]:
    """Give the wrapper that has strace do something at a system call of the controller."""
    return (
        *("env", f"PYTHONPATH={ONE_THREAD}", "strace", "-D", "-f", "-qqq"),
        *("--signal=none", "-o", "/dev/null", "-e", f"trace={call}"),
        *("-e", f"inject={call}:{fault}", "--"),
    )


class Round:
    """One run of the scenario: a controller under fault, then others until all is at its end."""

    def __init__(self, manager: PrivateManager) -> None:
        self.queue = Queue(manager)
        self.canceled: dict[str, str] = {}
        self.deaths = 0

    def play(self, wrapper: Sequence[str] = (), *, limit_sec: float = 120.0) -> None:
        """Have the scenario run to its end; the first controller is started in `wrapper`."""
        queue = self.queue
        wipe(queue)
        seed(queue)
        queue.manager.run(STRANGER, check=False)
        queue.process = queue.launch(*wrapper)
        eventually(self._is_at_end, "the end of every job", every_sec=0.1, limit_sec=limit_sec)
        queue.stop()

    def _is_at_end(self) -> bool:
        queue = self.queue
        assert queue.process
        if queue.process.poll() is not None:
            self.deaths += 1
            assert self.deaths == 1, queue.said()
            queue.process = queue.launch()
        self._cancel()
        places = {job.name: queue.state(job.name) for job in JOBS}
        wrong = {job.name: places[job.name] for job in JOBS if places[job.name] != job.state}
        assert not wrong, wrong
        units = self.units()
        assert not units, f"left in systemd: {units}"
        return True

    def _cancel(self) -> None:
        """Ask for the two cancels, as soon as they make sense and until they are answered."""
        marks = self.queue.manager.home / "marks" / CANCELED_RUNNING
        for name, is_time in ((CANCELED_QUEUED, True), (CANCELED_RUNNING, marks.exists())):
            if not is_time or name in self.canceled:
                continue
            call = ["busctl", "--user", "call", "--auto-start=no", "org.sdqueue1", "/org/sdqueue1"]
            call += ["org.sdqueue1.Manager", "CancelJob", "s", name]
            answer = self.queue.manager.run(call, check=False)
            if answer.returncode == 0:
                self.canceled[name] = answer.stdout

    def faults(self) -> list[str]:
        """Say in what the end differs from that of an undisturbed run."""
        found: list[str] = []
        for job in JOBS:
            found += self._faults_of(job)
        queue = self.queue
        files = {file.name for state in STATES for file in (queue.spool / state).iterdir()}
        strange = files - {f"{job.name}.job" for job in JOBS} - set(AHEAD)
        found += [f"strange files {sorted(strange)}"] if strange else []
        left = sorted(file.name for file in (queue.spool / "meta").iterdir())
        found += [f"left in meta/: {left}"] if left else []
        numbers = [event["seq"] for event in queue.events()]
        found += [] if len(set(numbers)) == len(numbers) else ["a seq twice"]
        return found

    def _faults_of(self, job: Planned) -> list[str]:
        marks = self._marks(job.name)
        said = [f"{word} {attempt}" for word, attempt, _ in marks]
        found = [] if said == list(job.marks) else [f"{job.name}: marks {said}"]
        records = self._records(job.name)
        if job.outcome and (not records or records[-1].get("outcome") != job.outcome):
            found.append(f"{job.name}: records {records}")
        open_ones = [record for record in records if "outcome" not in record]
        found += [f"{job.name}: records without an end {open_ones}"] if open_ones else []
        return found

    def _marks(self, name: str) -> list[list[str]]:
        file = self.queue.manager.home / "marks" / name
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def _records(self, name: str) -> list[dict[str, object]]:
        runs = self.queue.spool / "runs" / name
        numbers = sorted(int(each.name) for each in runs.iterdir()) if runs.exists() else []
        files = [runs / str(number) / "run.json" for number in numbers]
        return [json.loads(file.read_text()) for file in files if file.exists()]

    def units(self) -> list[str]:
        """List the units that the manager still has of the queue."""
        ask = ["systemctl", "--user", "list-units", "--all", "--plain", "--no-legend"]
        return self.queue.manager.run([*ask, "sdqueue-*.service"]).stdout.splitlines()
