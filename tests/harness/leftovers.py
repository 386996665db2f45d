"""What a test left behind: processes, mounts and open files of the test process itself.

Sandboxes count too: each has a keeper, which is a child process.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def children() -> dict[int, str]:
    """Return this process's living children: pid to command line; the dead are collected."""
    pids = [
        int(pid)
        for task in Path("/proc/self/task").iterdir()
        for pid in (task / "children").read_text().split()
    ]
    return {pid: words for pid in pids if (words := _command(pid))}


def _command(pid: int) -> str:
    """Return the command line, "" for a process that is gone; an adopted zombie is collected.

    It is empty, too, for an instant in the middle of an exec: then it is asked for again.
    """
    with contextlib.suppress(OSError):
        while True:
            if words := Path(f"/proc/{pid}/cmdline").read_bytes():
                return words.replace(b"\0", b" ").decode(errors="replace").strip()
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                break
    return ""


def open_files() -> dict[int, str]:
    """Return this process's open files: descriptor to what it is."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return {fd: what for fd, what in found.items() if not what.endswith("/fd")}


@contextmanager
def no_child_left() -> Iterator[None]:
    """Fail when a child process started in the block is still there at its end."""
    before = children()
    yield
    left = {pid: words for pid, words in children().items() if pid not in before}
    assert not left, f"processes were left: {left}"


@contextmanager
def no_mount_left() -> Iterator[None]:
    """Fail when something mounted in the block is still mounted at its end."""
    before = _mounts()
    yield
    left = _mounts() - before
    assert not left, f"mounts were left: {left}"


def _mounts() -> set[str]:
    return set(Path("/proc/self/mountinfo").read_text().splitlines())


@contextmanager
def no_file_left_open() -> Iterator[None]:
    """Fail when a descriptor opened in the block is still open at its end."""
    before = open_files()
    yield
    left = {fd: what for fd, what in open_files().items() if before.get(fd) != what}
    assert not left, f"descriptors were left open: {left}"
