"""New job files: durable before they are announced, and never over another one.

A file is written aside, made durable, and linked to its name, which fails where the name is taken:
two submits at once can't take each other's. Loads nothing slow.
"""

import errno
import fcntl
import os
from itertools import islice

from sdqueue.spool.files import aside_name, discard, open_new, sync_all, sync_dir, telling
from sdqueue.spool.layout import STATES, Spool
from sdqueue.words.errors import WrongState
from sdqueue.words.names import SUFFIX, leading_number, numbered_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Where a job of the name lives; in done/ and failed/ it has ended, and may be submitted anew.
ALIVE = ("queue", "running", "parked")
# A directory of more bytes than this has too many names to read for each submit.
_READ_DIRECTORY_MAX_BYTES = 128 * 1024
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# So many files are open at a time: few enough for the usual limit of 1024.
_CHUNK = 256
Owner = tuple[int, int]


def add(
    spool: Spool, name: str, data: bytes, *, state: str = "queue", owner: Owner | None = None
) -> None:
    """Put a job file in place and on disk, or raise WrongState where the name is alive."""
    add_many(spool, [(name, data)], state=state, owner=owner)


def add_many(
    spool: Spool,
    jobs: "Iterable[tuple[str, bytes]]",
    *,
    state: str = "queue",
    owner: Owner | None = None,
) -> None:
    """Put (name, data) job files in place; all are on disk at the return.

    Raises WrongState at the first name that is alive already; those before it are then in place.
    """
    rest = iter(jobs)
    try:
        while chunk := list(islice(rest, _CHUNK)):
            _add_chunk(spool, chunk, state, owner)
    finally:
        directory = spool.state_dir(state)
        with telling("sync", directory):
            sync_dir(directory)


def _add_chunk(
    spool: Spool, jobs: list[tuple[str, bytes]], state: str, owner: Owner | None
) -> None:
    """Write and sync all, then link all: a sync after each link would cost twice the time."""
    asides = {name: aside_name(spool.aside_dir) for name, _ in jobs}
    if len(asides) < len(jobs):
        raise WrongState("the same name is given to two of the jobs; give each its own.")
    fds: list[int] = []
    try:
        with telling("write to", spool.aside_dir):
            try:
                for name, data in jobs:
                    fds.append(open_new(asides[name], data, owner=owner))
                sync_all(fds)
            finally:
                for fd in fds:
                    os.close(fd)
        for name, aside in asides.items():
            _place(spool, aside, name, state)
    finally:
        for aside in list(asides.values())[: len(fds)]:
            discard(aside)


def _place(spool: Spool, aside: str, name: str, state: str) -> None:
    for other in ALIVE:
        if os.path.lexists(spool.job_file(other, name)):
            raise _taken(name, other)
    target = spool.job_file(state, name)
    with telling("write", target):
        try:
            _link(aside, target)
        except FileExistsError:
            raise _taken(name, state) from None


def _link(aside: str, target: str) -> None:
    try:
        os.link(aside, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links; the name was free a moment ago.
        if os.path.lexists(target):
            raise FileExistsError from None
        os.rename(aside, target)


def _taken(name: str, state: str) -> WrongState:
    return WrongState(
        f"there is a job {name} in {state}/ already; choose another name, or remove that job first."
    )


def add_numbered(
    spool: Spool,
    jobs: "Sequence[tuple[str, str, bytes]]",
    *,
    state: str = "queue",
    owner: Owner | None = None,
) -> list[str]:
    """Add jobs given as (lane, word, data) under the next free numbers; return their names.

    The numbers are counted under a lock, so that submits at the same time get different ones.
    """
    names = _numbered(jobs, _take_numbers(spool, len(jobs), read_all=False))
    if any(os.path.lexists(spool.job_file(state, name)) for name in names):
        # A power cut took the last counts, and the directory is too large to be read each time.
        names = _numbered(jobs, _take_numbers(spool, len(jobs), read_all=True))
    files = ((name, data) for name, (_, _, data) in zip(names, jobs, strict=True))
    add_many(spool, files, state=state, owner=owner)
    return names


def _numbered(jobs: "Sequence[tuple[str, str, bytes]]", first: int) -> list[str]:
    return [numbered_name(first + at, lane, word) for at, (lane, word, _) in enumerate(jobs)]


def _take_numbers(spool: Spool, how_many: int, *, read_all: bool) -> int:
    """Reserve consecutive numbers; return the first."""
    file = f"{spool.root}/number"
    with telling("count in", file):
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            text = os.pread(fd, 32, 0).strip(b"\n\0 ")
            # The count is not synced: where it was lost, the directories say it again.
            known = int(text) if text.isdigit() else -1
            highest = _highest_number(spool, read_all=read_all or known < 0)
            first = 1 + max(known, highest)
            text = b"%d\n" % (first + how_many - 1)
            os.pwrite(fd, text, 0)
            os.ftruncate(fd, len(text))
        finally:
            os.close(fd)
    return first


def _highest_number(spool: Spool, *, read_all: bool) -> int:
    """Return the highest number that a job file has; skip large directories unless `read_all`."""
    highest = 0
    for state in STATES:
        directory = spool.state_dir(state)
        if read_all or os.stat(directory).st_size <= _READ_DIRECTORY_MAX_BYTES:
            for entry in os.listdir(directory):
                if entry.endswith(SUFFIX):
                    highest = max(highest, leading_number(entry))
    return highest
