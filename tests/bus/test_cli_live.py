"""The command line against a controller at work, on a real user manager."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.waiting import LIMIT_SEC, eventually

PROGRAM = [sys.executable, "-m", "sdqueue", "--user"]


class Live:
    """A controller on the manager, and the program beside it."""

    def __init__(self, manager: PrivateManager) -> None:
        self.manager = manager
        self.spool = Path(manager.env["XDG_STATE_HOME"]) / "sdqueue"
        self.daemon: subprocess.Popen[str] | None = None
        self.env = {"PYTHONPATH": str(Path(__file__).parents[2])}

    def start(self) -> None:
        """Start a controller, and wait until it answers."""
        with (self.manager.home / "daemon.log").open("a") as log:
            self.daemon = self.popen("daemon", stdout=log, stderr=log)
        eventually(lambda: self("plan").returncode == 0, "the controller to answer")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End the controller."""
        assert self.daemon
        self.daemon.send_signal(how)
        return self.daemon.wait(LIMIT_SEC)

    def __call__(self, *words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        env = self.env | options.pop("env", {})
        return self.manager.run([*PROGRAM, *words], check=False, env=env, **options)

    def popen(self, *words: str, **options: Any) -> "subprocess.Popen[str]":
        return self.manager.popen([*PROGRAM, *words], env=self.env, **options)

    def json(self, *words: str) -> Any:
        """Return what a call prints as JSON; nothing else may be on stdout."""
        done = self(*words, "--json=short")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def json_of(self, *words: str) -> Any:
        """Return what a call prints as JSON, whatever its exit status is."""
        return json.loads(self(*words, "--json=short").stdout)

    def row(self, name: str) -> dict[str, Any]:
        """Return a job's row."""
        rows: list[dict[str, Any]] = self.json("list", name)
        assert len(rows) == 1, rows
        return rows[0]

    def submit(self, *words: str) -> str:
        """Submit and return the name."""
        done = self("submit", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    def wait_state(self, name: str, state: str) -> None:
        """Wait until the controller, too, has the job in that state."""

        def there() -> bool:
            row = self.row(name)
            return bool(row["state"] == state and (state != "running" or row["invocation"]))

        eventually(there, f"{name} to be {state}")


@pytest.fixture(scope="module")
def module_live() -> Iterator[Live]:
    from tests.harness import manager as managers
    from tests.harness.tools import require

    require(managers.missing())
    with PrivateManager() as manager:
        live = Live(manager)
        live.start()
        yield live
        assert live.daemon
        if live.daemon.poll() is None:
            live.stop()
        print((manager.home / "daemon.log").read_text())


@pytest.fixture
def live(module_live: Live) -> Iterator[Live]:
    """Give the controller of all tests here, with an empty queue."""
    yield module_live
    module_live("cancel", "*")
    module_live("wait", "--all")


@pytest.fixture
def own(manager: PrivateManager) -> Iterator[Live]:
    """Give a controller of this test's own, to be killed and started at will."""
    live = Live(manager)
    live.start()
    yield live
    live.stop()


def test_run_prints_all_that_the_job_prints_and_nothing_else(live: Live) -> None:
    done = live("run", "--", "seq", "20000")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"{n}\n" for n in range(1, 20001))


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--", "true"), 0),
        (("--", "sh", "-c", "exit 7"), 7),
        (("--done-if", "false", "--", "true"), 4),
        (("--done-if", "true", "--", "false"), 0),
        (("--timeout", "1s", "--", "sleep", "60"), 124),
        (("--", "sh", "-c", "kill -9 $$"), 137),
        (("--", "/no/such/program"), 127),
    ],
)
def test_run_exits_as_the_job_did(live: Live, words: tuple[str, ...], status: int) -> None:
    done = live("run", "--retries", "1", *words)
    assert done.returncode == status, done.stderr


def test_run_of_a_job_that_is_canceled_is_status_5(live: Live) -> None:
    with live.popen("run", "--name", "1-cpu-c", "--", "sleep", "60", stderr=subprocess.PIPE) as run:
        live_name = "1-cpu-c"
        eventually(lambda: (live.spool / "running" / f"{live_name}.job").exists())
        live.wait_state(live_name, "running")
        done = live("cancel", live_name)
        assert (done.returncode, done.stdout) == (0, "1-cpu-c: being stopped, and set aside then\n")
        _, said = run.communicate(timeout=LIMIT_SEC)
    assert run.returncode == 5, said


def test_ctrl_c_leaves_the_job_running_and_says_how_to_go_on(live: Live) -> None:
    with live.popen("run", "--name", "1-cpu-k", "--", "sleep", "60", stderr=subprocess.PIPE) as run:
        eventually(lambda: (live.spool / "running/1-cpu-k.job").exists())
        live.wait_state("1-cpu-k", "running")
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=LIMIT_SEC)
    assert run.returncode == -signal.SIGINT
    assert "1-cpu-k goes on without us" in said
    assert "sdqueue logs -f 1-cpu-k" in said
    assert live.row("1-cpu-k")["state"] == "running"


