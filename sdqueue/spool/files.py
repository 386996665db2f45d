"""How bytes and names become durable: write aside, fsync, rename, fsync the directory.

Knows nothing of jobs. Loads nothing slow.
"""

import errno
import os
from itertools import count
from stat import S_ISREG

from sdqueue.words.errors import SpoolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_serial = count()
_SYNC_THREADS = 16

ADVICE: dict[int, str] = {
    errno.ENOSPC: "free some space there and try again",
    errno.EDQUOT: "the quota is used up: free some space there and try again",
    errno.EROFS: "the file system is mounted read-only; after a disk error the kernel does that,"
    " see dmesg",
    errno.EIO: "the disk failed, see dmesg",
    errno.EACCES: "see with ls -ld who may write there",
    errno.EPERM: "see with ls -ld and lsattr -d who may write there",
    errno.EMFILE: "too many files are open in this process; raise LimitNOFILE=",
    errno.ENFILE: "too many files are open on this machine",
    errno.ELOOP: "it is a symbolic link, which is not followed here; remove it",
    errno.ENOTDIR: "something in this path is a file where a directory should be; move it away",
    errno.EISDIR: "it is a directory where a file should be; move it away",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "it was removed meanwhile; the next start of sdqueue makes its directories anew",
}


def spool_error(error: OSError, doing: str, file: str) -> SpoolError:
    """Return the sentence for an OSError: what, which file, why, what to do."""
    why = os.strerror(error.errno) if error.errno else str(error)
    advice = ADVICE.get(error.errno or 0)
    return SpoolError(f"can't {doing} {file!r}: {why}{f'; {advice}' if advice else ''}.")


class telling:
    """Turn an OSError in the block into a SpoolError, but for kinds that `passes` names."""

    __slots__ = ("doing", "file", "passes")

    def __init__(
        self, doing: str, file: str, *, passes: type[OSError] | tuple[type[OSError], ...] = ()
    ) -> None:
        self.doing = doing
        self.file = file
        self.passes = passes

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        if isinstance(error, OSError) and not isinstance(error, self.passes):
            raise spool_error(error, self.doing, self.file) from error


def aside_name(directory: str) -> str:
    """Return a file name in `directory` that no other thread or process uses."""
    return f"{directory}/{os.getpid()}-{next(_serial)}-{os.urandom(4).hex()}"


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; a short write is followed by the error that caused it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_new(
    file: str, data: bytes, *, mode: int = 0o600, owner: tuple[int, int] | None = None, sync: bool
) -> None:
    """Create `file`, which must not exist, with `data`; leave nothing behind on an error."""
    fd = open_new(file, data, mode=mode, owner=owner)
    try:
        if sync:
            os.fsync(fd)
    except BaseException:
        discard(file)
        raise
    finally:
        os.close(fd)


def open_new(
    file: str, data: bytes, *, mode: int = 0o600, owner: tuple[int, int] | None = None
) -> int:
    """Create `file` with `data` and return it open, not yet on disk."""
    fd = os.open(file, _WRITE_NEW, mode)
    try:
        if owner is not None:
            os.fchown(fd, *owner)
        write_all(fd, data)
    except BaseException:
        os.close(fd)
        discard(file)
        raise
    return fd


def sync_all(fds: list[int]) -> None:
    """Sync many open files at once; raise the first OSError there was.

    Syncs that are under way together share the file system's commits: twice as fast as in turn.
    """
    if len(fds) < 2 * _SYNC_THREADS:
        for fd in fds:
            os.fsync(fd)
        return
    from threading import Thread  # only here: a single submit does without

    errors: list[OSError] = []

    def sync_some(some: list[int]) -> None:
        try:
            for fd in some:
                os.fsync(fd)
        except OSError as error:
            errors.append(error)

    shares = (fds[start::_SYNC_THREADS] for start in range(_SYNC_THREADS))
    threads = [Thread(target=sync_some, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def replace(
    file: str, data: bytes, aside_dir: str, *, mode: int = 0o600, sync: bool = True
) -> None:
    """Put `data` in the place of `file`, atomically, and durably with `sync`."""
    aside = aside_name(aside_dir)
    with telling("write", file):
        write_new(aside, data, mode=mode, sync=sync)
        try:
            os.rename(aside, file)
        except BaseException:
            discard(aside)
            raise
        if sync:
            sync_dir(os.path.dirname(file))


def sync_dir(directory: str) -> None:
    """Make the names in `directory` durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def discard(file: str) -> None:
    """Remove a file of our own; that it can't be removed is of no consequence."""
    try:
        os.unlink(file)
    except OSError:
        pass


def read_small(file: str, limit: int = 1 << 20) -> bytes | None:
    """Return a regular file's bytes, at most `limit`, or None where there is none.

    Neither follows a link nor waits on a FIFO: some of these files lie where a job may write.
    """
    with telling("read", file):
        try:
            fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if not S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return read_up_to(fd, limit)
        finally:
            os.close(fd)


def read_up_to(fd: int, limit: int) -> bytes:
    """Read until the end of the file or `limit` bytes."""
    parts: list[bytes] = []
    while limit > 0:
        part = os.read(fd, min(limit, 1 << 20))
        if not part:
            break
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)
