"""What is in another directory queue, and what an import does with each file. Changes nothing.

`oldfile` judges each by itself. Here is what files have to do with each other: what runs there
still keeps waiting jobs from starting beside it, and of a name there is one that waits or runs.
"""

import fcntl
import os
import re
import stat
from collections.abc import Iterator, Mapping

from sdqueue.cli.oldfile import GOES_TO, File, Wish, head, judge, lane_of
from sdqueue.cli.oldlog import read_starts
from sdqueue.cli.place import Place
from sdqueue.spool.add import ALIVE
from sdqueue.spool.files import telling
from sdqueue.spool.moves import states_of
from sdqueue.spool.openers import Inode, User, user_since, users_of
from sdqueue.spool.takeover import CLAIMED, LOG, Staged, list_staged, staged_file
from sdqueue.words.errors import SdqueueError
from sdqueue.words.names import SUFFIX, sort_key

_LOCK = re.compile(r"(^|\.)lock$")
SUFFIXES = (SUFFIX, ".sh", ".bash")


def survey(directory: str, place: Place, wish: Wish) -> list[File]:
    """Return all files of a queue that was checked, in the order in which to take them over."""
    found = _once([*_staged(place), *_listed(directory, place)])
    users = _users(found, read_starts(f"{directory}/{LOG}"))
    judged = [judge(each, users, place, wish) for each in found]
    judged = _without_company(judged, users, place, wish)
    return _without_taken_names(sorted(judged, key=_order), place)


def check(directory: str, place: Place) -> None:
    """Raise SdqueueError if `directory` is no queue, is this one, or has a runner at work."""
    if not os.path.isdir(directory):
        raise SdqueueError(f"there is no directory {directory!r}.")
    spool, real = os.path.realpath(place.spool.root), os.path.realpath(directory)
    if real == spool or real.startswith(f"{spool}/"):
        raise SdqueueError(
            f"{directory!r} is in the spool itself: what lies there is this queue's already."
        )
    if not any(os.path.lexists(f"{directory}/{state}") for state in GOES_TO):
        raise SdqueueError(
            f"{directory!r} is no directory queue: it has none of {'/, '.join(GOES_TO)}/."
        )
    with telling("list", directory):
        names = os.listdir(directory)
    for lock in (f"{directory}/{name}" for name in names if _LOCK.search(name)):
        if _is_held(lock):
            raise SdqueueError(f"its runner is alive and holds {lock!r}: stop that first.")


def _is_held(lock: str) -> bool:
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    finally:
        os.close(fd)
    return False


def _order(each: File) -> tuple[bool, int, int, str]:
    states = list(GOES_TO)
    return (
        not each.is_staged,
        states.index(each.staged.state),
        -each.priority,
        sort_key(each.staged.name),
    )


def _staged(place: Place) -> Iterator[File]:
    """Yield what an import that was killed has taken already."""
    for staged in list_staged(place.spool):
        if staged.state:
            file = staged_file(place.spool, staged)
            yield File(file, f"{staged.state}/{staged.name}{SUFFIX}", staged, is_staged=True)


def _once(found: list[File]) -> list[File]:
    """Leave out what was copied already and not removed: taking it again sees to that."""
    claimed = {each.staged for each in found if each.file.endswith(CLAIMED)}
    return [each for each in found if not (each.is_staged and each.staged in claimed)]


def _listed(directory: str, place: Place) -> Iterator[File]:
    for state in GOES_TO:
        top = f"{directory}/{state}"
        fault = _directory_fault(top, place)
        if fault:
            yield File(top, f"{state}/", Staged(state, ""), note=fault, is_lost=True)
            continue
        for entry in sorted(os.listdir(top)) if os.path.isdir(top) else ():
            name = _job_of(entry.removesuffix(CLAIMED), f"{top}/{entry}")
            file = File(f"{top}/{entry}", f"{state}/{entry}", Staged(state, name))
            yield file if name else file._replace(note=_no_job(file.file))


