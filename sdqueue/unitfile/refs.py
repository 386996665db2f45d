"""The unit names that a dependency list means: split, expanded, templates filled in.

Knows how systemd reads such lists, not what any of them does. Trouble is a Problem, the other
names of the same line count.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sdqueue.unitfile.specifier import Host, expand, repeats_instance
from sdqueue.unitfile.split import words
from sdqueue.unitfile.unit import Place, Setting, Unit
from sdqueue.words import unitname
from sdqueue.words.problem import Problem

FragmentOf = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Ref:
    """A unit that is named in a list, and where."""

    name: str
    place: Place


def fill_template(unit: str, name: str) -> str:
    """Return a template filled with the unit's instance, else with its prefix; others as they are.

    ValueError where that makes no valid name. Re-enacts resolve_template(), src/core/unit.c, v252.
    """
    if not unitname.is_template(name):
        return name
    return unitname.with_instance(name, unitname.instance_of(unit) or unitname.prefix_of(unit))


def refs(
    unit: Unit,
    key: str,
    host: Host,
    *,
    section: str = "Unit",
    fragment_of: FragmentOf | None = None,
) -> Iterator[Ref | Problem]:
    """Yield what the dependency list `key` names, in order, and what is wrong in it.

    `fragment_of` gives the fragment file of a name; with it, dependencies that would go on without
    end are left out. Re-enacts config_parse_unit_deps(), src/core/load-fragment.c, v252.
    """
    for setting in unit.all(section, key):
        for word in words(setting.value):
            yield from _one(unit, setting, word, host, fragment_of)


def _one(
    unit: Unit, setting: Setting, word: str, host: Host, fragment_of: FragmentOf | None
) -> Iterator[Ref | Problem]:
    place = setting.place
    try:
        name = fill_template(unit.name, expand(word, unit.name, host))
    except ValueError as error:
        yield Problem(place.file, place.line, f"{setting.key}={word}: {error}, ignored", "warning")
        return
    if not unitname.is_valid(name):
        what = f"{setting.key}={word}: not a valid unit name, ignored"
        yield Problem(place.file, place.line, what, "warning")
    elif not _without_end(unit, name, word, fragment_of):
        yield Ref(name, place)


def _without_end(unit: Unit, name: str, word: str, fragment_of: FragmentOf | None) -> bool:
    """Say whether a template would pull in ever more instances of itself.

    Re-enacts unit_is_likely_recursive_template_dependency(), src/core/load-fragment.c, v252.
    """
    return (
        fragment_of is not None
        and unitname.is_instance(name)
        and unitname.prefix_of(name) == unitname.prefix_of(unit.name)
        and unitname.type_of(name) == unit.type
        and repeats_instance(word)
        and fragment_of(name) == unit.fragment_file
    )
