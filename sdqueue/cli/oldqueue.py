"""What is in another directory queue, and what an import does with each file. Changes nothing.

The rules, first that applies: what is no job file is left; what may still run is left; what could
run as somebody else is left; a name that is in use is left. All else comes over.
"""

import fcntl
import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sdqueue.cli.place import Place
from sdqueue.core.spec import JobSpec
from sdqueue.jobfile import parse
from sdqueue.jobtext import HEADER_MAX_BYTES, read_header
from sdqueue.spool.files import read_up_to, telling
from sdqueue.spool.moves import has_writer, states_of
from sdqueue.spool.openers import Inode, User, users_of
from sdqueue.spool.scan import file_fault
from sdqueue.spool.takeover import CLAIMED, Staged, list_staged, staged_file
from sdqueue.words.errors import SdqueueError
from sdqueue.words.names import SUFFIX, job_name_fault, second_word, shown, sort_key

GOES_TO: dict[str, str] = {
    "running": "parked",
    "done": "done",
    "failed": "failed",
    "parked": "parked",
    "queue": "queue",
}
"""The directories of another queue, in the order in which they are taken over, and to where: what
others come after is there before them, and what may have been cut off is for a person to judge."""

SUFFIXES = (SUFFIX, ".sh", ".bash")
_LOCK = re.compile(r"(^|\.)lock$")
_ALIVE = ("queue", "running", "parked")
WAS_RUNNING = "it was running and has no process now; release it, or remove it"


class Wish(NamedTuple):
    """What the caller asked for besides."""

    lane: str
    requeue: bool
    beside: bool


class File(NamedTuple):
    """One file of the other queue: `file` is its path, `shown` is from the queue's directory.

    `to` is the state it comes over to, "" where it is left; `lane` is what must be added to its
    header. `is_lost` says that it is left though it is, or could be, a job.
    """

    file: str
    shown: str
    staged: Staged
    to: str = ""
    lane: str = ""
    note: str = ""
    is_lost: bool = False
    seen: os.stat_result | None = None
    priority: int = 0
    is_staged: bool = False


def survey(directory: str, place: Place, wish: Wish) -> list[File]:
    """Return all files of a queue that was checked, in the order in which to take them over."""
    found = _once([*_staged(place), *_listed(directory, place)])
    users = _users(found)
    judged = [_judged(each, users, place, wish) for each in found]
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
    return entry if "." not in entry and _head(file, 2) == b"#!" else ""


def _no_job(file: str) -> str:
    if os.path.isdir(file) and not os.path.islink(file):
        return "a directory, no job file"
    return f"no job file: its name does not end in {', '.join(SUFFIXES)}"


def _head(file: str, limit: int) -> bytes | None:
    """Return the head of a regular file, None where it can't be read."""
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return None
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return read_up_to(fd, limit)
        finally:
            os.close(fd)
    except OSError:
        return None


# Judging one file -------------------------------------------------------------------------------


def _users(found: list[File]) -> Mapping[Inode, User]:
    """Look which processes use files that run, or are about to."""
    looked_for: dict[Inode, str] = {}
    for each in found:
        if each.staged.state in ("queue", "running") and each.staged.name and not each.is_staged:
            try:
                status = os.lstat(each.file)
            except OSError:
                continue
            name = os.path.basename(each.file).removesuffix(CLAIMED)
            looked_for[status.st_dev, status.st_ino] = name
    return users_of(looked_for)


def _judged(each: File, users: Mapping[Inode, User], place: Place, wish: Wish) -> File:
    """Say what is done with one file, but for what other files have to do with it."""
    if each.note or each.is_lost:
        return each
    try:
        status = os.lstat(each.file)
    except OSError as error:
        return each._replace(note=f"can't be looked at: {error.strerror}", is_lost=True)
    each = each._replace(seen=status)
    fault = _fault(each, status, users, place)
    if fault:
        return each._replace(note=fault, is_lost=True)
    data = _head(each.file, HEADER_MAX_BYTES)
    if data is None:
        return each._replace(note="can't be read; see with ls -l who may", is_lost=True)
    return _as_job(each, data, status, place, wish)


