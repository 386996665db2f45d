"""In which control group a listener was made, of everybody's: the kernel's own socket listing.

It tells that to anybody, which no file of /proc does of other users' processes. The group is that
of who made the socket: of a port that a manager listens on it is the socket unit's.
"""

import os
import socket
import struct
from contextlib import suppress

from sdqueue.cgroup import UNIFIED_DIRS

_SOCK_DIAG, _BY_FAMILY, _DUMP, _LISTEN = 4, 20, 0x301, 1 << 10
_DONE = (2, 3)
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI48x")
_INODE_AT, _ATTRIBUTES_AT = 68, 72
_CGROUP_ID = 21
LIMIT_SEC = 5.0


def listeners() -> dict[str, int]:
    """Return the id of its control group for each listening TCP socket, by inode.

    OSError where the kernel can't be asked; a kernel that knows no groups of sockets has none.
    """
    found: dict[str, int] = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, _LISTEN)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
            netlink.settimeout(LIMIT_SEC)
            header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _DUMP, 1, 0)
            netlink.send(header + question)
            while _take(netlink.recv(1 << 16), found):
                pass
    return found


def _take(data: bytes, found: dict[str, int]) -> bool:
    """Read one answer of the kernel; say whether more will come."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, at)
        if kind in _DONE or length < _HEADER.size:
            return False
        _take_one(data[at + _HEADER.size : at + length], found)
        at += _aligned(length)
    return bool(data)


def _take_one(body: bytes, found: dict[str, int]) -> None:
    if len(body) < _ATTRIBUTES_AT:
        return
    (inode,) = struct.unpack_from("=I", body, _INODE_AT)
    at = _ATTRIBUTES_AT
    while at + 4 <= len(body):
        length, kind = struct.unpack_from("=HH", body, at)
        if kind == _CGROUP_ID and length >= 12 and at + 12 <= len(body):
            (found[str(inode)],) = struct.unpack_from("=Q", body, at + 4)
        at += max(4, _aligned(length))


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def group_of(inode: str) -> tuple[str, list[int]]:
    """Return the path of a listener's control group and the processes in it; "" where it is gone.

    A group's id is the number of its directory.
    """
    group = listeners().get(inode)
    root = next(filter(os.path.isdir, UNIFIED_DIRS), "")
    if group is None or not root:
        return "", []
    for directory, below, _ in os.walk(root):
        for name in below:
            with suppress(OSError):
                if os.stat(f"{directory}/{name}").st_ino == group:
                    return _processes(root, f"{directory}/{name}")
    return "", []


def _processes(root: str, directory: str) -> tuple[str, list[int]]:
    with suppress(OSError), open(f"{directory}/cgroup.procs") as lines:
        return directory.removeprefix(root), [int(line) for line in lines]
    return directory.removeprefix(root), []
