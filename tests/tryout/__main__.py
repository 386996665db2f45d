"""A small real queue, from nothing to its last job, in front of your eyes.

Where you have a user manager it is used, with a spool of its own; where there is none, a private
one is started (as root). Exits 0 if everything came out as it should. Nothing stays behind.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.harness.manager import Manager, ManagerError, OwnManager, PrivateManager, user_manager
from tests.harness.waiting import eventually
from tests.tryout.expected import judge
from tests.tryout.server import Server, contents

SDQUEUE = [str(Path(sys.executable).parent / "sdqueue"), "--user"]
FETCH = "import sys, urllib.request as r; r.urlretrieve(sys.argv[1], sys.argv[2])"
BENCH = 'for n in 1 2 3; do echo "run $n: $((40 + n)).7 tokens/s"; sleep 0.7; done'
FLAKY = (
    'echo "trying"; [ -e "$STATE_DIRECTORY/tried" ] && touch result; touch "$STATE_DIRECTORY/tried"'
)
BUSY = "org.sdqueue1"


class Show:
    """What is typed and what it answers, on one terminal."""

    def __init__(self, manager: Manager, env: dict[str, str], home: Path) -> None:
        self.manager = manager
        self.env = env
        self.home = home
        self._bold, self._plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")

    def say(self, text: str) -> None:
        """Tell what comes."""
        print(f"\n{self._bold}# {text}{self._plain}", flush=True)

    def type(self, argv: Sequence[str], *, shown: str = "") -> int:
        """Run a command as if it were typed here."""
        self._print(shown or shlex.join(argv))
        with self.start(argv) as process:
            return process.wait()

    def type_beside(self, argv: Sequence[str]) -> "subprocess.Popen[str]":
        """Run a command as if it were typed in another terminal, and let it go on."""
        self._print(f"{shlex.join(argv)} &")
        return self.start(argv)

    def _print(self, command: str) -> None:
        command = command.replace(shlex.join(SDQUEUE), "sdqueue")
        print(f"{self._bold}$ {command}{self._plain}", flush=True)

    def start(self, argv: Sequence[str], **options: object) -> "subprocess.Popen[str]":
        """Start a command that goes on beside."""
        return self.manager.popen(argv, env=self.env, cwd=self.home, **options)

    def submit(self, *arguments: str) -> None:
        """Submit one job."""
        self.type([*SDQUEUE, "submit", "--cwd", str(self.home), *arguments])


def main() -> int:
    """Bring the queue up, run it to its end, take it down."""
    try:
        manager = _manager()
    except ManagerError as error:
        print(f"make try needs a systemd user manager: {error}", file=sys.stderr)
        return 1
    with ExitStack() as stack:
        stack.enter_context(manager)
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sdqueue-try-")))
        env = {"XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
        files = {name: contents(3_000_000, seed) for seed, name in enumerate(("model", "tokens"))}
        server = stack.enter_context(Server(files))
        show = Show(manager, env, home)
        stack.callback(_clean_up, manager)
        return _play(show, server)


def _manager() -> Manager:
    manager = user_manager()
    if isinstance(manager, OwnManager) and _is_busy(manager):
        return PrivateManager()  # your own queue runs there: leave it alone
    return manager


def _is_busy(manager: Manager) -> bool:
    return manager.run(["busctl", "--user", "status", BUSY], check=False).returncode == 0


def _play(show: Show, server: Server) -> int:
    private = isinstance(show.manager, PrivateManager)
    which = "a private user manager, started for this" if private else "your own user manager"
    show.say(f"real systemd: {which}; the spool is temporary")
    with _controller(show):
        show.say("a small queue is submitted")
        _submit_all(show, server)
        show.say("its jobs become units; this is what happens")
        with _ended(show.start([*SDQUEUE, "events", "--follow"])):
            _look_while_it_runs(show)
            show.start([*SDQUEUE, "wait", "--all"], stdout=subprocess.DEVNULL).wait(60)
            _share_the_gpu(show)
        return _conclude(show)


@contextmanager
def _controller(show: Show) -> Iterator[None]:
    """Have a controller run, as sdqueue.service would."""
    with (show.home / "controller.log").open("w") as log:
        daemon = show.start([*SDQUEUE, "daemon"], stdout=log, stderr=log)
    with _ended(daemon):
        ask = ["busctl", "--user", "status", BUSY]
        eventually(lambda: show.manager.run(ask, check=False).returncode == 0, "the controller")
        yield


@contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    """End a process that goes on beside, as Ctrl-C or systemctl would."""
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _submit_all(show: Show, server: Server) -> None:
    for name, job in (("model", "10-net-model"), ("tokens", "11-net-tokens")):
        done_if = f"echo {server.sha256(name)} {name} | sha256sum --check --quiet"
        fetch = [sys.executable, "-c", FETCH, server.url(name), name]
        show.submit(f"--name={job}", f"--done-if={done_if}", "--", *fetch)
    bash = ["--", "bash", "-c"]
    show.submit("--name=20-gpu-bench", *bash, BENCH)
    show.submit("--name=30-cpu-convert", *bash, "sleep 2; echo converted")
    show.submit("--name=31-cpu-flaky", "--done-if=test -e result", *bash, FLAKY)
    show.submit("--name=32-cpu-broken", "--retries=2", *bash, "echo no such model >&2; exit 7")
    show.submit("--name=33-cpu-reseeded", "--done-if=true", *bash, "echo never runs")


def _look_while_it_runs(show: Show) -> None:
    """Once the benchmark waits for the downloads, ask why; once it runs, ask systemd."""
    spool = show.home / "state" / "sdqueue"
    running = spool / "running"
    eventually(lambda: running.is_dir() and any(running.glob("*-net-*.job")), "a download")
    show.type([*SDQUEUE, "why", "20-gpu-bench"])
    eventually(lambda: (running / "20-gpu-bench.job").exists(), "the benchmark")
    unit = "sdqueue-job-20-gpu-bench.service"
    eventually(lambda: show.manager.show(unit, "ActiveState") == "activating", "its unit")
    show.type(["systemctl", "--user", "status", "--no-pager", "--lines=0", unit])


def _share_the_gpu(show: Show) -> None:
    """Hold the lane by hand until a job waits for it."""
    show.say("a model server has the lane; when a job waits, it is asked to let go")
    hold = ["hold", "gpu", "--yield=1s", "--why=serves a model", "--", "sleep", "600"]
    with _ended(show.type_beside([*SDQUEUE, *hold])) as engine:
        state = [*SDQUEUE, "is-free", "--quiet", "gpu"]
        eventually(lambda: show.start(state).wait() == 1, "the lease")
        show.type([*SDQUEUE, "is-free", "gpu"])
        show.type([*SDQUEUE, "owners", "gpu"])
        show.submit("--name=40-gpu-late", "--", "echo", "measured when the server was gone")
        show.type([*SDQUEUE, "why", "40-gpu-late"])
        show.start([*SDQUEUE, "wait", "40-gpu-late"], stdout=subprocess.DEVNULL).wait(60)
        engine.wait(60)


def _conclude(show: Show) -> int:
    show.say("what became of them")
    show.type([*SDQUEUE, "status"])
    show.type([*SDQUEUE, "list"])
    show.say("the same jobs, as systemd and the journal know them")
    show.type(["systemctl", "--user", "list-units", "--no-pager", "--all", "sdqueue*"])
    show.type([*SDQUEUE, "logs", "20-gpu-bench"])
    journal = ["journalctl", "--no-pager", "--output=cat", "SYSLOG_IDENTIFIER=32-cpu-broken"]
    show.type(journal)
    troubles = judge(show.home / "state" / "sdqueue")
    for trouble in troubles:
        print(f"NOT AS IT SHOULD BE: {trouble}", file=sys.stderr)
    if not troubles:
        show.say("all as it should be: nothing overlapped that must not, DONE_IF had the last word")
    return 1 if troubles else 0


def _clean_up(manager: Manager) -> None:
    """Take the lanes' units out of a manager that lives on."""
    if not isinstance(manager, OwnManager):
        return
    for unit in (manager.runtime_dir / "systemd" / "user").glob("sdqueue*"):
        manager.run(["systemctl", "--user", "stop", unit.name], check=False)
        os.unlink(unit)
    manager.reload()


if __name__ == "__main__":
    sys.exit(main())
