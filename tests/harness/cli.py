"""`sdqueue` as a user runs it: a process, on a spool of the test's own, without any bus.

cli = Cli(tmp_path)
cli("submit", "--", "true")                 -> CompletedProcess, text; the queue is the user's
cli("list", "--json=short").json            -> what it printed, parsed
cli.here("submit")                          the same within this process: quick, for many refusals
cli.queue("1-cpu-a", "exit 0", "RETRIES: 2", state="done")      a job file, dropped in
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from sdqueue.cli import main
from tests.harness.waiting import LIMIT_SEC

STATES = ("queue", "running", "done", "failed", "parked")


class Answer:
    """What one call printed, and its exit status."""

    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self) -> Any:
        """Standard output as JSON; fails where there is anything else in it."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.out.splitlines()


class Cli:
    """Calls `sdqueue --user` in a world of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.spool = home / "state" / "sdqueue"
        self.env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONWARNINGS": "error",
            "LANG": "C.UTF-8",
        }

    def argv(self, *words: str) -> list[str]:
        """Return the command line of a call."""
        return [sys.executable, "-m", "sdqueue", "--user", *words]

    def __call__(
        self,
        *words: str,
        given: str | bytes = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Answer:
        """Call, and return what came of it."""
        done = subprocess.run(
            self.argv(*words),
            input=given.encode() if isinstance(given, str) else given,
            env=self.env | dict(env or {}),
            cwd=cwd or self.home,
            capture_output=True,
            timeout=LIMIT_SEC,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return Answer(subprocess.CompletedProcess(done.args, done.returncode, out, err))

    def here(self, *words: str) -> Answer:
        """Call without a process of its own."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        before = dict(os.environ)
        os.environ.update(self.env)
        try:
            with chdir(self.home), redirect_stdout(out), redirect_stderr(err):
                status = main(["--user", *words])
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            os.environ.clear()
            os.environ.update(before)
        out.seek(0)
        return Answer(subprocess.CompletedProcess(words, status, out.read(), err.getvalue()))

    def queue(self, name: str, body: str = "true", *headers: str, state: str = "queue") -> Path:
        """Drop a job file in, and return where it is."""
        for each in STATES:
            (self.spool / each).mkdir(parents=True, exist_ok=True)
        file = self.spool / state / f"{name}.job"
        file.write_text("\n".join(["#!/bin/bash", *(f"# {h}" for h in headers), body, ""]))
        return file

    def jobs(self, state: str = "queue") -> list[str]:
        """Return the names of the job files in a state."""
        return sorted(file.stem for file in (self.spool / state).glob("*.job"))

    def text(self, name: str, state: str = "queue") -> str:
        """Return a job file's text."""
        return (self.spool / state / f"{name}.job").read_text()
