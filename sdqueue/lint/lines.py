"""Lines of the new files, as rules want them: dependencies by name with their places."""

from collections.abc import Iterator

from sdqueue.lint.situation import Situation
from sdqueue.unitfile.refs import Ref, refs
from sdqueue.unitfile.unit import Setting, Unit


def named(situation: Situation, unit: Unit, *keys: str) -> Iterator[tuple[str, Ref]]:
    """Every unit that new lines of these dependency lists name: (key, reference)."""
    for key in keys:
        for found in refs(unit, key, situation.host):
            if isinstance(found, Ref) and situation.is_new_file(found.place.file):
                yield key, found


def settings(situation: Situation, unit: Unit) -> Iterator[Setting]:
    """The assignments of a unit that stand in new files."""
    return (one for one in unit.settings if situation.is_new_file(one.place.file))


def is_dropin(unit: Unit, setting: Setting) -> bool:
    """Whether an assignment stands in a drop-in of the unit."""
    return setting.place.file in unit.dropin_files
