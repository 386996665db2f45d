"""Control group paths: which line of /proc/PID/cgroup counts, and what a path says.

Knows systemd's rules for the names of control groups, and neither files nor managers: the text is
a parameter. What is above and at a unit of the system was made by root, and can be believed; what
is below `user@UID.service` or `session-N.scope` was made by that user, and is no more than a word
of his. A `Place` keeps the two apart. Only the manager itself knows which of those words are true.

Nothing here raises, whatever the text: the names of control groups are anybody's.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from sdqueue.words import unitname
from sdqueue.words.unitname import NameKind

CGROUP_DIR = "/sys/fs/cgroup"
DELETED = " (deleted)"
INIT_SCOPE = "/init.scope"

_UID_INVALID = (0xFFFF, 0xFFFFFFFF)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_SESSION = re.compile(r"session-([A-Za-z0-9]+)\.scope")
_USER_SLICE = re.compile(r"user-([0-9]+)\.slice")
_USER_MANAGER = re.compile(r"user@([0-9]+)\.service")
_CAPSULE = re.compile(r"capsule@.+\.service")
_MACHINE = re.compile(r"machine-(.+)\.scope|systemd-nspawn@(.+)\.service")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# docker-, libpod-, crio-, cri-containerd-, nerdctl-…: an id of 64 digits is a container's alone.
_CONTAINER = re.compile(
    r"(?:[a-z][a-z0-9_.-]*-)?([0-9a-f]{64})(?:\.scope)?|lxc\.payload\.([A-Za-z0-9._-]+)"
)
_SHORT_ID = 12


UNIFIED_DIRS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
"""Where the tree of version 2 is mounted: in the hybrid layout, and where there is no other."""


class Layout(StrEnum):
    """How control groups are mounted, which decides where systemd keeps its own."""

    V1 = "v1"
    HYBRID = "hybrid"
    UNIFIED = "unified"


def layout_of(mountinfo: str) -> Layout:
    """Tell the layout from the text of /proc/PID/mountinfo.

    Re-enacts cg_unified_cached(), src/basic/cgroup-util.c, v252. Differs: it reads the mount table
    where systemd asks each place for its file system, and knows nothing of v232's own hybrid.
    """
    kinds = dict(filter(None, map(_mount, mountinfo.split("\n"))))
    if kinds.get(CGROUP_DIR) == "cgroup2":
        return Layout.UNIFIED
    return Layout.HYBRID if kinds.get(f"{CGROUP_DIR}/unified") == "cgroup2" else Layout.V1


def _mount(line: str) -> tuple[str, str] | None:
    """Return where something is mounted, and the type of its file system."""
    before, dash, after = line.partition(" - ")
    words, more = before.split(" "), after.split(" ")
    return (words[4], more[0]) if dash and len(words) > 4 else None


def line_of(text: str, layout: Layout) -> str | None:
    """Return the path by which systemd knows a process, from the text of its /proc/PID/cgroup.

    Re-enacts cg_pid_get_path(), src/basic/cgroup-util.c, v252. Differs: " (deleted)" stays, and a
    line ends at a newline alone, which no control group can have in its name; systemd ends it at a
    carriage return too.
    """
    for line in text.split("\n"):
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        is_named = "name=systemd" in controllers.split(",")
        if colon and (is_named if layout is Layout.V1 else number == "0"):
            return path
    return None


@dataclass(frozen=True, slots=True)
class Branch:
    """What one manager's rules make of a path: slices, a unit ("" for none), and what is below it.

    Names are those of units: the escape of the file system is gone. The payload is as it was, a
    relative path; where there is no unit it is all that the slices leave.
    """

    slices: tuple[str, ...] = ()
    unit: str = ""
    payload: str = ""

    @property
    def container(self) -> str:
        """The short id or name of the container whose control group this is, "" for none.

        It is named by the scope, or by the directory of a runtime that does without systemd.
        """
        names = [self.unit] if self.unit else self.payload.split("/")
        found = next(filter(None, map(_CONTAINER.fullmatch, names)), None)
        return (found[1] or found[2])[: _SHORT_ID if found[1] else None] if found else ""

    @property
    def machine(self) -> str:
        """The name of the machine whose unit this is, "" where it is none's.

        Differs from cg_path_get_machine_name(), src/basic/cgroup-util.c, v252, which looks into
        /run: it is read from the names that machined and nspawn give, where it can be a host's.
        """
        found = _MACHINE.fullmatch(self.unit)
        try:
            name = unitname.unescape(found[1] or found[2]) if found else ""
        except ValueError:
            return ""
        return name if _HOST.fullmatch(name) else ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process is. `trusted` is root's word; `claimed` what is below, a user's own.

    `claimed` is None outside of user managers and sessions. Of a path from outside of our cgroup
    namespace nothing is known but that.
    """

    trusted: Branch = Branch()
    claimed: Branch | None = None
    is_outside: bool = False
    is_deleted: bool = False

    @property
    def manager(self) -> str:
        """The unit whose manager this is below (user@UID.service), "" for the system's."""
        unit = self.trusted.unit
        return unit if _manages(unit) else ""

    @property
    def uid(self) -> int | None:
        """The user whose manager, session or slice this is; None where it is the system's.

        Re-enacts cg_path_get_owner_uid(), src/basic/cgroup-util.c, v252. Differs: the manager's
        own name goes before the slice that it is in.
        """
        if found := _USER_MANAGER.fullmatch(self.manager):
            return _uid(found[1])
        found = _USER_SLICE.fullmatch(self.trusted.slices[-1]) if self.trusted.slices else None
        return _uid(found[1]) if found else None

    @property
    def session(self) -> str:
        """The id of the session whose scope this is, "" for none.

        Re-enacts cg_path_get_session(), src/basic/cgroup-util.c, v252.
        """
        found = _SESSION.fullmatch(self.trusted.unit)
        return found[1] if found else ""


