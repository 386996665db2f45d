"""How the values of settings are read where they decide about dependencies.

Each function looks at one unit and returns values with their setting, for the place. What systemd
ignores (a bad path, an unknown word) is passed over here too; saying so is the parser's part.
"""

from collections.abc import Iterator

from sdqueue.boot.graph import Origin
from sdqueue.unitfile.specifier import FULL_SPECIFIERS, NAME_SPECIFIERS, Host, expand
from sdqueue.unitfile.split import boolean, strv
from sdqueue.unitfile.unit import Setting, Unit
from sdqueue.words import unitname


def expand_name(unit: str, text: str, host: Host) -> str | None:
    """Expand the specifiers of a name in a dependency list; None where that can't be done."""
    if "%" not in text:
        return text
    try:
        return expand(text, unit, host, table=NAME_SPECIFIERS)
    except ValueError:
        return None


def expand_text(unit: Unit, text: str, host: Host) -> str | None:
    """Expand the specifiers of a path or text; None where that can't be done."""
    if "%" not in text:
        return text
    try:
        return expand(
            text,
            unit.name,
            host,
            table=FULL_SPECIFIERS,
            fragment_file=unit.fragment_file,
            max_length=unitname.PATH_MAX,
        )
    except ValueError:
        return None


def absolute(unit: Unit, text: str, host: Host) -> str | None:
    """Return a path as systemd keeps it, None where it isn't absolute and normalized.

    Re-enacts path_simplify_and_warn() with PATH_CHECK_ABSOLUTE, src/shared/parse-helpers.c, v252.
    """
    path = expand_text(unit, text, host)
    if not path or not path.startswith("/"):
        return None
    path = unitname.simplify_path(path)
    return path if unitname.path_is_normalized(path) else None


def last_path(unit: Unit, section: str, key: str, host: Host) -> tuple[str, Setting] | None:
    """Return the path that counts; nothing resets it, a bad path changes nothing."""
    found = None
    for setting in unit.all(section, key):
        if not setting.value:
            found = None
        elif path := absolute(unit, setting.value, host):
            found = (path, setting)
    return found


def last_word(unit: Unit, section: str, key: str, words: frozenset[str]) -> str:
    """Return the last value that is one of `words`, "" where none is."""
    return next((s.value for s in reversed(unit.all(section, key)) if s.value in words), "")


def last_text(unit: Unit, section: str, key: str, host: Host) -> str:
    """Return the last value, specifiers expanded; one that can't be expanded changes nothing."""
    found = ""
    for setting in unit.all(section, key):
        text = expand_text(unit, setting.value, host)
        found = found if text is None else text
    return found


def listed(unit: Unit, section: str, keys: tuple[str, ...]) -> list[Setting]:
    """Return the assignments to these keys, which fill one list that an empty one empties."""
    if len(keys) == 1:
        settings: tuple[Setting, ...] = unit.all(section, keys[0])
    elif not any(unit.all(section, key) for key in keys):
        return []
    else:
        settings = tuple(s for s in unit.settings if s.section == section and s.key in keys)
    found: list[Setting] = []
    for setting in settings:
        if setting.value:
            found.append(setting)
        else:
            found.clear()
    return found


def flag(setting: Setting | None, *, default: bool) -> bool:
    """Return the boolean of one setting."""
    parsed = boolean(setting.value) if setting else None
    return default if parsed is None else parsed


def tuples(settings: list[Setting]) -> Iterator[tuple[str, Setting]]:
    """Yield the words of list settings, quotes removed."""
    for setting in settings:
        for word in strv(setting.value):
            yield word, setting


def implicit(setting: Setting | None, note: str) -> Origin:
    """Return the origin of a dependency that a setting, or the lack of one, brings."""
    if setting is None:
        return Origin("implicit", note=note, word="file")
    return Origin("implicit", setting.place.file, setting.place.line, note, "file")
