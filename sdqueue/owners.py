"""Who uses a lane without being the queue's: by the names of processes, and never by their words.

What a process is called is its `comm`; its command line is never looked at, since a search for a
name would find itself there. A pid is never kept without a descriptor of its process: the process
is opened first and looked at again then, so a pid that came round is not taken for the old one.
"""

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from sdqueue.core.owner import Owner

UNITS = (".service", ".scope", ".slice")
_DEAD = frozenset("ZXx")


class Found(NamedTuple):
    """An owner, and a descriptor of its process (the caller's to close); -1 where there is none."""

    owner: Owner
    pidfd: int


def find(names: Collection[str], ours: Collection[str], *, proc_dir: str = "/proc") -> Found | None:
    """Find a process with one of these names that is in none of our units; None if there is none.

    Of a family the eldest counts: its children come and go. Where the processes can't be listed,
    the owner found is nobody in particular, since a lane of which that can't be told is not free.
    """
    try:
        processes = {each.pid: each for each in _processes(proc_dir) if each.comm in names}
    except OSError as error:
        return Found(Owner(0, comm="unknown", note=f"it can't be told: {error.strerror}"), -1)
    for process in sorted(processes.values(), key=lambda each: (each.ppid in processes, each.pid)):
        unit = _unit(proc_dir, process.pid)
        if unit not in ours and (found := _held(proc_dir, process)):
            return Found(replace(found.owner, unit=unit), found.pidfd)
    return None


def _processes(proc_dir: str) -> Iterator[Owner]:
    for name in os.listdir(proc_dir):
        if name.isascii() and name.isdecimal() and (process := _look(proc_dir, int(name))):
            yield process


def _look(proc_dir: str, pid: int) -> Owner | None:
    """Read /proc/PID/stat; None where the process has ended."""
    try:
        with open(f"{proc_dir}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < 20 or fields[0] in _DEAD:
        return None
    return Owner(pid, int(fields[1]), head.partition("(")[2], started=int(fields[19]))


def _held(proc_dir: str, process: Owner) -> Found | None:
    """Open a process and see that it is still the one that was found."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError:
        return None
    if _look(proc_dir, process.pid) == process:
        return Found(replace(process, note=_note(proc_dir, process.pid)), pidfd)
    os.close(pidfd)
    return None


def _note(proc_dir: str, pid: int) -> str:
    try:
        owner = os.stat(f"{proc_dir}/{pid}").st_uid
    except OSError:
        return ""
    return "" if os.geteuid() in (0, owner) else f"of uid {owner}, whom this user can't stop"


def _unit(proc_dir: str, pid: int) -> str:
    """Name the innermost unit whose control group a process is in; empty if there is none."""
    try:
        with open(f"{proc_dir}/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            paths = [line.rstrip("\n").split(":", 2)[2] for line in file if line.startswith("0:")]
    except (OSError, IndexError):
        return ""
    parts = paths[0].split("/") if paths else []
    return next((part for part in reversed(parts) if part.endswith(UNITS)), "")
