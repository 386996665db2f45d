"""Users of a lane by port, lock and unit: texts of the kernel, and the real kernel's own."""

import ctypes
import fcntl
import os
import resource
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.core.lane import Lane
from sdqueue.core.owner import Owner, Use
from sdqueue.owners import locks, ports, sockdiag, units
from sdqueue.owners.sweep import LaneMemory, Sweep
from sdqueue.owners.units import ActiveUnit
from tests.harness.gpu_root import GpuRoot
from tests.harness.terminal import lone_terminal
from tests.harness.waiting import wait_exit

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  inode\n"
PORT_8080 = (
    "   0: 0100007F:1F90 00000000:0000 {} 00000000:00000000 00:00000000 00000000 {} 0 {} 1\n"
)


def here(lane: Lane) -> tuple[Owner, ...]:
    """Look at the box that this runs on."""
    return Sweep(lane, LaneMemory()).whole().owners


# Ports -------------------------------------------------------------------------------------------


def test_a_listener_is_its_process(tmp_path: Path) -> None:
    root = GpuRoot(tmp_path)
    root.write("/proc/net/tcp", HEAD + PORT_8080.format("0A", 1000, 4242))
    root.process(17, "server")
    (root.directory / "proc/17/fd/3").symlink_to("socket:[4242]")
    (owner,) = root.seen(Lane("gpu", ports=(8080,))).owners
    assert (owner.pid, owner.seen) == (17, ("port: listens on port 8080",))
    assert owner.counts


def test_a_listener_of_somebody_else_is_known_by_user(tmp_path: Path) -> None:
    root = GpuRoot(tmp_path)
    root.write("/proc/net/tcp6", HEAD + PORT_8080.format("0A", 1000, 4242))
    (owner,) = root.seen(Lane("gpu", ports=(8080,))).owners
    assert (owner.pid, owner.counts) == (0, True)
    assert owner.note == "listens on port 8080, a process of uid 1000"


def test_the_box_is_looked_at_and_not_a_network_that_the_controller_has_for_itself(
    tmp_path: Path,
) -> None:
    root = GpuRoot(tmp_path)
    root.write("/proc/1/net/tcp", HEAD + PORT_8080.format("0A", 1000, 4242))
    root.write("/proc/net/tcp", HEAD)
    assert len(root.seen(Lane("gpu", ports=(8080,))).owners) == 1


@pytest.mark.parametrize("row", [PORT_8080.format("01", 0, 1), "", "garbage\n", "a:1F90 b:1F90\n"])
def test_connections_and_rubbish_are_no_listeners(tmp_path: Path, row: str) -> None:
    root = GpuRoot(tmp_path)
    root.write("/proc/net/tcp", HEAD + row)
    assert root.seen(Lane("gpu", ports=(8080,))).owners == ()


def test_a_real_listener_is_found_by_its_port() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert here(Lane("gpu", ports=(port,))) == ()
        server.listen()
        (owner,) = here(Lane("gpu", ports=(port,)))
        assert owner.pid == os.getpid()


def test_the_kernel_tells_the_control_group_of_a_listener() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        assert str(os.fstat(server.fileno()).st_ino) not in sockdiag.listeners()
        server.listen()
        inode = str(os.fstat(server.fileno()).st_ino)
        if inode not in sockdiag.listeners():
            pytest.skip("this kernel knows no control groups of sockets")
        path, pids = sockdiag.group_of(inode)
    mine = Path("/proc/self/cgroup").read_text().splitlines()[-1]
    assert mine == f"0::{path}"
    assert os.getpid() in pids


def test_a_listener_that_may_not_be_looked_at_is_found_all_the_same() -> None:
    def look(port: int) -> tuple[Owner, ...]:
        ctypes.CDLL(None).setfsuid(65534)  # of this thread alone; root's privilege goes with it
        return here(Lane("gpu", ports=(port,)))

    if os.geteuid():
        pytest.skip("only root can become somebody else for a while")
    with socket.socket() as server, ThreadPoolExecutor(1) as thread:
        server.bind(("127.0.0.1", 0))
        server.listen()
        (owner,) = thread.submit(look, server.getsockname()[1]).result()
    assert owner.counts
    assert owner.pid in (0, os.getpid())
    assert "listens on port" in owner.seen[0] + owner.note


