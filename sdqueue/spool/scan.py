"""Which job files there are, and the heads of them.

A name that has gone between listing and reading is no error. What is no plain file is a Problem
and never opened in a way that waits. What the header says is for `jobfile` to read.
"""

import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from sdqueue.jobtext import HEADER_MAX_BYTES, JOB_MAX_BYTES
from sdqueue.spool.files import read_up_to, spool_error, telling
from sdqueue.spool.layout import Spool
from sdqueue.words.errors import NoSuchJob, SpoolError
from sdqueue.words.names import SUFFIX, job_name_fault, shown
from sdqueue.words.problem import Problem

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
NO_LINKS = (
    "is a symbolic link, and the machine's queue follows none: who may change what it points to"
    " could choose what runs as whom; put the file itself there"
)


class Entry(NamedTuple):
    """A job file as its directory shows it. With a `problem` it is no job that can run.

    `size_bytes`, `mtime_ns`, `ino` and `uid` are the file's own, behind a symbolic link.
    """

    name: str
    state: str
    problem: Problem | None
    mtime_ns: int
    size_bytes: int
    ino: int
    uid: int


class JobBytes(NamedTuple):
    """The head of a job file (or all of it), and whose it is."""

    data: bytes
    size_bytes: int
    mtime_ns: int
    ino: int
    uid: int
    gid: int


def scan(spool: Spool, state: str) -> Iterator[Entry]:
    """Yield the job files in `state`, in no order."""
    directory = spool.state_dir(state)
    with telling("list", directory), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                found = _entry(spool, state, entry)
                if found is not None:
                    yield found
            elif state == "queue" and entry.name.lower().endswith((SUFFIX, ".sh")):
                yield _no_job(state, entry, "is no job file: its name must end in .job")


def _no_job(state: str, entry: "os.DirEntry[str]", what: str) -> Entry:
    problem = Problem(f"{state}/{entry.name}", 0, what, "warning")
    return Entry(entry.name, state, problem, 0, 0, entry.inode(), -1)


def _entry(spool: Spool, state: str, entry: "os.DirEntry[str]") -> Entry | None:
    name = entry.name[: -len(SUFFIX)]
    try:
        # Not entry.stat(follow_symlinks=True): that would cost a second call for plain files.
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            if spool.system:
                return _bad(name, state, NO_LINKS, status.st_ino)
            status = os.stat(entry.path)
    except FileNotFoundError:
        if not entry.is_symlink():
            return None
        return _bad(name, state, "is a symbolic link to nothing", entry.inode())
    except OSError as error:
        return _bad(name, state, f"can't be looked at: {error.strerror}", entry.inode())
    fault = _fault(spool, name, status)
    problem = Problem(f"{state}/{name}{SUFFIX}", 0, fault) if fault else None
    return Entry(
        name, state, problem, status.st_mtime_ns, status.st_size, status.st_ino, status.st_uid
    )


def _bad(name: str, state: str, fault: str, ino: int) -> Entry:
    return Entry(name, state, Problem(f"{state}/{name}{SUFFIX}", 0, fault), 0, 0, ino, -1)


def _fault(spool: Spool, name: str, status: os.stat_result) -> str | None:
    """Say why a file can't be a job, or None."""
    fault = job_name_fault(name)
    return f"{shown(name)} can't be a job's name: {fault}" if fault else file_fault(spool, status)


def file_fault(spool: Spool, status: os.stat_result) -> str | None:
    """Say why a file of that status can't be a job file, or None."""
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for test, words in _KINDS if test(status.st_mode)), "no plain file")
        return f"is {kind}, not a job file"
    if status.st_size > JOB_MAX_BYTES:
        return (
            f"has {status.st_size >> 20} MiB, and a job file may have {JOB_MAX_BYTES >> 20};"
            " put the data in a file of its own"
        )
    if spool.system and status.st_mode & 0o002:
        return "is writable by everyone, who could so run commands as its owner; chmod o-w it"
    return None


def read_whole(spool: Spool, state: str, name: str) -> JobBytes:
    """Read all of a job file, or raise NoSuchJob where it has gone, SpoolError where it is none."""
    found = read_job(spool, state, name, limit=JOB_MAX_BYTES)
    if found is None:
        raise gone(name, state)
    if isinstance(found, Problem):
        raise SpoolError(f"{found.file} {found.message}.")
    return found


def gone(name: str, state: str) -> NoSuchJob:
    """Say that a job file is not where it was a moment ago."""
    return NoSuchJob(f"{name} is not in {state}/ any more: somebody moved it.")


def read_job(
    spool: Spool, state: str, name: str, *, limit: int = HEADER_MAX_BYTES
) -> JobBytes | Problem | None:
    """Return the first `limit` bytes of a job file, what is wrong with it, or None if gone."""
    file = spool.job_file(state, name)
    shown_file = f"{state}/{name}{SUFFIX}"
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        links = os.O_NOFOLLOW if spool.system else 0
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | links)
    except OSError as error:
        if spool.system and os.path.islink(file):
            return Problem(shown_file, 0, NO_LINKS)
        return _unopened(error, file, shown_file)
    try:
        status = os.fstat(fd)
        fault = file_fault(spool, status)
        if fault is not None:
            return Problem(shown_file, 0, fault)
        with telling("read", file):
            data = read_up_to(fd, limit)
    finally:
        os.close(fd)
    return JobBytes(
        data, status.st_size, status.st_mtime_ns, status.st_ino, status.st_uid, status.st_gid
    )


_OUR_TROUBLE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)


def _unopened(error: OSError, file: str, shown_file: str) -> Problem | None:
    """Say whose fault it is that a file can't be opened: nobody's, the file's, or the machine's."""
    if error.errno in _OUR_TROUBLE:
        raise spool_error(error, "read", file) from error
    if isinstance(error, FileNotFoundError):
        if os.path.islink(file):
            return Problem(shown_file, 0, "is a symbolic link to nothing")
        return None
    return Problem(shown_file, 0, f"can't be read: {error.strerror}; see with ls -l who may")
