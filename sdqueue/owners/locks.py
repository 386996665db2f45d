"""Who uses a lane by holding a lock on a file, as programs do that share a GPU among themselves.

A lock ends with its holder, which the existence of a file does not, nor a number written in one:
so only /proc/locks counts, and what is in the file is nobody's business.
"""

import glob
import os
from contextlib import suppress
from typing import NamedTuple

from sdqueue.core.lane import Lane
from sdqueue.owners.box import GONE, Box
from sdqueue.owners.sighting import Report, Sighting

TABLE = "/proc/locks"
FileId = tuple[int, int, int]
"""Major and minor of the file system, and the number of the file."""


class Lock(NamedTuple):
    """A lock that is held. `pid` took it and may have ended; 0 where the kernel does not tell."""

    file: FileId
    pid: int


def parse(text: str) -> list[Lock]:
    """Read /proc/locks; whoever waits for a lock does not hold it."""
    found = []
    for line in text.split("\n"):
        words = line.split()
        with suppress(ValueError, IndexError):
            if words[1] == "->":
                continue
            major, minor, inode = words[5].split(":")
            file = int(major, 16), int(minor, 16), int(inode)
            found.append(Lock(file, max(0, int(words[4]))))
    return found


def look(box: Box, lane: Lane) -> Report:
    """See who holds a lock on one of the lane's `owner_files`."""
    files = owner_files(box, lane)
    if not files:
        return Report()
    try:
        held = [lock for lock in parse(box.read_all(TABLE)) if lock.file in files]
    except OSError as error:
        return Report(cannot_tell=f"locks can't be read: {error.strerror}")
    return Report(tuple(_sighting(box, lock, files[lock.file]) for lock in held))


def _sighting(box: Box, lock: Lock, file: str) -> Sighting:
    is_there = lock.pid and box.process(lock.pid) is not None
    taken = f", which pid {lock.pid} took that has ended" if lock.pid and not is_there else ""
    what = f"holds a lock on {file}{taken}"
    return Sighting(lock.pid if is_there else 0, "owner file", what, is_named=True)


def owner_files(box: Box, lane: Lane) -> dict[FileId, str]:
    """Find the lane's owner files that exist, by what /proc/locks calls them; OSError where they
    can't be looked at."""
    found: dict[FileId, str] = {}
    for pattern in lane.owner_files:
        for file in sorted(glob.glob(f"{glob.escape(box.root)}{pattern}")):
            with suppress(*GONE):
                status = os.stat(file)
                for device in {status.st_dev, _mounted(file)}:
                    found[os.major(device), os.minor(device), status.st_ino] = file
    return found


def _mounted(file: str) -> int:
    """Return the device of the file system as the mount table has it.

    That of a file's status is another where a file system has several trees, as btrfs does.
    """
    fd = os.open(file, os.O_PATH | os.O_CLOEXEC)
    try:
        with open(f"/proc/self/fdinfo/{fd}") as info, open("/proc/self/mountinfo") as mounts:
            mount = next(line.split()[1] for line in info if line.startswith("mnt_id:"))
            words = next((each for line in mounts if (each := line.split())[0] == mount), None)
    finally:
        os.close(fd)
    if words is None:
        return os.stat(file).st_dev
    major, _, minor = words[2].partition(":")
    return os.makedev(int(major), int(minor))
