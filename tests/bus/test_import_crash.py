"""`sdqueue import` killed at every system call that changes a disk, and called again.

Between the two a controller may be at work: what is in queue/ by then has run. At the end every job
has run once, and what had ended is there once. Every third call; in a soak run every one.
"""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sdqueue.spool.layout import Spool, open_spool
from tests.harness.cli import Cli
from tests.harness.tools import SOAK, require, require_programs

CALLS = ("renameat2", "rename", "unlink", "fsync", "mkdir", "rmdir", "write", "fchmod", "utimensat")
QUEUED = ("1-cpu-a", "2-nolane", "3-cpu-c")
ENDED = {"done": "0-cpu-d", "failed": "0-cpu-f"}


@pytest.fixture(params=["here", "far"])
def top(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Give a directory on the spool's file system, or on another one."""
    if request.param == "here":
        yield tmp_path / "old"
        return
    far = Path(f"/dev/shm/sdqueue-test-{os.getpid()}-crash")
    if not far.parent.is_dir() or os.stat(far.parent).st_dev == os.stat(tmp_path).st_dev:
        require("no second file system at /dev/shm")
    yield far
    shutil.rmtree(far, ignore_errors=True)


def build(top: Path) -> None:
    """Make the queue anew."""
    shutil.rmtree(top, ignore_errors=True)
    for state, names in (("queue", QUEUED), *((s, (n,)) for s, n in ENDED.items())):
        (top / state).mkdir(parents=True)
        for name in names:
            (top / state / f"{name}.job").write_text(f"#!/bin/bash\necho {name}\n")
    (top / "events.jsonl").write_text('{"event": "done", "job": "0-cpu-d"}\n')


def run_all(cli: Cli, ran: Counter[str]) -> None:
    """Do as a controller does with what waits; each job's body says which one it is."""
    for name in cli.jobs():
        file = cli.spool / "queue" / f"{name}.job"
        ran[file.read_text().splitlines()[-1].removeprefix("echo ")] += 1
        file.rename(cli.spool / "done" / f"{name}.job")


def test_killed_anywhere_it_goes_on_and_nothing_is_lost_or_doubled(
    tmp_path: Path, top: Path
) -> None:
    require_programs("strace")
    points = Counter[str]()
    for call in CALLS:
        number, was_killed = -1 + SOAK, True
        while was_killed:
            number += 1 if SOAK else 3
            cli = Cli(tmp_path / f"{call}-{number}")
            cli.home.mkdir()
            open_spool(Spool(str(cli.spool)))
            build(top)
            was_killed = killed(cli, top, call, number)
            points[call] += was_killed
            ran = Counter[str]()
            run_all(cli, ran)
            done = cli.here("import", str(top))
            context = f"{call} {number}: {done.out}{done.err}"
            if was_killed:
                assert done.status == 0, context
            run_all(cli, ran)
            assert ran == Counter(QUEUED), context
            assert cli.jobs("done") == sorted([*QUEUED, ENDED["done"]]), context
            assert cli.jobs("failed") == [ENDED["failed"]], context
            assert not list(top.rglob("*.*")), context
            assert (cli.spool / "events-imported.jsonl").exists(), context
            assert not (cli.spool / "import").exists(), context
            shutil.rmtree(cli.home)
    assert points["renameat2"] >= 4, points
    assert points["fsync"] >= 4, points


def killed(cli: Cli, top: Path, call: str, number: int) -> bool:
    """Import with a kill at the n-th of a system call; return whether it got there."""
    fault = f"inject={call}:signal=SIGKILL:when={number}"
    trace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", fault]
    argv = [*trace, *cli.argv("import", str(top))]
    env = cli.env | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(argv, env=env, cwd=cli.home, capture_output=True, check=False)
    assert done.returncode in (0, -9, 137), done.stderr
    return done.returncode != 0