def _fault(
    each: File, status: os.stat_result, users: Mapping[Inode, User], place: Place
) -> str | None:
    """Say why a file can't come over, or None."""
    bad_name = job_name_fault(each.staged.name)
    if bad_name:
        return f"{shown(each.staged.name)} can't be a job's name: {bad_name}"
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link; put the file itself there"
    fault = file_fault(place.spool, status)
    if fault or each.is_staged:
        return fault
    user = users.get((status.st_dev, status.st_ino))
    if user:
        return f"in use: process {user.pid} ({user.program}); import again when that has ended"
    if has_writer(each.file):
        return "somebody is writing it"
    return _owner_fault(each.file, status, place)


def _owner_fault(file: str, status: os.stat_result, place: Place) -> str | None:
    """Say why a file would run as somebody who may not have meant it."""
    if not place.system:
        if status.st_uid == os.geteuid():
            return None
        return f"belongs to uid {status.st_uid}, and would run as you; chown it if that is meant"
    directory = os.lstat(os.path.dirname(file)).st_uid
    if directory not in (0, status.st_uid):
        return (
            f"belongs to uid {status.st_uid} and would run so, but lies in a directory of"
            f" uid {directory}; chown one of them"
        )
    if status.st_nlink > 1:
        return "has a second name elsewhere (a hard link), whose owner did not put it here"
    return None


def _as_job(each: File, data: bytes, status: os.stat_result, place: Place, wish: Wish) -> File:
    """Say where a good file goes, in which lane, and what is to be known of its header."""
    state, name = each.staged
    has_lane = b"LANE" in {key for _, key, _ in read_header(data).lines}
    lane = "" if has_lane or second_word(name) in place.lane_names() else wish.lane
    to = "queue" if state == "running" and wish.requeue else GOES_TO[state]
    spec, trouble = _read(name, data, status, lane, place)
    notes = [f"lane {lane}"] if lane else []
    notes += [WAS_RUNNING] if state == "running" and to == "parked" else []
    notes += [trouble] if trouble and to in _ALIVE else []
    return each._replace(
        to=to, lane=lane, note="; ".join(notes), priority=spec.priority if spec else 0
    )


def _read(
    name: str, data: bytes, status: os.stat_result, lane: str, place: Place
) -> tuple[JobSpec | None, str]:
    """Return what a header says, and what is wrong with it, as far as there is room for."""
    lanes = place.config.lanes
    stem = f"x-{lane}" if lane else name
    found = parse(stem, data, lanes=lanes, uid=status.st_uid, now_sec=status.st_mtime)
    worst = sorted(found.problems, key=lambda problem: problem.severity)[:1]
    if not worst:
        return found.spec, ""
    line = f"line {worst[0].line}: " if worst[0].line else ""
    more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
    return found.spec, f"{worst[0].severity}: {line}{worst[0].message}{more}"


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
    lane = _lane_of(each, place, wish)
    known = place.config.lanes.get(lane)
    return {lane, *(known.excludes if known else ())}


def _lane_of(each: File, place: Place, wish: Wish) -> str:
    header = read_header(_head(each.file, HEADER_MAX_BYTES) or b"")
    named = [value.decode("utf-8", "replace") for _, key, value in header.lines if key == b"LANE"]
    word = second_word(each.staged.name)
    return named[0] if named else word if word in place.lane_names() else wish.lane


def _left_alone(each: File, busy: Mapping[str, str], place: Place, wish: Wish) -> File:
    lane = _lane_of(each, place, wish) if each.to == "queue" else ""
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
    if each.to not in _ALIVE:
        return each
    other = taken.get(name) or next(
        (f"{there}/{name}{SUFFIX}" for there in states_of(place.spool, name) if there in _ALIVE), ""
    )
    if other:
        where = "in the spool" if name not in taken else "here too"
        note = f"there is {other} {where}; rename one of the two"
        return each._replace(to="", note=note, is_lost=True)
    taken[name] = each.shown
    return each
