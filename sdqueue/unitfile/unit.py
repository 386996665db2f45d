"""What one loaded unit is: values only.

A unit holds every assignment of its fragment and its drop-ins, in the order in which systemd
reads them, each with its place. Nothing here knows which keys exist or what they do. There are many
thousand places and settings in a tree: those are tuples, the cheapest values that have names.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from sdqueue.unitfile.split import boolean, strv, words
from sdqueue.words.problem import Problem

LinkKind = Literal["wants", "requires", "upholds"]


class LoadState(StrEnum):
    """The load states of systemd, in its words.

    `error`: a file can't be read to its end, `bad-setting`: systemd refuses what it says. What was
    read before the fault counts all the same.
    """

    LOADED = "loaded"
    NOT_FOUND = "not-found"
    MASKED = "masked"
    ERROR = "error"
    BAD_SETTING = "bad-setting"


class Place(NamedTuple):
    """A line of a file; `line` is 1-based, 0 where the whole file is meant."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Setting(NamedTuple):
    """One assignment: continuation lines joined, both ends trimmed, not yet split or expanded."""

    section: str
    key: str
    value: str
    place: Place


class Comment(NamedTuple):
    """A comment line, from its "#" or ";" on."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Link:
    """One entry of a `.wants/`, `.requires/` or `.upholds/` directory of a unit.

    `other` is the unit that the entry names, `masked` whether the entry takes that edge away
    (a link to /dev/null). `install` is the [Install] line that makes the link, where it is not
    there yet but would be made by `systemctl enable`.
    """

    kind: LinkKind
    other: str
    file: str
    masked: bool = False
    install: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One unit as loaded; two names of one unit give the same object.

    `name` is the id, `names` all names with the id among them. `settings` holds the fragment's
    assignments, then those of `dropin_files` in that order. `fragment_file` is None where there is
    no file (not found, or a unit that needs none, such as a slice). `extras` says that systemd came
    to the point where it adds default and implicit dependencies: true for every loaded unit, and
    for one that it refused only afterwards (`bad-setting`, found when all files were read).
    """

    name: str
    names: frozenset[str]
    type: str
    load_state: LoadState
    fragment_file: str | None = None
    dropin_files: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    links: tuple[Link, ...] = ()
    comments: tuple[Comment, ...] = ()
    problems: tuple[Problem, ...] = ()
    extras: bool = False
    _index: dict[tuple[str, str], list[Setting]] = field(
        init=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        for setting in self.settings:
            self._index.setdefault((setting.section, setting.key), []).append(setting)

    @property
    def loaded(self) -> bool:
        """Whether the load state is `loaded`."""
        return self.load_state is LoadState.LOADED

    def all(self, section: str, key: str) -> tuple[Setting, ...]:
        """Return every assignment of `key`, in order; empty ones too."""
        return tuple(self._index.get((section, key), ()))

    def last(self, section: str, key: str) -> Setting | None:
        """Return the last assignment of `key`, the one that counts for a scalar."""
        found = self._index.get((section, key))
        return found[-1] if found else None

    def value(self, section: str, key: str, default: str = "") -> str:
        """Return the last value of `key`, or `default` where it is not set or set to nothing."""
        found = self._index.get((section, key))
        return (found[-1].value if found else "") or default

    def flag(self, section: str, key: str, *, default: bool) -> bool:
        """Return the last value of `key` that is a boolean; an empty or bad one changes nothing."""
        result = default
        for setting in self._index.get((section, key), ()):
            parsed = boolean(setting.value)
            result = result if parsed is None else parsed
        return result

    def strv(self, section: str, key: str) -> Iterator[tuple[str, Place]]:
        """Yield the items of a list that an empty assignment resets, quotes removed."""
        items: list[tuple[str, Place]] = []
        for setting in self._index.get((section, key), ()):
            if not setting.value:
                items.clear()
            items.extend((word, setting.place) for word in strv(setting.value))
        yield from items

    def words(self, section: str, key: str) -> Iterator[tuple[str, Place]]:
        """Yield the items of a dependency list: no quotes, no reset, specifiers not expanded."""
        for setting in self._index.get((section, key), ()):
            for word in words(setting.value):
                yield word, setting.place
