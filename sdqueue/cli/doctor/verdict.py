"""What a check says, and what it may look at."""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from sdqueue.cli.place import Place
from sdqueue.cli.settling import call

OK, NOTE, PROBLEM = "ok", "note", "problem"


class Verdict(NamedTuple):
    """One sentence, how bad it is, and the command that mends it ("" where there is nothing to)."""

    level: str
    text: str
    mend: str = ""


class Patient:
    """The queue that is looked at, and its manager; each question is asked once."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.system = place.system
        self.side = place.manager_option

    @property
    def sdqueue(self) -> str:
        """The command with the option that means this queue."""
        return f"sdqueue {self.side}"

    @property
    def systemctl(self) -> str:
        """The command with the option that means this manager."""
        return f"systemctl {self.side}"

    def show(self, *words: str) -> dict[str, str]:
        """Return the properties that `systemctl show` prints; nothing where it can't."""
        done = call(["systemctl", self.side, "show", *words])
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    @cached_property
    def manager(self) -> dict[str, str]:
        """The manager's own properties."""
        return self.show("--property=Version,UnitPath,Environment")

    @property
    def version(self) -> int:
        """The manager's version, 0 where it does not answer."""
        found = re.match(r"\d+", self.manager.get("Version", ""))
        return int(found[0]) if found else 0

    @property
    def unit_dirs(self) -> list[str]:
        """Where the manager looks for units, first come first."""
        return self.manager.get("UnitPath", "").split()


Check = Callable[[Patient], Iterator[Verdict]]
