"""Files of another queue on their way into a spool: each is in one place at every instant.

A file goes two steps. It is *taken* from where it lies to `SPOOL/import/STATE/NAME.job`, where no
controller looks and the other queue's runner does not either; then it is *placed* in its state's
directory. Within a file system both steps are renames. From another one it is first *claimed*, by
another name beside it that no runner takes for a job, then copied, durable, and only then removed.

Killed anywhere, what is in `import/` or claimed goes on with the next import. Synchronous; which
files are taken, and to which state, others decide.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from sdqueue.spool.files import aside_name, discard, read_up_to, sync_dir, telling, write_all
from sdqueue.spool.layout import STATES, Spool, make_dir
from sdqueue.spool.rewrite import rename_new
from sdqueue.words.errors import SpoolBusy, WrongState
from sdqueue.words.names import SUFFIX

CLAIMED = ".~importing~"
"""What follows the name of a file that is being copied from another file system."""
LOG = "events.jsonl"
KEPT_LOG = "events-imported.jsonl"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Staged(NamedTuple):
    """A file that was taken and is not placed yet; the old queue's log has no state and name."""

    state: str
    name: str


THE_LOG = Staged("", "")


def staging_dir(spool: Spool, state: str = "") -> str:
    """Return where files of a state wait to be placed."""
    return f"{spool.root}/import/{state}".rstrip("/")


def staged_file(spool: Spool, staged: Staged) -> str:
    """Return where a taken file is."""
    file = f"{staged.name}{SUFFIX}" if staged.state else LOG
    return f"{staging_dir(spool, staged.state)}/{file}"


@contextmanager
def importing(spool: Spool) -> Iterator[None]:
    """Hold the spool's staging directories, alone, and remove them where they are empty again."""
    directories = [staging_dir(spool), *(staging_dir(spool, state) for state in STATES)]
    with telling("make the directory", directories[0]):
        for directory in directories:
            with suppress(FileExistsError):
                make_dir(directory, 0o700)
        sync_dir(spool.root)
        held = os.open(directories[0], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SpoolBusy(f"another import into {spool.root!r} is under way.") from None
        yield
        for directory in reversed(directories):
            with suppress(OSError):
                os.rmdir(directory)
    finally:
        os.close(held)


def list_staged(spool: Spool) -> list[Staged]:
    """Return what an import that was killed has taken and not placed, in no order."""
    found = [THE_LOG] if os.path.lexists(staged_file(spool, THE_LOG)) else []
    for state in STATES:
        with suppress(FileNotFoundError), telling_but_absence(staging_dir(spool, state)):
            files = os.listdir(staging_dir(spool, state))
            found += [Staged(state, f[: -len(SUFFIX)]) for f in files if f.endswith(SUFFIX)]
    return found


def telling_but_absence(directory: str) -> telling:
    """Turn OSErrors into sentences, but for a directory that is not there."""
    return telling("list", directory, passes=FileNotFoundError)


def take(file: str, staged: str, seen: os.stat_result, aside_dir: str) -> None:
    """Bring `file`, which was `seen`, to `staged`, out of its queue's reach.

    Raises OSError, FileExistsError where a file of that name was taken and is another one, or
    WrongState if `file` is not the one that was seen any more; then it stays where it is.
    """
    if os.path.lexists(staged) and _is_copy(staged, file):
        os.unlink(file)
        return
    try:
        rename_new(file, staged)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _carry(file, staged, seen, aside_dir)
        return
    if not _is_seen(os.lstat(staged), seen):
        rename_new(staged, file)
        raise _changed(file)


def _carry(file: str, staged: str, seen: os.stat_result, aside_dir: str) -> None:
    """Bring a file from another file system: claim it, copy it durably, remove it."""
    claim = file if file.endswith(CLAIMED) else f"{file}{CLAIMED}"
    if claim != file:
        rename_new(file, claim)
    try:
        sync_dir(os.path.dirname(claim))
        _copy(claim, staged, seen, aside_dir)
    except BaseException:
        with suppress(OSError):
            rename_new(claim, claim.removesuffix(CLAIMED))
        raise
    os.unlink(claim)


def _copy(file: str, target: str, seen: os.stat_result, aside_dir: str) -> None:
    """Copy a file with its owner, mode and time of change; `target` appears whole and durable."""
    source = os.open(file, _READ)
    try:
        status = os.fstat(source)
        if not _is_seen(status, seen):
            raise _changed(file)
        aside = aside_name(aside_dir)
        copy = os.open(aside, _WRITE, 0o600)
        try:
            while part := read_up_to(source, 1 << 20):
                write_all(copy, part)
            if os.geteuid() == 0:
                os.fchown(copy, status.st_uid, status.st_gid)
            os.fchmod(copy, status.st_mode & 0o777)
            os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(copy)
            rename_new(aside, target)
        except BaseException:
            discard(aside)
            raise
        finally:
            os.close(copy)
        sync_dir(os.path.dirname(target))
    finally:
        os.close(source)


def _is_seen(status: os.stat_result, seen: os.stat_result) -> bool:
    return (
        stat.S_ISREG(status.st_mode)
        and (status.st_ino, status.st_dev, status.st_uid) == (seen.st_ino, seen.st_dev, seen.st_uid)
        and status.st_nlink <= seen.st_nlink
    )


def _is_copy(one: str, other: str) -> bool:
    """Say whether one file is a copy of the other: of the same content and time of change."""
    first, second = os.lstat(one), os.lstat(other)
    if (first.st_size, first.st_mtime_ns) != (second.st_size, second.st_mtime_ns):
        return False
    with open(one, "rb", opener=_opener) as left, open(other, "rb", opener=_opener) as right:
        while True:
            part = left.read(1 << 20)
            if part != right.read(1 << 20):
                return False
            if not part:
                return True


def _opener(file: str, _flags: int) -> int:
    return os.open(file, _READ)


def _changed(file: str) -> WrongState:
    return WrongState(f"{file} was changed meanwhile; it stays where it is.")


def place(staged: str, target: str, *, beside: bool) -> str:
    """Give a taken file its place and return its name there.

    Where the name is taken: with `beside` it gets the next free one of the form NAME.job.~N~, else
    FileExistsError is raised, and it waits on.
    """
    number, name = 0, target
    while True:
        try:
            rename_new(staged, name)
        except FileExistsError:
            if not beside:
                raise
            number += 1
            name = f"{target}.~{number}~"
        else:
            return os.path.basename(name)
