"""Who has a lane's device open: the descriptors of all processes, and what drivers say of them.

The dear one. It costs some microseconds for each descriptor of the box, so a process that had none
of the lane's devices is passed over until the number of its descriptors is another, which the size
of /proc/PID/fd tells since Linux 6.2; and where other sources leave nothing unexplained, only those
are looked at again that had one. A process that closes one file and opens the device in its place
is found by the next full look: the opening of a node is an event that asks for one.
"""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from sdqueue.core.lane import Lane
from sdqueue.owners.box import GONE, Box, Node, Number, Statx
from sdqueue.owners.clients import Hold, Process, attribute
from sdqueue.owners.devices import family, sizes
from sdqueue.owners.fdinfo import parse
from sdqueue.owners.sighting import Report

NEVER_A_DEVICE = ("socket:", "pipe:", "anon_inode:", "/memfd:", "mnt:", "net:")
FORGET_AT = 100_000


@dataclass(slots=True)
class Remembered:
    """What is known of a lane's processes from one look to the next.

    `without` are those that have none of the devices, with what identifies a directory of
    descriptors and its size; `having` those that have one.
    """

    without: dict[int, tuple[int, int]] = field(default_factory=dict)
    having: set[int] = field(default_factory=set)
    numbers: frozenset[Number] = frozenset()
    has_sizes: bool = False

    def begin(self, box: Box, numbers: frozenset[Number]) -> None:
        """Forget what does not hold: other devices, or processes that ended long ago."""
        if numbers != self.numbers or len(self.without) > FORGET_AT:
            self.without.clear()
        self.numbers = numbers
        with suppress(OSError):
            self.has_sizes = os.stat(box.path("/proc/self/fd")).st_size > 0


@dataclass(slots=True)
class Scan:
    """What one pass over the processes found."""

    holds: list[Hold] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)


def look(
    box: Box,
    lane: Lane,
    covers: frozenset[str],
    memory: Remembered,
    only: Collection[int] | None = None,
) -> Report:
    """See who has one of the lane's devices open, all processes or `only` some.

    `covers` are nodes of whose users another source knows all.
    """
    nodes = {
        node.number: node for node in family(box, box.nodes(lane)) if not _is_control(node.path)
    }
    if not nodes:
        return Report()
    memory.begin(box, frozenset(nodes))
    try:
        pids = box.pids() if only is None else list(only)
    except OSError as error:
        return Report(cannot_tell=f"the processes can't be listed: {error.strerror}")
    scan = _scan(box, nodes, pids, memory)
    processes = _processes(box, scan.holds)
    holds = [hold for hold in scan.holds if hold.pid in processes]
    found = attribute(holds, processes, covers, sizes(box, lane))
    return Report(tuple(found), strangers=len(scan.unreadable))


def _is_control(node: str) -> bool:
    """Say whether a node is one that every look at the driver opens, as /dev/nvidiactl."""
    name = node.rpartition("/")[2]
    return name.startswith("nvidia") and not name[6:].isdecimal()


def _processes(box: Box, holds: list[Hold]) -> Mapping[int, Process]:
    found = filter(None, map(box.process, {hold.pid for hold in holds}))
    return {process.pid: process for process in found}


def _scan(box: Box, nodes: Mapping[Number, Node], pids: list[int], memory: Remembered) -> Scan:
    scan, statx = Scan(), Statx()
    for pid in pids:
        try:
            _look_at(box, pid, nodes, statx, scan, memory)
        except PermissionError:
            if pid != 1:  # which works on no device itself, and root may be kept from it
                scan.unreadable.append(pid)
        except GONE:
            continue  # it has ended
    memory.having = {hold.pid for hold in scan.holds}
    return scan


def _look_at(
    box: Box,
    pid: int,
    nodes: Mapping[Number, Node],
    statx: Statx,
    scan: Scan,
    memory: Remembered,
) -> None:
    """Look at one process, unless it is known to have none of the devices."""
    directory = f"{box.root}/proc/{pid}/fd"
    status = os.stat(directory)
    seen = status.st_ino, status.st_size
    if memory.has_sizes and memory.without.get(pid) == seen:
        return
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        held = _held(opened, nodes, statx)
    finally:
        os.close(opened)
    for fd, node in held:
        with suppress(FileNotFoundError):
            scan.holds.append(Hold(pid, node.path, parse(_told(box, pid, fd))))
    if not held:
        memory.without[pid] = seen


def _held(opened: int, nodes: Mapping[Number, Node], statx: Statx) -> list[tuple[str, Node]]:
    """Find the descriptors in an open directory of them that are of these devices."""
    found = []
    for fd in os.listdir(opened):
        try:
            if os.readlink(fd, dir_fd=opened).startswith(NEVER_A_DEVICE):
                continue
        except FileNotFoundError:
            continue  # it was closed
        number = statx.device(fd, opened)
        if number is not None and number in nodes:
            found.append((fd, nodes[number]))
    return found


def _told(box: Box, pid: int, fd: str) -> str:
    """Read what the driver says of a descriptor; nothing, where it may not be read."""
    try:
        return box.read(f"/proc/{pid}/fdinfo/{fd}")
    except PermissionError:
        return ""
