"""The process of a unit that stands for an adopted program: it waits until that is gone.

Its standard input is a descriptor of a process, or a control group's cgroup.events. Run as a file
of its own, by a bare interpreter, with nothing but what the kernel says.
"""

import os
import select


def wait_gone(fd: int) -> None:
    """Wait until the process has ended, or no process is in the control group any more."""
    poll = select.poll()
    if not _is_process(fd):
        poll.register(fd, select.POLLPRI)
        while _is_populated(fd):
            poll.poll()
        return
    poll.register(fd, select.POLLIN)
    poll.poll()


def _is_process(fd: int) -> bool:
    return os.readlink(f"/proc/self/fd/{fd}").startswith(("anon_inode:[pidfd]", "pidfd:"))


def _is_populated(fd: int) -> bool:
    try:
        return b"populated 1" in os.pread(fd, 4096, 0)
    except OSError:  # ENODEV: the control group itself is gone
        return False


if __name__ == "__main__":
    wait_gone(0)
