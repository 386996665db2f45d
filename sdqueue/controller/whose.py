"""Whose a process is, and how he stands to the queue: by the manager's word, never by a path's.

Theory of operation. Of a process that is below our manager's own control group our manager is
asked, by a descriptor of the process, and its answer counts: a directory has any name that its
owner likes, a unit only the one that the manager knows. The system's manager has all below it, and
answers `user@UID.service` for whatever is in that user's tree. No other manager is asked: it would
be another user's, who answers what he likes, or one that does not listen to us. There the part of
the path that root made says which user it is, and that is all that can be known.

Example: `…/user@1501.service/app.slice/evil.service/llm-engine-x.service` is evil.service to the
manager of 1501, and so to his queue; to all others it is something of user 1501's.

Where the manager names a unit and the path another, neither counts: the process moved between the
two, or its user made the manager misread. (To systemd 252 in the hybrid layout a carriage return in
the name of a directory begins a line, which its user can write as if it were the kernel's.)

What can't be told is foreign and without a unit, and says so: it is never free, and never yields.
"""

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

from sdqueue import cgroup
from sdqueue.bus.systemd import Systemd
from sdqueue.cgroup import Branch, Layout, Place
from sdqueue.core.owner import Standing
from sdqueue.pidfd import has_ended
from sdqueue.words.errors import BusError
from sdqueue.words.unitname import ROOT_SLICE

NO_ANSWER = "its unit can't be told: the service manager does not answer"
NO_PATH = "whose it is can't be told: its control group can't be read"
NOT_ONE_ANSWER = "its unit can't be told: the service manager and its control group differ"
NO_UNIT = "in a control group that is no unit's"
OUTSIDE = "in a control group outside of this container"
ENDED = frozenset({"", "inactive", "failed"})

_EFFECTIVE_UID = re.compile(r"^Uid:\s+\d+\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asker:
    """The queue that asks.

    `systemd` is the connection to its own manager, None while there is none; `system` says that it
    is PID 1. `ours` are the units of jobs, `yielding` the globs of the lane.
    """

    systemd: Systemd | None
    system: bool
    ours: Collection[str] = ()
    yielding: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Belonging:
    """How somebody stands to the queue, his unit by his manager's word, whose that is, and a note.

    The note is for people, and the same as long as the process is where it is.
    """

    standing: Standing
    unit: str = ""
    uid: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is to be read of a process: its path, what that means to the system, who it runs as."""

    path: str
    at: Place
    runs_as: int | None


async def whose(asker: Asker, pid: int, pidfd: int) -> Belonging | None:
    """Say whose the process is that a descriptor stands for; None where it has ended."""
    seen = _look(pid)
    if has_ended(pidfd):
        return None
    if seen is None:
        return Belonging(Standing.FOREIGN, note=NO_PATH)
    try:
        found = await _judged(asker, seen, pid, pidfd)
    except BusError:
        found = _unanswered(seen)
    return None if has_ended(pidfd) else found


async def _judged(asker: Asker, seen: _Seen, pid: int, pidfd: int) -> Belonging:
    """Ask our manager of what is its own; raise BusError where it does not answer."""
    if asker.systemd is None:
        return _unanswered(seen)
    root = await asker.systemd.control_group()
    if not cgroup.is_below(seen.path, root):
        return _belonging(seen.at, _system_uid(seen, seen.at))
    unit = await asker.systemd.unit_of_pid(pidfd, pid) or ""
    unit = "" if unit == ROOT_SLICE else unit  # older versions say that of what is nowhere
    if _is_unit(unit) and cgroup.place(seen.path, root).trusted.unit not in ("", unit):
        return Belonging(Standing.FOREIGN, uid=_system_uid(seen, seen.at), note=NOT_ONE_ANSWER)
    at, uid = _answered(asker, seen, unit, root)
    if unit in asker.ours:
        return _belonging(at, uid, Standing.OURS)
    if await _gives_way(asker, asker.systemd, at):
        return _belonging(at, uid, Standing.YIELDING)
    return _belonging(at, uid)


def _answered(asker: Asker, seen: _Seen, unit: str, root: str) -> tuple[Place, int | None]:
    """Return where a process is by our manager's answer, and whose that is.

    What is below a user's manager is that user's, whoever it runs as. One that has the root of all
    control groups has others' below it too, in no unit.
    """
    if asker.system:
        at = replace(seen.at, trusted=replace(seen.at.trusted, unit=unit))
        return at, _system_uid(seen, at)
    at = Place(Branch((), unit))
    return at, os.geteuid() if _is_unit(unit) or root.strip("/") else seen.runs_as


def _system_uid(seen: _Seen, at: Place) -> int | None:
    """Tell whose it is by the part that root made; of what is the system's, who it runs as."""
    return seen.runs_as if at.uid is None else at.uid


async def _gives_way(asker: Asker, systemd: Systemd, at: Place) -> bool:
    """Say whether a process is in a unit that the lane's globs name, and that is active.

    A slice is no engine, and neither is all that a user has.
    """
    unit = at.trusted.unit
    if not _is_unit(unit) or at.manager or at.session:
        return False
    if not any(fnmatchcase(unit, glob) for glob in asker.yielding):
        return False
    return await systemd.active_state(unit) not in ENDED


def _belonging(at: Place, uid: int | None, standing: Standing | None = None) -> Belonging:
    standing = standing or _standing(at, uid)
    notes = [_name(at), _word(at)]
    if standing is Standing.UNTOUCHABLE:
        notes.append(f"of uid {uid}, whom this user can't stop")
    return Belonging(standing, at.trusted.unit, uid, "; ".join(filter(None, notes)))


def _standing(at: Place, uid: int | None) -> Standing:
    if at.trusted.container or at.trusted.machine or os.geteuid() == 0:
        return Standing.FOREIGN
    return Standing.FOREIGN if uid in (None, os.geteuid()) else Standing.UNTOUCHABLE


def _name(at: Place) -> str:
    """Name what a process is in where the name of its unit does not."""
    if at.is_outside:
        return OUTSIDE
    if container := at.trusted.container:
        return f"container {container}"
    if machine := at.trusted.machine:
        return f"machine {machine}"
    return "" if _is_unit(at.trusted.unit) else NO_UNIT


def _word(at: Place) -> str:
    """Say what a user calls his unit, which nobody asked his manager."""
    return f"{at.claimed.unit} by its own word" if at.claimed and at.claimed.unit else ""


def _unanswered(seen: _Seen) -> Belonging:
    return Belonging(Standing.FOREIGN, uid=_system_uid(seen, seen.at), note=NO_ANSWER)


def _is_unit(name: str) -> bool:
    """Say whether it is a unit that has processes: with none, a manager names the slice above."""
    return bool(name) and not name.endswith(".slice")


# -- reading ---------------------------------------------------------------------------------------


def _look(pid: int) -> _Seen | None:
    """Read where a process is and who it runs as; None where that can't be read."""
    path = cgroup.line_of(_read(f"/proc/{pid}/cgroup"), _layout())
    if path is None:
        return None
    above = cgroup.line_of(_read("/proc/1/cgroup"), _layout()) or ""
    uid = _EFFECTIVE_UID.search(_read(f"/proc/{pid}/status"))
    at = cgroup.place(path, cgroup.root_of(above))
    return _Seen(path, at, int(uid[1]) if uid else None)


@cache
def _layout() -> Layout:
    return cgroup.layout_of(_read("/proc/self/mountinfo"))


def _read(file: str) -> str:
    """Return the text of a file, "" where it can't be read; no line is broken but at a newline."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape", newline="\n") as opened:
            return opened.read()
    except OSError:
        return ""
