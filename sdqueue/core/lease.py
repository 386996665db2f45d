"""A lease as values: who holds a lane without a job of the queue's, and the unit that is for it.

The unit is a oneshot in the lane whose process only waits for its standard input to end: the other
end is the holder's, so its start job is pending for as long as somebody has that open, and PID 1
refuses an overlap as it does for a job. Nobody has to be alive for that, not the controller either.
What is known of a lease is in its unit's Environment=: it has no file that could outlive it.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from sdqueue.core.owner import Identity, Owner, Standing
from sdqueue.core.spec import Lane
from sdqueue.core.unit import Property, command, lane_properties
from sdqueue.words import names

WHO_MAX = 128
WHY_MAX = 512
"""Longest texts, in characters."""

INFINITY_USEC = 2**64 - 1
_PREFIX = "SDQUEUE_LEASE_"
_ID = re.compile(r"[0-9a-z]{1,32}")


@dataclass(frozen=True, slots=True)
class Lease:
    """Somebody's hold on a lane.

    `id` is of lower case letters and digits. `who` and `why` are the holder's words, one line each.
    `uid`, `pid`, `started` and `comm` are the process that has it, as the bus and the kernel saw
    it; `unit` the unit that it is in. `pipe` is the inode of the pipe that it holds open. `adopted`
    is what was made the lane's occupant by somebody else, a unit or a pid; there is no pipe then,
    and it is over when that is gone. `since_sec` is when it was asked for.
    """

    id: str
    lane: str
    who: str
    why: str = ""
    uid: int = 0
    pid: int = 0
    started: int = 0
    comm: str = ""
    unit: str = ""
    pipe: int = 0
    adopted: str = ""
    since_sec: float = 0.0

    @property
    def backing_unit(self) -> str:
        return names.unit_of_lease(self.lane, self.id)

    @property
    def identity(self) -> Identity:
        return self.pid, self.started

    @property
    def owner(self) -> Owner:
        """Give the holder as a user of the lane."""
        return Owner(
            self.pid,
            comm=self.comm or self.who,
            unit=self.unit,
            note=f"lease of {self.who}",
            started=self.started,
            standing=Standing.LEASED,
            uid=self.uid,
        )

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.who}, pid {self.pid}{why}"


@dataclass(frozen=True, slots=True)
class Parked:
    """Memory on the device that the holder of a lease said it keeps when it let go."""

    lease: Lease
    memory_bytes: int


LEASE_KEYS: dict[str, str] = {
    "id": "names the lease; its object is /org/sdqueue1/lease/ID",
    "lane": "the lane",
    "who": "who has it, in the holder's words",
    "why": "what for, in the holder's words",
    "pid": "the process that has it",
    "uid": "its user",
    "comm": "its name, as the kernel has it",
    "holder_unit": "the unit it is in; empty if that is not known",
    "unit": "the unit that stands for the lease",
    "adopted": "the unit or pid that was adopted; empty for a lease that was asked for",
    "since": "unix time from which it has it",
    "waiters": "jobs, and others that asked for a lease, that wait for it to end",
}


def lease_row(lease: Lease, waiters: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Give a lease as a row of plain values."""
    return {
        "id": lease.id,
        "lane": lease.lane,
        "who": lease.who,
        "why": lease.why,
        "pid": lease.pid,
        "uid": lease.uid,
        "comm": lease.comm,
        "holder_unit": lease.unit,
        "unit": lease.backing_unit,
        "adopted": lease.adopted,
        "since": lease.since_sec,
        "waiters": [name for _, name in waiters],
    }


@dataclass(slots=True, eq=False)
class LeaseRequest:
    """A lease that is asked for; `wait`: it stands in line instead of being refused.

    `behind` are the jobs that were in the lane's line before it and may be there yet.
    """

    lease: Lease
    wait: bool
    behind: list[str] = field(default_factory=list)


# Its unit ---------------------------------------------------------------------------------------

WAIT_FOR_END = "/bin/cat"
"""Reads its standard input to the end, and writes what it reads to where it is thrown away."""

_ONLY_WAITS: tuple[Property, ...] = (
    ("NoNewPrivileges", "b", True),
    ("CapabilityBoundingSet", "t", 0),
    ("PrivateNetwork", "b", True),
    ("ProtectSystem", "s", "strict"),
)
"""What a unit of the machine's manager is not to have, since it does nothing."""


def lease_properties(
    lease: Lease, lane: Lane, *, system: bool, argv: Iterable[str] = (WAIT_FOR_END,)
) -> list[Property]:
    """Give the properties of a lease's unit, without its standard input."""
    return [
        *lane_properties(lane, system=system),
        ("Description", "s", f"[{lease.lane}] lease of {lease.who}".rstrip("\\")),
        ("SyslogIdentifier", "s", "sdqueue-lease"),
        ("CollectMode", "s", "inactive-or-failed"),
        ("StartLimitIntervalUSec", "t", 0),
        ("TimeoutStartUSec", "t", INFINITY_USEC),
        ("Environment", "as", _written(lease)),
        ("WorkingDirectory", "s", "/"),
        ("StandardOutput", "s", "null"),
        ("StandardError", "s", "journal"),
        *(_ONLY_WAITS if system else ()),
        ("ExecStart", "a(sasb)", [command(list(argv))]),
    ]


_NAMES = tuple(each.name for each in fields(Lease))
_KINDS: dict[str, Callable[[str], Any]] = {
    "uid": int,
    "pid": int,
    "started": int,
    "pipe": int,
    "since_sec": float,
}


_LARGEST = {"uid": 2**32 - 1, "pid": 2**31 - 1, "started": 2**63 - 1, "pipe": 2**63 - 1}
_LATEST_SEC = 2.0**33


def _written(lease: Lease) -> list[str]:
    return [f"{_PREFIX}{name.upper()}={getattr(lease, name)}" for name in _NAMES]


def lease_of_unit(unit: str, environment: Iterable[str]) -> Lease | None:
    """Read a lease from the Environment= of its unit; None if that is not what we wrote there."""
    told = dict(line.removeprefix(_PREFIX).split("=", 1) for line in environment if "=" in line)
    try:
        lease = Lease(**{name: _KINDS.get(name, str)(told[name.upper()]) for name in _NAMES})
    except (KeyError, ValueError):
        return None
    is_ours = _ID.fullmatch(lease.id) and not names.lane_name_fault(lease.lane)
    return lease if is_ours and lease.backing_unit == unit and _is_sound(lease) else None


def _is_sound(lease: Lease) -> bool:
    """Say whether all values are such as we write: a unit of this name can be anybody's."""
    texts = (lease.who, lease.why, lease.comm, lease.unit, lease.adopted)
    return (
        all(map(str.isprintable, texts))
        and len(lease.who) <= WHO_MAX
        and len(lease.why) <= WHY_MAX
        and all(0 <= getattr(lease, name) <= largest for name, largest in _LARGEST.items())
        and 0.0 <= lease.since_sec <= _LATEST_SEC
    )
