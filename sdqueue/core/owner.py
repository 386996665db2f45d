"""Who uses what a lane is for, as a value: which process, in whose unit, and how much it matters.

`Standing` says how somebody stands to the queue, `Use` what he does with the device. An open
descriptor is not use: a desktop, a monitor and a sleeping engine hold one and are in nobody's way.
"""

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """How a user of a lane stands to the queue, in the order of precedence."""

    OURS = "ours"
    LEASED = "leased"
    YIELDING = "yielding"
    FOREIGN = "foreign"
    UNTOUCHABLE = "untouchable"


STANDING_HELP: dict[Standing, str] = {
    Standing.OURS: "a process in the unit of a job",
    Standing.LEASED: "the holder of a lease on the lane: it is told when somebody waits",
    Standing.YIELDING: "a unit that the lane's `yielding` names: it is told, and never stopped",
    Standing.FOREIGN: "anybody else: the queue waits and says who it is",
    Standing.UNTOUCHABLE: "somebody of another user, whom this user can do nothing about",
}


class Use(StrEnum):
    """What somebody does with a device that he has open."""

    ACTIVE = "active"
    RESIDENT = "resident"
    HOLDER = "holder"
    UNKNOWN = "unknown"


USE_HELP: dict[Use, str] = {
    Use.ACTIVE: "its engine time moves",
    Use.RESIDENT: "it has memory on the device, which is taken even while it is idle",
    Use.HOLDER: "it only has the device open, and keeps nobody from starting",
    Use.UNKNOWN: "that could not be read, so the lane is not free",
}

Identity = tuple[int, int]
"""A pid and when its process started, in clock ticks since boot."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who uses what a lane is for.

    `started` tells two processes of one pid apart; a pid of 0 is nobody in particular. `comm` is
    the kernel's name of the process, `unit` the unit that its manager says it is in, empty where it
    is in none; `uid` whose that is, None where that is not known. `seen` is what each detector saw,
    in words. `note` is for people, and stays the same as long as the owner does.
    """

    pid: int
    ppid: int = 0
    comm: str = ""
    unit: str = ""
    note: str = ""
    started: int = 0
    standing: Standing = Standing.FOREIGN
    use: Use = Use.ACTIVE
    uid: int | None = None
    memory_bytes: int = 0
    seen: tuple[str, ...] = ()

    @property
    def identity(self) -> Identity:
        return self.pid, self.started

    @property
    def counts(self) -> bool:
        """Say whether a job has to wait for it."""
        return self.use is not Use.HOLDER and self.standing is not Standing.OURS