def place(path: str, root: str = "") -> Place:
    """Say what a path means to the manager whose own control group is `root`: the system's, mostly.

    Re-enacts cg_path_get_unit_full() and cg_path_get_user_unit_full(), src/basic/cgroup-util.c,
    v262, which differ from v252 in capsule@.service. Differs: a path with ".." anywhere is outside.
    """
    if is_outside(path):
        return Place(is_outside=True)
    alive = path.removesuffix(DELETED)
    trusted = branch(shifted(alive, root))
    is_user = _manages(trusted.unit) or _SESSION.fullmatch(trusted.unit)
    claimed = branch(trusted.payload) if is_user else None
    return Place(trusted, claimed, is_deleted=alive != path)


def branch(path: str) -> Branch:
    """Take a path apart as a manager does that finds its own units in it.

    Re-enacts cg_path_get_unit_full() and skip_slices(), src/basic/cgroup-util.c, v262.
    """
    parts = _parts(path)
    slices = tuple(map(unescape, takewhile(_is_slice, parts)))
    rest = parts[len(slices) :]
    unit = _unit(rest[0]) if rest else ""
    return Branch(slices, unit, "/".join(rest[1:] if unit else rest))


def unescape(name: str) -> str:
    """Take the escape off the name of a control group; what is `\\x2d` in it is the unit's own.

    Re-enacts cg_unescape(), src/basic/cgroup-util.c, v252.
    """
    return name.removeprefix("_")


def is_outside(path: str) -> bool:
    """Say whether a path leads out of our cgroup namespace."""
    return ".." in path.split("/")


def is_below(path: str, root: str) -> bool:
    """Say whether a path is that of a control group or of one below it; all are below ""."""
    parts, above = _parts(path), _parts(root)
    return not is_outside(path) and parts[: len(above)] == above


def shifted(path: str, root: str) -> str:
    """Return a path as it is seen from `root`; as it was, where it is not below.

    Re-enacts cg_shift_path(), src/basic/cgroup-util.c, v252.
    """
    return "/" + "/".join(_parts(path)[len(_parts(root)) :]) if is_below(path, root) else path


def root_of(path: str) -> str:
    """Return the root of the tree of the manager that is itself at `path`.

    Re-enacts cg_get_root_path(), src/basic/cgroup-util.c, v262.
    """
    return path.removesuffix(INIT_SCOPE)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _is_slice(part: str) -> bool:
    """Say whether a directory is a slice's.

    Re-enacts valid_slice_name(), src/basic/cgroup-util.c, v252.
    """
    return part.endswith(".slice") and unitname.kind_of(unescape(part)) is NameKind.PLAIN


def _unit(part: str) -> str:
    """Return the unit that a directory is named after, "" for none; a slice is none here.

    Re-enacts cg_path_decode_unit(), src/basic/cgroup-util.c, v252.
    """
    name = unescape(part)
    is_unit = unitname.kind_of(name) in (NameKind.PLAIN, NameKind.INSTANCE)
    return name if is_unit and not name.endswith(".slice") else ""


def _manages(unit: str) -> bool:
    """Say whether a unit is a manager of a user's (or of a capsule).

    Re-enacts skip_user_manager(), src/basic/cgroup-util.c, v262. Differs: an escape is off already,
    and the name of a capsule is not judged.
    """
    found = _USER_MANAGER.fullmatch(unit)
    return _uid(found[1]) is not None if found else bool(_CAPSULE.fullmatch(unit))


def _uid(digits: str) -> int | None:
    """Return the user id that digits mean, None for none.

    Re-enacts parse_uid(), src/basic/user-util.c, v252.
    """
    if not _NUMBER.fullmatch(digits):
        return None
    uid = int(digits)
    return uid if uid < _UID_INVALID[1] and uid != _UID_INVALID[0] else None
