"""A whole queue under test: a controller on a manager's bus, its spool, and what it did.

with Queue(manager) as queue:               the controller runs
    queue.put("1-cpu-a", "exit 0")          a job file dropped into queue/, as cp would
    queue.wait("1-cpu-a", "done")           -> when the file is in done/
    queue.events("1-cpu-a")                 -> its lines of events.jsonl
    queue.kill(); queue.start()             the controller dies by -9; another one starts
"""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.harness.manager import Manager
from tests.harness.waiting import LIMIT_SEC, eventually

STATES = ("queue", "running", "done", "failed", "parked")
ENDS = {"done": ("done", "skipped"), "failed": ("failed",), "parked": ("parked", "canceled")}
DAEMON = [sys.executable, "-m", "sdqueue", "--user", "daemon"]


class Queue:
    """One controller, killed and started at will, on one spool."""

    def __init__(self, manager: Manager, *, wrapper: tuple[str, ...] = ()) -> None:
        self.manager = manager
        self.spool = Path(manager.env["XDG_STATE_HOME"]) / "sdqueue"
        self.wrapper = wrapper
        self.log = manager.home / "controller.log"
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tell()
        if self.process and self.process.poll() is None:
            self.stop()

    def _tell(self) -> None:
        """Print what happened last; pytest shows it where a test fails."""
        print(f"--- controller\n{self.said()[-20000:]}\n--- events")
        print("\n".join(map(str, self.events()[-100:])))

    # The controller

    def start(self, *wrapper: str) -> None:
        """Start a controller and wait until it has begun and answers."""
        before = len(self.events(event="runner-start"))
        self.process = self.launch(*wrapper)
        eventually(
            lambda: len(self.events(event="runner-start")) > before or self._died(),
            "the controller's start",
        )
        eventually(lambda: self._answers() or self._died(), "the controller on the bus")

    def _answers(self) -> bool:
        ask = ["busctl", "--user", "status", "org.sdqueue1"]
        return self.manager.run(ask, check=False).returncode == 0

    def launch(self, *wrapper: str) -> subprocess.Popen[str]:
        """Start a controller and wait for nothing."""
        with self.log.open("a") as log:
            return self.manager.popen(
                [*wrapper, *self.wrapper, *DAEMON], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _died(self) -> bool:
        status = self.process.poll() if self.process else None
        assert status is None, f"the controller exited {status} at its start:\n{self.said()}"
        return False

    def said(self) -> str:
        """Return what the controllers wrote to standard error."""
        return self.log.read_text() if self.log.exists() else ""

    def kill(self) -> None:
        """Kill the controller with -9."""
        assert self.process
        self.process.kill()
        self.process.wait(LIMIT_SEC)

    def stop(self) -> int:
        """End the controller as systemctl would, and return its exit status."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_SEC)

    # Jobs

    def put(self, name: str, body: str, *headers: str, shebang: str = "#!/bin/bash") -> None:
        """Drop a job file into queue/, complete from the first moment."""
        (self.spool / "queue").mkdir(parents=True, exist_ok=True)
        aside = self.spool / f"{name}.aside"
        lines = [shebang, *(f"# {header}" for header in headers), body, ""]
        aside.write_text("\n".join(lines))
        aside.rename(self.spool / "queue" / f"{name}.job")

    def state(self, name: str) -> str:
        """Say in which directories the job's file lies, "" if in none."""
        found = [state for state in STATES if (self.spool / state / f"{name}.job").exists()]
        return "+".join(found)

    def wait(self, name: str, state: str, *, limit_sec: float = LIMIT_SEC) -> None:
        """Wait until the job's file is in the directory of that state, and its event is written."""

        def there() -> bool:
            assert self.state(name) == state, f"{name} is in {self.state(name) or 'no directory'}"
            return not (ends := ENDS.get(state)) or self.words(name)[-1:] in [[end] for end in ends]

        eventually(there, f"{name} in {state}/", limit_sec=limit_sec)

    def wait_running(self, name: str) -> str:
        """Wait until systemd runs the job and the log says so, and return its unit."""
        unit = f"sdqueue-job-{name}.service"
        begun = ("start", "reattached")
        eventually(lambda: self.words(name)[-1:] in [[word] for word in begun], f"{unit} to run")
        assert self.manager.show(unit, "ActiveState") == "activating"
        return unit

    def work(self, name: str) -> Path:
        """Return the job's STATE_DIRECTORY."""
        return self.spool / "work" / name

    def record(self, name: str, run: int = 1) -> dict[str, Any]:
        """Return run.json of one run."""
        text = (self.spool / "runs" / name / str(run) / "run.json").read_text()
        found = json.loads(text)
        assert isinstance(found, dict)
        return found

    # What happened

    def events(self, job: str = "", *, event: str = "") -> list[dict[str, Any]]:
        """Return the lines of events.jsonl, those of one job or of one kind if asked."""
        file = self.spool / "events.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [
            each
            for each in found
            if (not job or each["job"] == job) and (not event or each["event"] == event)
        ]

    def words(self, job: str) -> list[str]:
        """Return the kinds of a job's events but for its waits, in order."""
        return [each["event"] for each in self.events(job) if each["event"] != "wait"]

    def ask(self, method: str, *arguments: str) -> Any:
        """Call a method of org.sdqueue1.Manager, and return what it answers."""
        call = ["busctl", "--user", "--json=short", "call"]
        call += ["org.sdqueue1", "/org/sdqueue1", "org.sdqueue1.Manager", method, *arguments]
        answer = json.loads(self.manager.run(call).stdout or "null")
        return plain(answer["data"][0]) if answer else None

    def reason(self, name: str) -> str:
        """Return the code for which a queued job does not run, "" if it has none."""
        rows = self.ask("ListJobs", "as", "1", name)
        return str(rows[0].get("reason", {}).get("code", "")) if rows else ""

    def wait_reason(self, name: str, code: str) -> None:
        """Wait until a queued job waits for that reason."""
        eventually(lambda: self.reason(name) == code, f"{name} to wait for {code}")


def plain(value: Any) -> Any:
    """Take busctl's `{"type", "data"}` off every variant."""
    if isinstance(value, dict) and value.keys() == {"type", "data"}:
        return plain(value["data"])
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def overlaps(spans: list[tuple[float, float]], others: list[tuple[float, float]]) -> bool:
    """Say whether any span of the one list overlaps any of the other."""
    return any(a < d and c < b for a, b in spans for c, d in others)
