"""One file of another directory queue: what an import does with it, by itself. Changes nothing.

The rules, first that applies: what may still run is left, what could run as somebody else is left,
and so is what is no plain file or has a name that no job can have. All else comes over.
"""

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from sdqueue.cli.place import Place
from sdqueue.core.spec import JobSpec
from sdqueue.jobfile import parse
from sdqueue.jobtext import HEADER_MAX_BYTES, read_header
from sdqueue.spool.add import ALIVE
from sdqueue.spool.files import read_up_to
from sdqueue.spool.moves import has_writer
from sdqueue.spool.openers import Inode, User
from sdqueue.spool.scan import file_fault
from sdqueue.spool.takeover import Staged
from sdqueue.words.names import job_name_fault, second_word, shown

GOES_TO: dict[str, str] = {
    "running": "parked",
    "done": "done",
    "failed": "failed",
    "parked": "parked",
    "queue": "queue",
}
"""The directories of another queue, in the order in which they are taken over, and to where: what
others come after is there before them, and what may have been cut off is for a person to judge."""

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


def judge(each: File, users: Mapping[Inode, User], place: Place, wish: Wish) -> File:
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
    data = head(each.file, HEADER_MAX_BYTES)
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
    notes += [trouble] if trouble and to in ALIVE else []
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


def lane_of(each: File, place: Place, wish: Wish) -> str:
    """Name the lane that a file's job runs in, configured or not."""
    header = read_header(head(each.file, HEADER_MAX_BYTES) or b"")
    named = [value.decode("utf-8", "replace") for _, key, value in header.lines if key == b"LANE"]
    word = second_word(each.staged.name)
    return named[0] if named else word if word in place.lane_names() else wish.lane


def head(file: str, limit: int) -> bytes | None:
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
