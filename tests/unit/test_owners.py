"""Who uses a lane, found in a tree that stands for /proc: by name, in none of our units."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sdqueue import owners
from sdqueue.core.owner import Owner

NAMES = ("llama-server",)


class Proc:
    """A /proc whose processes are real ones by pid, and by all else as a test says."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(
        self,
        pid: int,
        comm: str = "llama-server",
        *,
        ppid: int = 1,
        state: str = "S",
        started: int = 5,
        cgroup: str = "/user.slice/session-1.scope",
    ) -> None:
        """Add a process, or say something else of it."""
        (self.root / str(pid)).mkdir(exist_ok=True)
        fields = " ".join(["0"] * 17)
        (self.root / str(pid) / "stat").write_text(
            f"{pid} ({comm}) {state} {ppid} {fields} {started} 0\n"
        )
        (self.root / str(pid) / "cgroup").write_text(f"0::{cgroup}\n")

    def find(self, ours: tuple[str, ...] = ()) -> Owner | None:
        """Find, and close what was opened."""
        found = owners.find(NAMES, ours, proc_dir=str(self.root))
        if found and found.pidfd >= 0:
            os.close(found.pidfd)
        return found.owner if found else None


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


@contextmanager
def process() -> Iterator[int]:
    """Run a process, for its pid."""
    with subprocess.Popen(["sleep", "1000"]) as child:
        try:
            yield child.pid
        finally:
            child.kill()


def test_a_process_is_known_by_its_name_with_its_unit_and_parent(proc: Proc) -> None:
    me = os.getpid()
    proc.add(me, ppid=7, cgroup="/user.slice/user@0.service/app.slice/llama.service/sub")
    proc.add(os.getppid(), "bash")
    (proc.root / "meminfo").write_text("no process")
    found = proc.find()
    assert found
    assert (found.pid, found.ppid, found.comm, found.unit) == (me, 7, *NAMES, "llama.service")


def test_a_name_with_parentheses_and_spaces_does_not_confuse(proc: Proc) -> None:
    proc.add(os.getpid(), "a) S 1 (llama-server")
    assert proc.find() is None


@pytest.mark.parametrize("state", ["Z", "X"])
def test_a_dead_process_uses_nothing(proc: Proc, state: str) -> None:
    proc.add(os.getpid(), state=state)
    assert proc.find() is None


def test_a_process_of_our_own_unit_is_no_stranger_and_the_next_one_is(proc: Proc) -> None:
    ours = "sdqueue-job-1-gpu-a.service"
    proc.add(os.getpid(), cgroup=f"/user.slice/sdqueue.slice/sdqueue-gpu.slice/{ours}")
    assert proc.find((ours,)) is None
    assert proc.find(("sdqueue-job-2-gpu-b.service",)) is not None


def test_of_a_family_the_eldest_counts_whatever_its_pid(proc: Proc) -> None:
    with process() as router:
        me = os.getpid()
        proc.add(me, ppid=router)
        proc.add(router, ppid=1)
        found = proc.find()
        assert found
        assert found.pid == router


def test_a_process_that_has_ended_meanwhile_is_not_found(proc: Proc) -> None:
    with process() as pid:
        proc.add(pid)
    assert proc.find() is None


def test_the_same_pid_started_at_another_time_is_another_owner(proc: Proc) -> None:
    proc.add(os.getpid(), started=5)
    first = proc.find()
    proc.add(os.getpid(), started=9)
    assert first is not None
    assert first != proc.find()


def test_processes_that_can_not_be_listed_are_not_nobody(tmp_path: Path) -> None:
    found = owners.find(NAMES, (), proc_dir=str(tmp_path / "nothing"))
    assert found
    assert found.pidfd == -1
    assert "can't be told" in found.owner.note
