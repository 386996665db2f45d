"""The box as one look sees it: /proc, /sys and /dev below a root, read and never written.

Where the root is not `/` it is a test's own tree. What others may have made is read with a limit,
never waited for, and never followed into their file systems: a descriptor is looked at by statx
without synchronisation, since a file of a hung server, or of a user's own, would hold the look up.
"""

import ctypes
import glob
import os
import re
import stat
import struct
from contextlib import suppress
from typing import NamedTuple

from sdqueue.core.lane import Lane
from sdqueue.owners.clients import Process

LIMIT_BYTES = 64 * 1024
TABLE_BYTES = 64 * 1024 * 1024
MAGIC = re.compile(r"[*?[]")
GONE = (FileNotFoundError, NotADirectoryError, ProcessLookupError)
"""What the kernel says of what is not there any more; every other error is a look that failed."""
DEAD = frozenset("ZXx")
UNITS = (".service", ".scope", ".slice")


class Node(NamedTuple):
    """A device: the path below /dev that its lane's globs found, and its number."""

    path: str
    is_block: bool
    major: int
    minor: int

    @property
    def number(self) -> "Number":
        return self.is_block, self.major, self.minor


class Box:
    """One root, `/` or a test's own; nothing that was read is kept."""

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/")

    @property
    def is_this(self) -> bool:
        """Say whether this is the machine we run on."""
        return not self.root

    def path(self, inside: str) -> str:
        return f"{self.root}{inside}"

    def read(self, inside: str) -> str:
        """Return the beginning of a file of /proc or /sys; OSError where it can't be read."""
        with open(self.path(inside), "rb") as file:
            return file.read(LIMIT_BYTES).decode("utf-8", "replace")

    def read_all(self, inside: str) -> str:
        """Return a table of /proc as a whole; OSError where it can't be read."""
        with open(self.path(inside), "rb") as file:
            return file.read(TABLE_BYTES).decode("utf-8", "replace")

    def number(self, inside: str) -> int | None:
        """Return the number in a file; None where there is none, OSError where it can't be read."""
        with suppress(*GONE):
            text = self.read(inside).strip()
            return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None
        return None

    def names(self, inside: str) -> list[str]:
        """List a directory; OSError where that can't be done."""
        return os.listdir(self.path(inside))

    def link(self, inside: str) -> str:
        """Return the last name of what a link points to, "" where it is none."""
        with suppress(OSError):
            return os.path.basename(os.readlink(self.path(inside)))
        return ""

    # Processes

    def pids(self) -> list[int]:
        """List the processes; OSError where that can't be done."""
        return [int(name) for name in self.names("/proc") if name.isascii() and name.isdecimal()]

    def comms(self) -> dict[int, str]:
        """Say what each process is called; OSError where they can't be listed."""
        found = {}
        for pid in self.pids():
            with suppress(PermissionError, *GONE):
                fd = os.open(f"{self.root}/proc/{pid}/comm", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    found[pid] = os.read(fd, 256).rstrip(b"\n").decode("utf-8", "replace")
                finally:
                    os.close(fd)
        return found

    def process(self, pid: int) -> Process | None:
        """Look at a process; None where it has ended, OSError where it can't be looked at."""
        return look_at(pid, self.path("/proc"))

    def uid(self, pid: int) -> int | None:
        """Say whose a process is; None where it has ended."""
        with suppress(OSError):
            return os.stat(self.path(f"/proc/{pid}")).st_uid
        return None

    def unit(self, pid: int) -> str:
        """Name the innermost unit whose control group a process is in, as the path has it."""
        try:
            lines = self.read(f"/proc/{pid}/cgroup").split("\n")
        except OSError:
            return ""
        path = next((line.split(":", 2)[2] for line in lines if line.startswith("0::")), "")
        return next((part for part in reversed(path.split("/")) if part.endswith(UNITS)), "")

    # Devices

    def nodes(self, lane: Lane) -> list[Node]:
        """Find the devices of a lane that exist; OSError where that can't be told."""
        found: dict[str, Node] = {}
        for pattern in lane.devices:
            self._must_be_readable(pattern)
            for file in sorted(glob.glob(f"{glob.escape(self.root)}{pattern}")):
                if node := self.node(file[len(self.root) :]):
                    found.setdefault(node.path, node)
        return list(found.values())

    def _must_be_readable(self, pattern: str) -> None:
        """Raise what glob would take for a directory that is empty."""
        if MAGIC.search(pattern):
            with suppress(*GONE):
                os.listdir(self.path(os.path.dirname(MAGIC.split(pattern)[0])))

    def node(self, inside: str) -> Node | None:
        """Look at one node; None where it is no device."""
        try:
            status = os.stat(self.path(inside))
        except OSError:
            return None
        if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)):
            return None
        number = os.major(status.st_rdev), os.minor(status.st_rdev)
        return Node(inside, stat.S_ISBLK(status.st_mode), *number)


def look_at(pid: int, proc_dir: str = "/proc") -> Process | None:
    """Read /proc/PID/stat; None where the process has ended, OSError where it can't be read."""
    try:
        with open(f"{proc_dir}/{pid}/stat", "rb") as file:
            text = file.read(4096).decode("utf-8", "replace")
    except GONE:
        return None
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < 20 or fields[0] in DEAD:
        return None
    return Process(pid, int(fields[1]), head.partition("(")[2], int(fields[19]))


# What a descriptor is of ------------------------------------------------------------------------

Number = tuple[bool, int, int]
"""The number of a device: whether it is a block device, major, minor."""

_DONT_SYNC, _TYPE = 0x4000, 1
_KIND, _DEVICES = 0o170000, frozenset({stat.S_IFCHR, stat.S_IFBLK})
_STATX = struct.Struct("=28xH98xII")
"""Of struct statx: the mode, and the number of the device that the file is."""


class Statx:
    """Says which device a file is; one for each thread, since answers come through its buffer."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(256)
        self._call = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)

    def device(self, name: str, directory: int) -> Number | None:
        """Return the number of the device that a file in an open directory is; None if it is none,
        or is gone."""
        if self._call is None:
            return _by_stat(name, directory)
        if self._call(directory, name.encode(), _DONT_SYNC, _TYPE, self._buffer):
            return None
        mode, major, minor = _STATX.unpack_from(self._buffer)
        return _number(mode, major, minor) if (mode & _KIND) in _DEVICES else None


def _by_stat(name: str, directory: int) -> Number | None:
    try:
        status = os.stat(name, dir_fd=directory)
    except OSError:
        return None
    return _number(status.st_mode, os.major(status.st_rdev), os.minor(status.st_rdev))


def _number(mode: int, major: int, minor: int) -> Number | None:
    is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
    return (stat.S_ISBLK(mode), major, minor) if is_device else None
