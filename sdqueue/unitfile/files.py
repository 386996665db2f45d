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


class EntryKind(StrEnum):
    """What a directory entry is, not following links."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory.

    `target` of a link is its text with "." and ".." taken out and the root in front, only the last
    part not followed: what decides whether it is an alias. `empty` says that the end of the chain
    is /dev/null or an empty file, a mask. `broken` says that there is nothing at its end.
    `install` is the [Install] line that would make this link.
    """

    name: str
    kind: EntryKind
    file: str
    target: str = ""
    text: str = ""
    empty: bool = False
    broken: bool = False
    directory: bool = False
    install: Place | None = None


class Files(Protocol):
    """A search path that can be looked into."""

    @property
    def search_path(self) -> tuple[str, ...]:
        """The unit directories, highest priority first."""

    def aliases_of_directories(self) -> tuple[str, ...]:
        """Return the search path and where its directories really are."""

    def listing(self, directory: str) -> Mapping[str, Entry]:
        """Return the entries of `directory` by name; nothing where there is no such directory."""

    def read(self, file: str) -> bytes | Problem:
        """Return what is in `file`, links followed, or why it can't be read."""
