"""Who uses a lane, found in a tree that stands for /proc: by the name of the process."""

from pathlib import Path

import pytest

from sdqueue.core.lane import Lane
from sdqueue.core.owner import Owner, Use
from sdqueue.owners.sweep import LaneMemory, Sweep

NAMES = ("llama-server",)
LANE = Lane("gpu", foreign=NAMES)


class Proc:
    """A /proc whose processes are as a test says."""

    def __init__(self, root: Path) -> None:
        self.root = root / "proc"
        self.root.mkdir()

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
        (self.root / str(pid) / "comm").write_text(f"{comm}\n")
        (self.root / str(pid) / "cgroup").write_text(f"0::{cgroup}\n")

    def find(self) -> tuple[Owner, ...]:
        """Find who has the name."""
        return Sweep(LANE, LaneMemory(), root=str(self.root.parent)).whole().owners


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def test_a_process_is_known_by_its_name_with_its_unit_and_parent(proc: Proc) -> None:
    proc.add(17, ppid=7, cgroup="/user.slice/user@0.service/app.slice/llama.service/sub")
    proc.add(18, "bash")
    (proc.root / "meminfo").write_text("no process")
    (found,) = proc.find()
    assert (found.pid, found.ppid, found.comm, found.unit) == (17, 7, *NAMES, "llama.service")
    assert found.seen == ("name: is called llama-server",)
    assert found.counts


def test_a_name_with_parentheses_and_spaces_does_not_confuse(proc: Proc) -> None:
    proc.add(17, "a) S 1 (llama-server")
    assert proc.find() == ()


def test_what_a_command_line_says_makes_nobody_a_user(proc: Proc) -> None:
    proc.add(17, "pgrep")
    (proc.root / "17/cmdline").write_bytes(b"pgrep\0-f\0llama-server\0")
    assert proc.find() == ()


@pytest.mark.parametrize("state", ["Z", "X"])
def test_a_dead_process_uses_nothing(proc: Proc, state: str) -> None:
    proc.add(17, state=state)
    assert proc.find() == ()


def test_of_a_family_the_eldest_is_first_whatever_its_pid(proc: Proc) -> None:
    proc.add(17, ppid=30)
    proc.add(30, ppid=1)
    assert [owner.pid for owner in proc.find()] == [30, 17]


def test_the_same_pid_started_at_another_time_is_another_owner(proc: Proc) -> None:
    proc.add(17, started=5)
    (first,) = proc.find()
    proc.add(17, started=9)
    (second,) = proc.find()
    assert first.identity != second.identity


def test_processes_that_can_not_be_listed_are_not_nobody(tmp_path: Path) -> None:
    (found,) = Sweep(LANE, LaneMemory(), root=str(tmp_path / "nothing")).whole().owners
    assert (found.pid, found.use, found.counts) == (0, Use.UNKNOWN, True)
    assert "can't be told" in found.note
