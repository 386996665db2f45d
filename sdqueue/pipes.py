"""Who has the writing end of a pipe open, as the kernel tells: never who says so."""

import os
from collections.abc import Iterator


def writers(inode: int, proc_dir: str = "/proc") -> Iterator[int]:
    """List the processes, of those that may be looked at, that can write to a pipe."""
    wanted = f"pipe:[{inode}]"
    for name in os.listdir(proc_dir):
        if name.isascii() and name.isdecimal() and _writes(f"{proc_dir}/{name}", wanted):
            yield int(name)


def _writes(process_dir: str, wanted: str) -> bool:
    try:
        descriptors = os.listdir(f"{process_dir}/fd")
    except OSError:  # it has ended, or is somebody else's
        return False
    return any(_is_writer(process_dir, fd, wanted) for fd in descriptors)


def _is_writer(process_dir: str, fd: str, wanted: str) -> bool:
    try:
        if os.readlink(f"{process_dir}/fd/{fd}") != wanted:
            return False
        with open(f"{process_dir}/fdinfo/{fd}", encoding="ascii", errors="replace") as file:
            flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
    except OSError:  # it was closed
        return False
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