# Locks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("take", [fcntl.flock, fcntl.lockf])
def test_who_holds_a_lock_on_an_owner_file_uses_the_lane(tmp_path: Path, take: object) -> None:
    assert callable(take)
    file = tmp_path / "gpu.lock"
    file.write_text("1\n")
    lane = Lane("gpu", owner_files=(f"{tmp_path}/*.lock",))
    with file.open("r+") as opened:
        assert here(lane) == (), "that the file is there, and names a process, says nothing"
        take(opened, fcntl.LOCK_EX)
        (owner,) = here(lane)
        assert owner.pid == os.getpid()
        assert owner.seen == (f"owner file: holds a lock on {file}",)
    assert here(lane) == ()


def test_a_lock_outlives_its_taker_in_a_child_and_counts(tmp_path: Path) -> None:
    file = tmp_path / "gpu.lock"
    script = f"exec 9>{file}; flock 9; sleep 1000 & echo $!"
    taken = subprocess.run(
        ["bash", "-c", f"({script}) 2>/dev/null | head -1"], capture_output=True, text=True
    )
    child = int(taken.stdout)
    try:
        (owner,) = here(Lane("gpu", owner_files=(str(file),)))
        assert owner.counts
        assert owner.pid == 0
        assert "has ended" in owner.note
    finally:
        os.kill(child, 9)
        wait_exit(child)


def test_who_waits_for_a_lock_does_not_hold_it() -> None:
    text = (
        "1: FLOCK  ADVISORY  WRITE 700 08:01:99 0 EOF\n"
        "1: -> FLOCK  ADVISORY  WRITE 701 08:01:99 0 EOF\n"
        "2: OFDLCK ADVISORY  READ -1 00:1b:98 0 EOF\n"
    )
    assert locks.parse(text) == [((8, 1, 99), 700), ((0, 27, 98), 0)]


@given(st.text())
def test_no_table_makes_a_reader_raise(text: str) -> None:
    locks.parse(text)
    ports.parse(text, (8080,))


# What fails --------------------------------------------------------------------------------------


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """Let this process open nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fd = os.open("/dev/null", os.O_RDONLY)
    os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (fd, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "setting",
    [
        {"foreign": ("sdq-nobody",)},
        {"devices": ("{device}",)},
        {"devices": ("{device}*",)},
        {"ports": (1,)},
    ],
    ids=["name", "descriptors", "devices", "port"],
)
def test_a_look_for_which_there_are_no_descriptors_is_no_look_that_found_nobody(
    setting: dict[str, Any],
) -> None:
    with lone_terminal() as device:
        named = tuple(each.format(device=device) for each in setting.get("devices", ()))
        lane = Lane("gpu", **{**setting, "devices": named})
        assert here(lane) == ()
        with no_more_descriptors():
            found = here(lane)
    assert {(owner.pid, owner.use) for owner in found} == {(0, Use.UNKNOWN)}


# Units -------------------------------------------------------------------------------------------


def test_an_active_unit_is_its_main_process_or_itself(tmp_path: Path) -> None:
    root = GpuRoot(tmp_path)
    root.process(17, "ollama")
    lane = Lane("gpu", units=("*.service",))
    active = (ActiveUnit("ollama.service", 17), ActiveUnit("other.service"))
    sweep = Sweep(lane, LaneMemory(), root=str(root.directory), active=active)
    named, unnamed = sorted(sweep.whole().owners, key=lambda owner: -owner.pid)
    assert (named.pid, named.counts) == (17, True)
    assert (unnamed.pid, unnamed.comm, unnamed.unit) == (0, "other.service", "other.service")
    assert unnamed.counts


def test_a_manager_that_can_not_be_asked_leaves_it_unknown(tmp_path: Path) -> None:
    root = GpuRoot(tmp_path)
    (owner,) = root.seen(Lane("gpu", units=("*.service",))).owners
    assert owner.use is Use.UNKNOWN
    assert units.report(Lane("gpu"), None).cannot_tell == ""
