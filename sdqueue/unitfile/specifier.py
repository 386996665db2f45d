"""Specifiers: `%i` and its like, with everything they can say about a machine as a parameter.

Two tables, as in systemd: the small one for unit names in dependency lists, the full one for
paths and texts. Knows nothing of where the facts about a machine come from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sdqueue.words import unitname

_POSSIBLE = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class UnknownSpecifier(ValueError):
    """A letter after "%" that means nothing here, or nothing that is known."""


@dataclass(frozen=True, slots=True)
class Host:
    """What specifiers say about the machine, the manager and its user.

    `os_release` has the keys of os-release(5). None means not known: a specifier that needs it
    can't be expanded, and its value is left out by systemd's rule for what can't be resolved.
    """

    machine_id: str | None = None
    boot_id: str | None = None
    hostname: str | None = None
    pretty_hostname: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    os_release: Mapping[str, str] = field(default_factory=dict)
    user: str = "root"
    uid: int = 0
    group: str = "root"
    gid: int = 0
    home: str = "/root"
    shell: str = "/bin/sh"
    runtime_dir: str = "/run"
    state_dir: str = "/var/lib"
    cache_dir: str = "/var/cache"
    logs_dir: str = "/var/log"
    config_dir: str = "/etc"
    tmp_dir: str = "/tmp"
    var_tmp_dir: str = "/var/tmp"


Lookup = Callable[[str, str | None, Host], str | None]


def _last_component(unit: str) -> str:
    return unitname.prefix_of(unit).rpartition("-")[2]


def _filename(unit: str) -> str:
    instance = unitname.instance_of(unit)
    return unitname.path_unescape(instance) if instance else unitname.to_path(unit)


def _os(key: str) -> Lookup:
    return lambda _unit, _fragment, host: host.os_release.get(key, "")


def _directory_of(file: str | None) -> str | None:
    return file.rpartition("/")[0] if file else None


NAME_SPECIFIERS: Mapping[str, Lookup] = {
    "i": lambda unit, _f, _h: unitname.instance_of(unit) or "",
    "j": lambda unit, _f, _h: _last_component(unit),
    "n": lambda unit, _f, _h: unit,
    "N": lambda unit, _f, _h: unitname.prefix_and_instance(unit),
    "p": lambda unit, _f, _h: unitname.prefix_of(unit),
    "a": lambda _u, _f, host: host.architecture,
    "A": _os("IMAGE_VERSION"),
    "b": lambda _u, _f, host: host.boot_id,
    "B": _os("BUILD_ID"),
    "H": lambda _u, _f, host: host.hostname,
    "l": lambda _u, _f, host: (host.hostname or "").partition(".")[0] or None,
    "q": lambda _u, _f, host: host.pretty_hostname or host.hostname,
    "m": lambda _u, _f, host: host.machine_id,
    "M": _os("IMAGE_ID"),
    "o": _os("ID"),
    "v": lambda _u, _f, host: host.kernel,
    "w": _os("VERSION_ID"),
    "W": _os("VARIANT_ID"),
    "g": lambda _u, _f, host: host.group,
    "G": lambda _u, _f, host: str(host.gid),
    "u": lambda _u, _f, host: host.user,
    "U": lambda _u, _f, host: str(host.uid),
}
FULL_SPECIFIERS: Mapping[str, Lookup] = {
    **NAME_SPECIFIERS,
    "I": lambda unit, _f, _h: unitname.unescape(unitname.instance_of(unit) or ""),
    "J": lambda unit, _f, _h: unitname.unescape(_last_component(unit)),
    "P": lambda unit, _f, _h: unitname.unescape(unitname.prefix_of(unit)),
    "f": lambda unit, _f, _h: _filename(unit),
    "y": lambda _u, fragment, _h: fragment,
    "Y": lambda _u, fragment, _h: _directory_of(fragment),
    "C": lambda _u, _f, host: host.cache_dir,
    "d": lambda unit, _f, host: f"{host.runtime_dir}/credentials/{unit}",
    "D": lambda _u, _f, host: "/usr/share" if host.uid == 0 else f"{host.home}/.local/share",
    "E": lambda _u, _f, host: host.config_dir,
    "L": lambda _u, _f, host: host.logs_dir,
    "S": lambda _u, _f, host: host.state_dir,
    "t": lambda _u, _f, host: host.runtime_dir,
    "h": lambda _u, _f, host: host.home,
    "s": lambda _u, _f, host: host.shell,
    "T": lambda _u, _f, host: host.tmp_dir,
    "V": lambda _u, _f, host: host.var_tmp_dir,
}


def expand(
    text: str,
    unit: str,
    host: Host,
    *,
    table: Mapping[str, Lookup] = NAME_SPECIFIERS,
    fragment_file: str | None = None,
    max_length: int = unitname.NAME_MAX + 1,
) -> str:
    """Return `text` with its specifiers replaced; UnknownSpecifier or ValueError where it can't be.

    Re-enacts specifier_printf(), src/shared/specifier.c, v252: "%" before what can be no specifier
    stays, as does one at the end.
    """
    if "%" not in text:
        return text
    rest = iter(text)
    made = "".join(
        _one(next(rest, ""), unit, host, table, fragment_file) if char == "%" else char
        for char in rest
    )
    if len(made) > max_length:
        raise ValueError(f"{text}: too long when expanded")
    return made


def _one(
    letter: str, unit: str, host: Host, table: Mapping[str, Lookup], fragment_file: str | None
) -> str:
    if letter in ("%", ""):
        return "%"
    if letter not in table:
        if letter in _POSSIBLE:
            raise UnknownSpecifier(f"%{letter} means nothing here")
        return f"%{letter}"
    value = table[letter](unit, fragment_file, host)
    if value is None:
        raise UnknownSpecifier(f"what %{letter} stands for is not known")
    return value


def repeats_instance(word: str) -> bool:
    """Say whether a template's instance holds the unit's and more (`x@%i-more.service`).

    Re-enacts contains_instance_specifier_superset(), src/core/load-fragment.c, v252.
    """
    _, at, after = word.partition("@")
    inner = after.rpartition(".")[0] if "." in after else after
    if not at or inner == "%i":
        return False
    return any(pair[0] in "inN" for pair in inner.replace("%%", "\0").split("%")[1:] if pair)
