"""Which processes use given files: they have one open, or name one in their command line; and
whether the process that a log speaks of is there still.

bash keeps the script that it runs open, so a job of a queue without units is found by its file.
What a caller who is not root can't see of other users' processes is their open files.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

Inode = tuple[int, int]
"""Device and inode number."""


class User(NamedTuple):
    """A process that uses a file."""

    pid: int
    program: str


def users_of(files: Mapping[Inode, str]) -> dict[Inode, User]:
    """Return for each of the files a process that uses it; `files` have their base names."""
    found: dict[Inode, User] = {}
    if not files:
        return found
    own = os.getpid()
    names = {os.fsencode(name) for name in files.values()}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
        if pid != own:
            for inode in (*_opened(pid), *_named(pid, names)):
                if inode in files:
                    found.setdefault(inode, User(pid, _program(pid)))
    return found


def user_since(pid: int, began_sec: float) -> User | None:
    """Return the process of that number if it was there already when something `began` with it.

    A process that was given the number later began later; half a million a day come and go.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/uptime", "rb") as file:
            uptime_sec = float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    age_sec = uptime_sec - ticks / os.sysconf("SC_CLK_TCK")
    if time.time() - age_sec > began_sec + _SLACK_SEC:
        return None
    return User(pid, _program(pid))


_SLACK_SEC = 2.0
"""A log's times are of whole seconds, and the line follows the start."""


def _opened(pid: int) -> Iterator[Inode]:
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for number in numbers:
        with suppress(OSError):
            status = os.stat(f"/proc/{pid}/fd/{number}")
            yield status.st_dev, status.st_ino


def _named(pid: int, names: set[bytes]) -> Iterator[Inode]:
    """Yield the files that words of the command line mean, seen from the process's directory."""
    with suppress(OSError, ValueError):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(1 << 17).split(b"\0")
        wanted = [word for word in words if word.rpartition(b"/")[2] in names]
        here = _directory(pid) if wanted else b""
        for word in wanted:
            with suppress(OSError):
                status = os.stat(os.path.join(here, word))
                yield status.st_dev, status.st_ino


def _directory(pid: int) -> bytes:
    try:
        return os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return b"/"


def _program(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().strip().decode("utf-8", "replace")
    except OSError:
        return "?"
