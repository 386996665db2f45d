"""Settings at which systemd stops reading a file: the unit is refused at once, `bad-setting`.

What is found only when all files were read is in `refusal`. Re-enacts those callbacks of
src/core/load-fragment.c that return ENOEXEC, v252.
"""

from collections.abc import Mapping

from sdqueue.unitfile.command import BadCommand, commands
from sdqueue.unitfile.specifier import FULL_SPECIFIERS, Host, expand
from sdqueue.unitfile.unit import Setting
from sdqueue.words import unitname
from sdqueue.words.problem import Problem

EXEC_SECTIONS = frozenset(("Service", "Socket", "Mount", "Swap"))
EXEC_KEYS: Mapping[str, tuple[str, ...]] = {
    "Service": (
        "ExecCondition",
        "ExecStartPre",
        "ExecStart",
        "ExecStartPost",
        "ExecReload",
        "ExecStop",
        "ExecStopPost",
    ),
    "Socket": ("ExecStartPre", "ExecStartPost", "ExecStopPre", "ExecStopPost"),
}
PATH_KEYS = frozenset(("RootDirectory", "RootImage", "RootVerity", "WorkingDirectory"))
USER_KEYS = frozenset(("User", "Group"))
FATAL_KEYS = PATH_KEYS | USER_KEYS | {key for keys in EXEC_KEYS.values() for key in keys}


def fatal(setting: Setting, unit: str, host: Host, fragment_file: str | None, version: int) -> str:
    """Return why systemd reads no further after this setting, "" where it does."""
    section, key, value = setting.section, setting.key, setting.value
    if section not in EXEC_SECTIONS or not value:
        return ""
    if key in EXEC_KEYS.get(section, ()):
        try:
            for _ in commands(value, unit, host, fragment_file, version):
                pass
        except BadCommand as error:
            return str(error)
        return ""
    if key in PATH_KEYS:
        return _bad_path(key, value, unit, host, fragment_file)
    return _bad_user(value, unit, host, fragment_file) if key in USER_KEYS else ""


def until_fatal(
    settings: tuple[Setting, ...],
    unit: str,
    host: Host,
    fragment_file: str | None,
    version: int,
) -> tuple[tuple[Setting, ...], Problem | None]:
    """Return the settings of one file up to a fatal one, and what is wrong with that."""
    for at, setting in enumerate(settings):
        if setting.key not in FATAL_KEYS:
            continue
        why = fatal(setting, unit, host, fragment_file, version)
        if why:
            place = setting.place
            return settings[:at], Problem(place.file, place.line, f"{setting.key}=: {why}")
    return settings, None


def _bad_path(key: str, value: str, unit: str, host: Host, file: str | None) -> str:
    if key == "WorkingDirectory" and (value == "~" or value.startswith("-")):
        return ""
    try:
        path = expand(value, unit, host, table=FULL_SPECIFIERS, fragment_file=file, max_length=4095)
    except ValueError as error:
        return str(error)
    if not path.startswith("/"):
        return f"not an absolute path: {path}"
    normalized = unitname.path_is_normalized(unitname.simplify_path(path))
    return "" if normalized else f"not a normalized path: {path}"


def _bad_user(value: str, unit: str, host: Host, file: str | None) -> str:
    """Re-enacts valid_user_group_name() in its relaxed form, src/basic/user-util.c, v252."""
    try:
        name = expand(value, unit, host, table=FULL_SPECIFIERS, fragment_file=file)
    except ValueError as error:
        return str(error)
    if name.isascii() and name.isdigit():
        number = int(name)
        plain = name == "0" or not name.startswith("0")
        return "" if plain and number < 0xFFFFFFFF and number != 0xFFFF else f"no user id: {name}"
    bad = (
        name != name.strip(" ")
        or any(ord(char) < 32 or ord(char) == 127 or char in ":/" for char in name)
        or name in ("", ".", "..")
        or (name[:1] == "-" and (name[1:].isdigit() or not name[1:]))
    )
    return f"not a name of a user or group: {name!r}" if bad else ""
