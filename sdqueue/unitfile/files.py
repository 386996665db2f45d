"""What the loader asks of a file system, and which answers there are.

Names only; `sdqueue.unitpath` looks. Paths are absolute, as seen by the person who asks (with the
root in front), so that every place can be clicked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sdqueue.unitfile.unit import Place
from sdqueue.words.problem import Problem


class Kind(StrEnum):
    """What stands at a name."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"
    MASK = "mask"
    MISSING = "missing"
    LOOP = "loop"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory; `kind` is that of the entry itself, a link being a link.

    `path` is where the entry stands in the search path, `file` what is opened and shown: the same,
    but for a file that is only imagined to stand there. `text` is what a link says, `target` where
    that leads, absolute, with only the directories on the way followed. `install` is the [Install]
    line that would make this link.
    """

    name: str
    kind: Kind
    path: str
    file: str
    text: str = ""
    target: str = ""
    install: Place | None = None


class Files(Protocol):
    """A search path that can be looked into."""

    @property
    def search_path(self) -> tuple[str, ...]:
        """The unit directories, highest priority first."""

    def distinct_search_path(self) -> tuple[str, ...]:
        """Return the unit directories, of those that are really one only the first."""

    def real_search_path(self) -> tuple[str, ...]:
        """Return the unit directories as named and as they are with all links followed."""

    def listing(self, directory: str) -> Mapping[str, Entry]:
        """Return the entries of `directory` by name; nothing where there is no such directory."""

    def status(self, entry: Entry) -> Kind:
        """Return what is at the end of all links; `mask` for a device or an empty file.

        `missing` where there is nothing, `loop` where the links have no end.
        """

    def read(self, entry: Entry) -> bytes | Problem:
        """Return what is in a regular file, links followed, or why it can't be read."""
