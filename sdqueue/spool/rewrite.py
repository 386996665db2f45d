"""A job file's content, changed in its place: at every instant the old one or the new one is there.

The two files are exchanged in one step, which fails where the job has left its directory, so a job
that starts at that moment starts with the old content and nothing comes back that has gone.
"""

import ctypes
import errno
import os
from dataclasses import replace
from typing import NamedTuple

from sdqueue.spool import meta
from sdqueue.spool.files import aside_name, discard, sync_dir, telling, write_new
from sdqueue.spool.layout import Spool
from sdqueue.spool.moves import move
from sdqueue.spool.scan import gone, read_whole
from sdqueue.words.errors import SpoolError, WrongState

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
_AT_REST = ("parked", "failed", "done")


class Content(NamedTuple):
    """A job file's content, and by what it is known again: the directory entry's own status."""

    data: bytes
    entry: os.stat_result
    file: os.stat_result


def read_content(spool: Spool, name: str, state: str) -> Content:
    """Read a job file whole, or raise NoSuchJob where it has gone, SpoolError where it is none."""
    file = spool.job_file(state, name)
    with telling("read", file):
        try:
            entry, status = os.lstat(file), os.stat(file)
        except FileNotFoundError:
            raise gone(name, state) from None
    return Content(read_whole(spool, state, name).data, entry, status)


def rewrite(spool: Spool, name: str, state: str, old: Content, data: bytes) -> None:
    """Put `data` in the place of `old`, durably; owner, mode and time of change are kept.

    NoSuchJob if the job has left `state`, WrongState if its file is another than `old`.
    """
    aside = aside_name(spool.aside_dir)
    write_like(aside, data, old.file)
    try:
        if state == "queue":
            _keep_memory(spool, name, os.stat(aside).st_ino)
        _put(spool, name, state, old, aside)
    finally:
        discard(aside)


def write_like(file: str, data: bytes, model: os.stat_result) -> None:
    """Create a file, durably, with the owner, mode and time of change of another one."""
    owner = (model.st_uid, model.st_gid) if os.geteuid() == 0 else None
    with telling("write", file):
        write_new(file, data, mode=model.st_mode & 0o777, owner=owner, sync=False)
        try:
            os.utime(file, ns=(model.st_atime_ns, model.st_mtime_ns))
            _sync(file)
        except BaseException:
            discard(file)
            raise


def _sync(file: str) -> None:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _keep_memory(spool: Spool, name: str, ino: int) -> None:
    """Have what is remembered of a waiting job count for its new file too."""
    kept = meta.load(spool, name)
    if isinstance(kept, meta.Meta):
        meta.save(spool, name, replace(kept, ino=ino))


def _put(spool: Spool, name: str, state: str, old: Content, aside: str) -> None:
    file = spool.job_file(state, name)
    with telling("write", file):
        try:
            _exchange(aside, file)
        except FileNotFoundError:
            raise gone(name, state) from None
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
            _put_at_rest(spool, name, state, aside)
            return
        if not _is_same(os.lstat(aside), old.entry):
            _exchange(aside, file)
            raise WrongState(f"the file of {name} was changed meanwhile; it stays as it is now.")
        sync_dir(spool.state_dir(state))


def _put_at_rest(spool: Spool, name: str, state: str, aside: str) -> None:
    """Do without the exchange, on file systems that have none: where the job can't start."""
    if state == "running":
        raise SpoolError(f"{name} runs, and this file system can't exchange files; wait for it.")
    rest = state if state in _AT_REST else "parked"
    move(spool, name, state, rest)
    os.rename(aside, spool.job_file(rest, name))
    sync_dir(spool.state_dir(rest))
    move(spool, name, rest, state)


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_ino, one.st_mtime_ns, one.st_size) == (
        other.st_ino,
        other.st_mtime_ns,
        other.st_size,
    )


def _exchange(one: str, other: str) -> None:
    """Exchange two files' names in one step; both must be there."""
    _renameat2(one, other, _RENAME_EXCHANGE)


def rename_new(old: str, new: str) -> None:
    """Rename a file, in one step, to a name that is free, or raise FileExistsError."""
    try:
        _renameat2(old, new, _RENAME_NOREPLACE)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        # A file system without that step.
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(old, new)


def _renameat2(one: str, other: str, flags: int) -> None:
    arguments = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), flags)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), one)
