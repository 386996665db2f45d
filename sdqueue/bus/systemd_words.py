"""What systemd's manager says, as values: its signals, its listings, and the names of its errors.

Knows the vocabulary of org.freedesktop.systemd1, no connection. The table of refusals is what a
caller decides by; the text of an error is for people.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sdqueue.bus.labels import unescape_label
from sdqueue.words.errors import RemoteError

NAME = "org.freedesktop.systemd1"
PATH = "/org/freedesktop/systemd1"
MANAGER = f"{NAME}.Manager"
UNIT = f"{NAME}.Unit"
SERVICE = f"{NAME}.Service"
UNIT_PATHS = f"{PATH}/unit"

Reaction = Literal["occupied", "exists", "missing", "invalid", "forbidden", "later"]

REFUSALS: Mapping[str, Reaction] = {
    # Something runs that this start would stop (job mode "fail"): wait for the blocker's end.
    f"{NAME}.TransactionIsDestructive": "occupied",
    # The slice has its number of units (ConcurrencyHardMax=): wait for one of them to end.
    f"{NAME}.ConcurrencyLimitReached": "occupied",
    # The name is taken by a unit that is loaded, or has a fragment: look what it is.
    f"{NAME}.UnitExists": "exists",
    # The unit, or one that it requires, is not there: the environment is not set up.
    f"{NAME}.NoSuchUnit": "missing",
    f"{NAME}.LoadFailed": "missing",
    f"{NAME}.UnitMasked": "missing",
    f"{NAME}.BadUnitSetting": "missing",
    # The transaction contradicts itself, whatever else runs: mend the unit files.
    f"{NAME}.TransactionJobsConflicting": "invalid",
    f"{NAME}.TransactionOrderIsCyclic": "invalid",
    f"{NAME}.OnlyByDependency": "invalid",
    # The request is malformed: a property that is unknown there, or a value that it won't have.
    "org.freedesktop.DBus.Error.InvalidArgs": "invalid",
    "org.freedesktop.DBus.Error.PropertyReadOnly": "invalid",
    "org.freedesktop.DBus.Error.InconsistentMessage": "invalid",
    "System.Error.EBADMSG": "invalid",
    "System.Error.E2BIG": "invalid",
    "System.Error.ENAMETOOLONG": "invalid",
    "System.Error.ENXIO": "invalid",
    "org.freedesktop.DBus.Error.AccessDenied": "forbidden",
    "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired": "forbidden",
    # The manager is going down or is not there now: look again when it is back.
    f"{NAME}.ShuttingDown": "later",
    "org.freedesktop.DBus.Error.LimitsExceeded": "later",
    "org.freedesktop.DBus.Error.NoReply": "later",
    "org.freedesktop.DBus.Error.ServiceUnknown": "later",
    "org.freedesktop.DBus.Error.NameHasNoOwner": "later",
    "org.freedesktop.DBus.Error.Disconnected": "later",
}
"""What the manager's error names ask of a caller; a name that is not here is a plain failure.

"later" after a start is an unknown outcome: list the unit before trying again.
"""


def reaction(error: RemoteError) -> Reaction | None:
    """Return what a refusal asks for, None where its name is not in the table."""
    return REFUSALS.get(error.name)


# -- what it tells ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobRemoved:
    """A unit job ended; `result` is systemd's word: done, canceled, timeout, failed, dependency…"""

    job_id: int
    unit: str
    result: str


@dataclass(frozen=True, slots=True)
class UnitNew:
    """A unit is loaded."""

    unit: str


@dataclass(frozen=True, slots=True)
class UnitRemoved:
    """A unit is no longer loaded; its name is free again."""

    unit: str


class UnitChanged:
    """Properties of a unit's Unit or Service interface have new values.

    The manager tells all properties of the interface that can change, so the last one says what the
    earlier ones said. Reading them is the costly part, and is done where somebody looks.
    """

    __slots__ = ("_properties", "_read", "interface", "unit")

    def __init__(self, unit: str, interface: str, read: Callable[[], Mapping[str, object]]) -> None:
        self.unit = unit
        self.interface = interface
        self._read = read
        self._properties: Mapping[str, object] | None = None

    @property
    def properties(self) -> Mapping[str, object]:
        """The new values; ValueError where they can't be unmarshalled."""
        if self._properties is None:
            self._properties = self._read()
        return self._properties


@dataclass(frozen=True, slots=True)
class Reloading:
    """The manager begins (True) or has ended (False) a daemon-reload or daemon-reexec."""

    active: bool


@dataclass(frozen=True, slots=True)
class ManagerGone:
    """Nobody owns the manager's name; unit jobs go on or not, we are not told."""


@dataclass(frozen=True, slots=True)
class ManagerBack:
    """The manager owns its name again: subscribe and reconcile."""


SystemdEvent = (
    JobRemoved | UnitNew | UnitRemoved | UnitChanged | Reloading | ManagerGone | ManagerBack
)


# -- what it answers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnitJob:
    """A unit job that was queued for us."""

    id: int
    path: str


@dataclass(frozen=True, slots=True)
class UnitListed:
    """One line of ListUnitsByPatterns; `job_id` is 0 where no unit job is queued."""

    name: str
    description: str
    load_state: str
    active_state: str
    sub_state: str
    following: str
    path: str
    job_id: int
    job_type: str
    job_path: str


@dataclass(frozen=True, slots=True)
class UnitJobListed:
    """One line of ListJobs; `state` is waiting or running."""

    id: int
    unit: str
    type: str
    state: str


# -- words -----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def unit_of_path(path: str) -> str:
    """Return the unit name that a unit's object path stands for."""
    return unescape_label(path.rpartition("/")[2])


def version_number(text: str) -> int:
    """Return the major version in what systemd says of itself, 0 where there is none.

    Development versions and distributions add to it: "252.39-1~deb12u1", "v257~rc1", "262".
    """
    digits = "".join(c if c.isdecimal() else " " for c in text).split()
    return int(digits[0]) if digits else 0
