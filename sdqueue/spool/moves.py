"""From one state to another, durably; and removal.

A rename within one file system is atomic: the file is in exactly one directory at every instant.
"""

import errno
import fcntl
import os

from sdqueue.spool.files import sync_dir, telling
from sdqueue.spool.layout import STATES, Spool
from sdqueue.spool.scan import gone


def move(spool: Spool, name: str, source: str, target: str) -> str | None:
    """Move a job file between states; both directories are on disk at the return.

    A file of that name in `target` is kept beside it under another name, which is returned.
    Raises NoSuchJob when the file is not in `source` any more.
    """
    if source == target:
        return None
    kept = rename(spool, name, source, target)
    sync_move(spool, source, target)
    return kept


def rename(spool: Spool, name: str, source: str, target: str) -> str | None:
    """Move as `move` does, but leave it to `sync_move` to make that durable."""
    old, new = spool.job_file(source, name), spool.job_file(target, name)
    with telling("move the job to", new):
        kept = set_aside(new) if os.path.lexists(old) else None
        try:
            os.rename(old, new)
        except FileNotFoundError:
            if os.path.lexists(old):
                raise  # the directory of `new` is what is missing
            raise gone(name, source) from None
    return kept


def sync_move(spool: Spool, source: str, target: str) -> None:
    """Make durable what was renamed from one state to another."""
    # The target first: at the worst a power cut leaves both names, never none.
    for directory in (spool.state_dir(target), spool.state_dir(source)):
        with telling("sync", directory):
            sync_dir(directory)


def set_aside(file: str) -> str | None:
    """Rename a file that is in the way; return its new name without the directory, or None."""
    if not os.path.lexists(file):
        return None
    number = 1
    while os.path.lexists(f"{file}.~{number}~"):
        number += 1
    os.rename(file, f"{file}.~{number}~")
    return f"{os.path.basename(file)}.~{number}~"


def is_being_written(spool: Spool, name: str, state: str) -> bool:
    """Say whether somebody has the job's file open for writing, as `cp` does until it is whole."""
    return has_writer(spool.job_file(state, name))


def has_writer(file: str) -> bool:
    """Say whether somebody has a file open for writing.

    A read lease is what the kernel refuses then. Whoever calls this ignores SIGIO, which comes
    where a writer opens the file in the instant of the lease. Where there are no leases (another
    owner's file, some network file systems) a file counts as whole.
    """
    try:
        fd = os.open(file, _LOOK)
    except OSError:
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(fd)
    return False


_LOOK = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def remove(spool: Spool, name: str, state: str) -> None:
    """Delete a job file, durably, or raise NoSuchJob."""
    file = spool.job_file(state, name)
    with telling("remove", file):
        try:
            os.unlink(file)
        except FileNotFoundError:
            raise gone(name, state) from None
        sync_dir(spool.state_dir(state))


def states_of(spool: Spool, name: str) -> tuple[str, ...]:
    """Return the states in which there is a file of that name; none or one, unless meddled with."""
    return tuple(state for state in STATES if os.path.lexists(spool.job_file(state, name)))
