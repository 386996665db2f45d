"""Who uses a lane by listening on a port: a model server, say, whose program has many names.

The kernel's net/tcp tells of everybody's listeners, with the user and the number of the socket;
which process has it is found among the descriptors that may be looked at. Of others' the kernel
tells the control group; where one process is in it, it is that.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from sdqueue import cgroup
from sdqueue.core.lane import Lane
from sdqueue.owners import sockdiag
from sdqueue.owners.box import Box
from sdqueue.owners.sighting import Report, Sighting

TABLES = ("net/tcp", "net/tcp6")
OF_WHOM = ("/proc/1", "/proc")
"""Whose network to look at: the box's, where that can be told; the controller's service may have
none of its own."""
LISTENS = "0A"


class Listener(NamedTuple):
    """A socket that listens."""

    port: int
    uid: int
    inode: str


def parse(text: str, ports: Iterable[int]) -> list[Listener]:
    """Read one table for the listeners of these ports; what is no row of it is left out."""
    found = []
    for line in text.split("\n")[1:]:
        words = line.split()
        with suppress(ValueError, IndexError):
            port = int(words[1].rpartition(":")[2], 16)
            if words[3] == LISTENS and port in ports:
                found.append(Listener(port, int(words[7]), words[9]))
    return found


def look(box: Box, lane: Lane) -> Report:
    """See who listens on the lane's `ports`."""
    listeners: list[Listener] = []
    try:
        for table in TABLES:
            with suppress(FileNotFoundError):  # a box without one of the two protocols
                listeners += parse(_read(box, table), lane.ports)
    except OSError as error:
        return Report(cannot_tell=f"listeners can't be read: {error.strerror}")
    if not listeners:
        return Report()
    held = _holders(box, {listener.inode for listener in listeners})
    return Report(tuple(_sighting(box, each, held.get(each.inode, 0)) for each in set(listeners)))


def _read(box: Box, table: str) -> str:
    first, last = OF_WHOM
    with suppress(OSError):
        return box.read_all(f"{first}/{table}")
    return box.read_all(f"{last}/{table}")


def _sighting(box: Box, listener: Listener, pid: int) -> Sighting:
    what = f"listens on port {listener.port}"
    if not pid and box.is_this:
        pid, unit = _by_group(listener)
        what += f" in {unit}" if unit else ""
    if not pid:
        what += f", a process of uid {listener.uid}"
    return Sighting(pid, "port", what, is_named=True)


def _by_group(listener: Listener) -> tuple[int, str]:
    """Find a listener's process where its control group has no other, and the unit's name by the
    part of the path that root made."""
    path, pids = "", list[int]()
    with suppress(OSError):
        path, pids = sockdiag.group_of(listener.inode)
    unit = cgroup.place(path).trusted.unit if path else ""
    return (pids[0] if len(pids) == 1 else 0), unit


def _holders(box: Box, inodes: set[str]) -> dict[str, int]:
    """Find the eldest process of each socket, by inode; those of others stay unknown."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[str, int] = {}
    for pid in sorted(box.pids()):
        with suppress(OSError):
            for fd in box.names(f"/proc/{pid}/fd"):
                inode = wanted.get(box.link(f"/proc/{pid}/fd/{fd}"))
                if inode:
                    found.setdefault(inode, pid)
    return found
