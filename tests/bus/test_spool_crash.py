"""The spool killed or refused at every system call that changes the disk, and started again.

strace injects the fault, so there is no hook in the code. What was acknowledged must be there,
whole, in one directory; and the scenario, run again undisturbed, must reach the same end.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sdqueue.spool import eventread, runs
from sdqueue.spool.layout import STATES, Spool

STRACE = shutil.which("strace")
if STRACE is None and not os.environ.get("CI"):
    pytest.skip("no strace here (Debian: strace)", allow_module_level=True)

# Every step looks first, as the controller does after a crash. `acknowledge` uses a system call
# that no fault is injected into.
SCENARIO = r"""
import os, sys
from sdqueue.spool import add, eventlog, meta, moves, runs
from sdqueue.spool.layout import Spool, open_spool, lock
from sdqueue.words.errors import SpoolError, WrongState

root, acks = sys.argv[1:]

def acknowledge(name):
    try:
        os.symlink("x", f"{acks}/{name}")
    except FileExistsError:
        pass

def data(name):
    return f"#!/bin/sh\n# {name}\n".encode() * 40

def submit(*names):
    missing = [name for name in names if not moves.states_of(spool, name)]
    add.add_many(spool, [(name, data(name)) for name in missing])
    for name in names:
        acknowledge(name)

def run(name):
    if moves.states_of(spool, name) == ("queue",):
        moves.move(spool, name, "queue", "running")
        acknowledge(f"{name}@running")
    if moves.states_of(spool, name) == ("running",):
        run = runs.create_run(spool, name, "running")
        log.append({"event": "start", "job": name})
        runs.write_record(spool, name, run.number, {"rc": 0}, durable=True)
        meta.save(spool, name, meta.Meta(attempts=1))
        moves.move(spool, name, "running", "done")
        log.append({"event": "done", "job": name})
        acknowledge(f"{name}@done")
    if moves.states_of(spool, name) == ("done",):
        meta.drop(spool, name)

try:
    spool = open_spool(Spool(root))
    held = lock(spool)
    log = eventlog.EventLog(spool, max_bytes=100, carried=lambda: [{"event": "carried"}])
    submit("a")
    submit("b", "c")
    run("a")
    if not os.path.lexists(f"{acks}/numbered"):
        for name in add.add_numbered(spool, [("cpu", "x", b"")]):
            acknowledge(name)
        acknowledge("numbered")
    log.close()
except SpoolError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
"""
CALLS = ("fsync", "rename", "linkat", "unlink", "write", "pwrite64", "mkdir", "ftruncate")
END = {"a": "done", "b": "queue", "c": "queue"}


class Box:
    """One spool with its acknowledgements."""

    def __init__(self, root: Path) -> None:
        self.root = root / "spool"
        self.acks = root / "acks"
        self.acks.mkdir(parents=True)
        self.spool = Spool(str(self.root))

    def run(self, strace: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run the scenario, under strace with these options if there are some."""
        trace = [str(STRACE), "-f", "-qq", *strace] if strace else []
        argv = [sys.executable, "-B", "-c", SCENARIO, str(self.root), str(self.acks)]
        return subprocess.run([*trace, *argv], capture_output=True, text=True, check=False)

    def run_with(self, fault: str) -> subprocess.CompletedProcess[str]:
        """Run the scenario with a fault injected into a system call."""
        return self.run(["-o", "/dev/null", "-e", f"inject={fault}"])

    def places(self) -> dict[str, list[str]]:
        """Return for each job the states that it is in."""
        found: dict[str, list[str]] = {}
        for state in STATES:
            directory = self.root / state
            for file in sorted(directory.iterdir()) if directory.exists() else []:
                assert file.suffix == ".job", file
                found.setdefault(file.stem, []).append(state)
        return found

    def check(self, context: str) -> None:
        """What was acknowledged is there; nothing is torn or in two places."""
        places = self.places()
        for name, states in places.items():
            assert len(states) == 1, f"{context}: {name} is in {states}"
            content = (self.root / states[0] / f"{name}.job").read_bytes()
            whole = f"#!/bin/sh\n# {name}\n".encode() * 40 if name in END else b""
            assert content == whole, f"{context}: {name} is torn"
        for ack in os.listdir(self.acks):
            name, _, state = ack.partition("@")
            assert name == "numbered" or name in places, f"{context}: {name} is lost"
            if state == "done":
                assert places[name] == ["done"], f"{context}: {ack}, and it is in {places[name]}"
                assert runs.read_record(self.spool, name, max(runs.runs(self.spool, name)))

    def check_end(self, context: str) -> None:
        """The end is that of an undisturbed run."""
        self.check(context)
        places = self.places()
        assert {name: places.get(name) for name in END} == {k: [v] for k, v in END.items()}, context
        assert os.listdir(self.spool.meta_dir) == [], context
        numbers = [int(str(record["seq"])) for record in eventread.tail(self.spool, 1000)]
        assert numbers == sorted(set(numbers)), f"{context}: {numbers}"