def _directory_fault(top: str, place: Place) -> str:
    try:
        status = os.lstat(top)
        if not stat.S_ISDIR(status.st_mode):
            return "is no directory" if not stat.S_ISLNK(status.st_mode) else "is a symbolic link"
        os.listdir(top)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"can't be listed: {error.strerror}"
    if place.system and status.st_mode & 0o022:
        return "others than its owner may put files there; chmod go-w it, and look at what is there"
    return ""


def _job_of(entry: str, file: str) -> str:
    """Return the job that a file's name stands for, "" where it is no job's."""
    for suffix in SUFFIXES:
        if entry.endswith(suffix):
            return entry.removesuffix(suffix)
    return entry if "." not in entry and head(file, 2) == b"#!" else ""


def _no_job(file: str) -> str:
    if os.path.isdir(file) and not os.path.islink(file):
        return "a directory, no job file"
    return f"no job file: its name does not end in {', '.join(SUFFIXES)}"


def _users(found: list[File], starts: Mapping[str, tuple[int, float]]) -> Mapping[Inode, User]:
    """Look which processes use files that run, or are about to; the old log may know one too."""
    looked_for: dict[Inode, str] = {}
    known: dict[Inode, User] = {}
    for each in found:
        if each.staged.state in ("queue", "running") and each.staged.name and not each.is_staged:
            try:
                status = os.lstat(each.file)
            except OSError:
                continue
            inode = (status.st_dev, status.st_ino)
            looked_for[inode] = os.path.basename(each.file).removesuffix(CLAIMED)
            start = starts.get(each.staged.name) if each.staged.state == "running" else None
            user = user_since(*start) if start else None
            if user:
                known[inode] = user
    return {**users_of(looked_for), **known}


# Judging them together --------------------------------------------------------------------------


def _without_company(
    judged: list[File], users: Mapping[Inode, User], place: Place, wish: Wish
) -> list[File]:
    """Leave the waiting jobs that could start beside one that runs still, in a lane of its own."""
    busy: dict[str, str] = {}
    for each in judged:
        seen = each.seen
        if each.staged.state == "running" and seen and (seen.st_dev, seen.st_ino) in users:
            for lane in _company(each, place, wish):
                busy.setdefault(lane, each.shown)
    if wish.beside or not busy:
        return judged
    return [_left_alone(each, busy, place, wish) for each in judged]


def _company(each: File, place: Place, wish: Wish) -> set[str]:
    """Name the lanes in which nothing may run beside a job."""
    lane = lane_of(each, place, wish)
    known = place.config.lanes.get(lane)
    return {lane, *(known.excludes if known else ())}


def _left_alone(each: File, busy: Mapping[str, str], place: Place, wish: Wish) -> File:
    lane = lane_of(each, place, wish) if each.to == "queue" else ""
    if lane not in busy:
        return each
    note = f"{busy[lane]} runs still, and it could start beside that; import again then"
    return each._replace(to="", note=note, is_lost=True)


def _without_taken_names(judged: list[File], place: Place) -> list[File]:
    """Leave files whose name is another job's, in the spool or in the other queue."""
    taken = {
        each.staged.name: each.shown
        for each in judged
        if each.staged.state == "running" and each.is_lost
    }
    return [_unless_taken(each, taken, place) for each in judged]


def _unless_taken(each: File, taken: dict[str, str], place: Place) -> File:
    name = each.staged.name
    if each.to not in ALIVE:
        return each
    other = taken.get(name) or next(
        (f"{there}/{name}{SUFFIX}" for there in states_of(place.spool, name) if there in ALIVE), ""
    )
    if other:
        where = "in the spool" if name not in taken else "here too"
        note = f"there is {other} {where}; rename one of the two"
        return each._replace(to="", note=note, is_lost=True)
    taken[name] = each.shown
    return each