def test_why_follows_the_chain_and_list_status_and_plan_agree(live: Live) -> None:
    live.submit("--lane", "gpu", "--name", "g", "--", "sleep", "60")
    live.wait_state("g", "running")
    live.submit("--lane", "net", "--name", "n1", "--", "true")
    live.submit("--lane", "net", "--name", "n2", "--", "true")
    live.submit("--name", "c", "--requires", "exit 3", "--", "true")
    eventually(lambda: live.row("c")["reason"]["code"] == "requires-false")
    (chain,) = live.json("why", "n2")
    assert [(link["name"], link["code"]) for link in chain["chain"]] == [
        ("n2", "earlier-job"),
        ("n1", "excluded-lane"),
        ("g", ""),
    ]
    rows = {row["name"]: row for row in live.json("list", "--state=queued")}
    assert rows["n1"]["reason"]["blocker"] == "sdqueue-job-g.service"
    assert {row["name"]: row["reason"] for row in live.json("plan")} == {
        name: row["reason"] for name, row in rows.items()
    }
    status = live.json("status")
    lanes = {lane["name"]: lane for lane in status["lanes"]}
    assert (lanes["gpu"]["state"], lanes["net"]["state"], lanes["net"]["next"]) == (
        "running",
        "wanted",
        "n1",
    )
    assert not status["safe_to_reboot"]
    assert live("status", "--exit-code").returncode == 1
    text = live("status").stdout
    assert "lane gpu is in use by" in text
    shown = live("status", "n2").stdout
    assert "n1 is before it in lane net" in shown


def test_pause_stops_the_next_start_and_resume_lets_it_go(live: Live) -> None:
    assert "nothing new starts" in live("pause", "gpu").stdout
    live.submit("--lane", "gpu", "--name", "p", "--", "true")
    eventually(lambda: live.row("p")["reason"]["code"] == "paused")
    assert live.json("resume", "gpu") == [{"lane": "gpu", "paused": False}]
    assert live("wait", "p").returncode == 0
    assert live("pause", "gup").returncode == 2


def test_cancel_takes_globs_and_says_what_it_did_to_each(live: Live) -> None:
    live.submit("--lane", "gpu", "--name", "x-run", "--", "sleep", "60")
    live.wait_state("x-run", "running")
    live.submit("--lane", "gpu", "--name", "x-wait", "--", "true")
    eventually(lambda: live.row("x-wait")["reason"]["code"] != "new")
    assert {row["name"]: row["effect"] for row in live.json("cancel", "x-*")} == {
        "x-run": "stopping",
        "x-wait": "parked",
    }
    assert live("wait", "x-run", "x-wait").returncode == 5
    assert live("cancel", "x-run").returncode == 1


def test_logs_has_every_run_and_can_show_one(live: Live) -> None:
    body = 'echo attempt "$SDQUEUE_ATTEMPT"; exit 3'
    assert live("run", "--name", "l", "--retries", "2", "--", "bash", "-c", body).returncode == 3
    live.manager.run(["journalctl", "--sync"])

    def said(*words: str) -> list[str]:
        lines = live("logs", "-o", "cat", "l", *words).stdout.splitlines()
        return [line for line in lines if line.startswith("attempt ")]

    assert said() == ["attempt 1", "attempt 2"]
    assert said("--run", "1") == ["attempt 1"]
    assert said("--run=-1") == ["attempt 2"]
    assert "attempt 2" in live("status", "l").stdout
    runs = live.json("show", "l")[0]["runs"]
    assert [(run["attempt"], run["rc"], run["outcome"]) for run in runs] == [
        (1, 3, "retry"),
        (2, 3, "failed"),
    ]


def test_waiting_looking_and_submitting_go_on_while_the_controller_is_away(own: Live) -> None:
    go = own.manager.home / "go"
    own.submit("--name", "w", "--", "sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done")
    own.wait_state("w", "running")
    with own.popen("wait", "w", "v", stdout=subprocess.PIPE) as too_early:
        assert too_early.wait(LIMIT_SEC) == 4
    own.stop(signal.SIGKILL)
    done = own("submit", "--name", "v", "--", "true")
    assert (done.returncode, done.stdout) == (0, "v\n")
    assert "no controller is running" in done.stderr
    assert own.row("v")["reason"]["code"] == "no-controller"
    assert own.json("status")["controller"]["running"] is False
    assert own("plan").returncode == 3
    with own.popen("wait", "w", "v", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        assert waiting.stderr
        assert "nothing ends" in waiting.stderr.readline()
        go.touch()
        own.start()
        out, _ = waiting.communicate(timeout=LIMIT_SEC)
    assert (waiting.returncode, sorted(out.splitlines())) == (0, ["v done", "w done"])


def test_events_follow_sees_a_job_go_by(live: Live) -> None:
    live.submit("--name", "before", "--", "true")
    assert live("wait", "before").returncode == 0
    file = live.manager.home / "followed"
    with (
        file.open("w") as out,
        live.popen("events", "-f", "--json=short", "?", "before", stdout=out) as follower,
    ):
        try:
            eventually(lambda: "before" in file.read_text(), "the follower to begin")
            live.submit("--name", "e", "--", "true")
            eventually(lambda: _words(file, "e") == ["start", "done"], "the job's events")
        finally:
            follower.terminate()


def _words(file: Path, job: str) -> list[str]:
    events = [json.loads(line) for line in file.read_text().splitlines()]
    return [event["event"] for event in events if event["job"] == job]


def test_a_second_controller_is_refused_in_words(live: Live) -> None:
    done = live("daemon")
    assert done.returncode == 1
    assert "another controller" in done.stderr
    assert done.stderr.count("\n") == 1