def test_the_undisturbed_end(tmp_path: Path) -> None:
    box = Box(tmp_path / "box")
    for _ in range(2):
        done = box.run()
        assert (done.returncode, done.stderr) == (0, "")
        box.check_end("undisturbed")
    assert os.listdir(box.root / "tmp") == []


LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)")
QUOTED = re.compile(r'"([^"]*)"')
FD = re.compile(r"\d+<([^>]*)>")


def test_every_acknowledgement_comes_after_its_syncs(tmp_path: Path) -> None:
    """A kill can't show a missing fsync, since the page cache survives it; so watch the order."""
    box = Box(tmp_path / "box")
    trace = tmp_path / "trace"
    box.run(["-y", "-s", "500", "-o", str(trace), "-e", "trace=fsync,rename,linkat,symlink,openat"])
    states = {str(box.root / state) for state in STATES}
    unsynced_files: set[str] = set()
    unsynced_dirs: set[str] = set()
    seen = dict.fromkeys(("fsync", "rename", "linkat", "symlink"), 0)
    for line in trace.read_text().splitlines():
        if not (call := LINE.match(line)) or call[3].startswith("-"):
            continue
        name, arguments = call[1], call[2]
        paths = QUOTED.findall(arguments)
        seen[name] = seen.get(name, 0) + 1
        if name == "openat" and "O_CREAT" in arguments:
            unsynced_files.add(paths[0])
        elif name == "fsync":
            unsynced_files.discard(FD.findall(arguments)[0])
            unsynced_dirs.discard(FD.findall(arguments)[0])
        elif name in ("linkat", "rename") and os.path.dirname(paths[1]) in states:
            assert paths[0] not in unsynced_files, f"not on disk before its name: {line}"
            unsynced_dirs |= {os.path.dirname(path) for path in paths} & states
        elif name == "symlink" and paths[1].startswith(str(box.acks)):
            assert not unsynced_dirs, f"{line}: not on disk are {unsynced_dirs}"
    assert all(seen.values()), seen


@pytest.mark.parametrize("call", CALLS)
def test_killed_at_every_call_nothing_is_lost_torn_or_doubled(tmp_path: Path, call: str) -> None:
    count = 1
    while True:
        box = Box(tmp_path / str(count))
        first = box.run_with(f"{call}:signal=SIGKILL:when={count}")
        if first.returncode == 0:
            break
        assert first.returncode in (-9, 137), first.stderr
        context = f"killed at {call} {count}"
        box.check(context)
        again = box.run()
        assert again.returncode == 0, f"{context}: {again.stderr}"
        box.check_end(context)
        count += 1
    assert count > 1, f"the scenario makes no {call}"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("fsync", "EIO", "the disk failed"),
        ("write", "ENOSPC", "free some space"),
        ("rename", "EROFS", "read-only"),
        ("linkat", "ENOSPC", "free some space"),
        ("mkdir", "EROFS", "read-only"),
    ],
)
def test_refused_at_every_call_the_error_is_said_and_nothing_lost(
    tmp_path: Path, call: str, error: str, words: str
) -> None:
    count = 1
    while True:
        box = Box(tmp_path / str(count))
        first = box.run_with(f"{call}:error={error}:when={count}")
        context = f"{error} at {call} {count}"
        box.check(context)
        if first.returncode == 0:
            break
        assert first.returncode == 3, f"{context}: {first.stderr}"
        assert words in first.stderr, context
        assert str(box.root) in first.stderr, context
        again = box.run()
        assert again.returncode == 0, f"{context}: {again.stderr}"
        box.check_end(context)
        count += 1
    assert count > 1, f"the scenario makes no {call}"
