"""Which settings exist: per section, with the kind of value and the versions that know them.

The table is what systemd says of itself (`directives_data`), for the checked versions only: of a
version between two of them that disagree nothing is claimed. Judges keys, not values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from sdqueue.unitfile.directives_data import DATA, VERSIONS
from sdqueue.words.unitname import UNIT_TYPES

SECTIONS: Mapping[str, tuple[str, ...]] = {
    unit_type: ("Unit", unit_type.capitalize(), "Install") for unit_type in UNIT_TYPES
}


class Verdict(StrEnum):
    """What systemd makes of a key where it stands."""

    KNOWN = "known"
    EXTENSION = "extension"
    UNKNOWN_SECTION = "unknown-section"
    MISPLACED = "misplaced"
    TOO_NEW = "too-new"
    GONE = "gone"
    UNKNOWN = "unknown"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Directive:
    """A key in a section; `first` and `last` are the checked versions between which it exists."""

    section: str
    key: str
    kind: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict; `sections` are where the key would belong in this type of unit."""

    verdict: Verdict
    sections: tuple[str, ...] = ()
    directive: Directive | None = None


@cache
def directives() -> Mapping[tuple[str, str], Directive]:
    """Return the whole table."""
    table: dict[tuple[str, str], Directive] = {}
    for record in DATA.replace("\n ", " ").splitlines():
        kind, sections, first, last, keys = record.split("|")
        for section in sections.split():
            for key in keys.split():
                table[section, key] = Directive(section, key, kind, int(first), int(last))
    return table


def judge(unit_type: str, section: str, key: str, version: int) -> Judgement:
    """Say what a systemd of that version makes of an assignment in a unit of that type."""
    if section.startswith("X-") or key.startswith("X-"):
        return Judgement(Verdict.EXTENSION)
    allowed = SECTIONS[unit_type]
    if section not in allowed:
        elsewhere = tuple(each for each in allowed if (each, key) in directives())
        return Judgement(Verdict.UNKNOWN_SECTION, elsewhere)
    directive = directives().get((section, key))
    if directive is None:
        elsewhere = tuple(each for each in allowed if (each, key) in directives())
        return Judgement(Verdict.MISPLACED if elsewhere else _never(version), elsewhere)
    return Judgement(_in_version(directive, version), (), directive)


def _never(version: int) -> Verdict:
    return Verdict.UNSURE if version > VERSIONS[-1] else Verdict.UNKNOWN


def _in_version(directive: Directive, version: int) -> Verdict:
    """Place a version among the checked ones; what lies between two that differ is unsure."""
    if directive.first <= version <= directive.last:
        return Verdict.KNOWN
    if version < directive.first:
        before = max((v for v in VERSIONS if v < directive.first), default=None)
        unsure = before is None or version > before
        return Verdict.UNSURE if unsure else Verdict.TOO_NEW
    after = min((v for v in VERSIONS if v > directive.last), default=None)
    return Verdict.GONE if after is not None and version >= after else Verdict.UNSURE
