"""Floor 1: plain boxes by name, as facts: for lint-units where there is no systemd to look at.

Each base is what a fresh installation's unit files say about dependencies, no more; the modules are
written by `sdqueue.unitpath.facts`. Knows the format. Must not know directories: the entries are
laid over one that doesn't exist.
"""

import base64
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True, slots=True)
class Base:
    """A named base: its module, its systemd, and what it is, for people."""

    module: str
    systemd: int
    what: str


BASES: dict[str, Base] = {
    "debian-12": Base("debian_12", 252, "Debian 12 with ssh, cron, rsyslog and ifupdown"),
    "debian-13": Base("debian_13", 257, "Debian 13 with ssh, cron, rsyslog and ifupdown"),
    "debian-testing": Base("debian_testing", 262, "Debian testing of 2026-11, the same packages"),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """`files` maps a path without its first slash to a text, `links` to what the link says."""

    files: dict[str, str]
    links: dict[str, str]


def facts(name: str) -> Facts:
    """The facts of a base; KeyError for a name that isn't in BASES."""
    module = import_module(f"{__name__}.{BASES[name].module}")
    return read(unpack(module.DATA))


def unpack(data: str) -> str:
    """The facts that a module holds."""
    return zlib.decompress(base64.b85decode(data)).decode()


def read(text: str) -> Facts:
    """Files and links from their facts; every fact stands at the line that it has in its file."""
    found = Facts({}, {})
    for entry in _entries(text.splitlines()):
        kind, path, *rest = entry[0].split(" ", 2)
        if kind == ">":
            found.links[path] = _merged(rest[0])
        else:
            found.files[path] = _file(entry[1:])
    return found


def _merged(link: str) -> str:
    """Where a link leads with /lib and /usr/lib merged, as they are in every base."""
    return f"/usr{link}" if link.startswith("/lib/") else link


def _entries(lines: list[str]) -> Iterator[list[str]]:
    entry: list[str] = []
    for line in lines:
        if line[:2] in ("@ ", "> "):
            if entry:
                yield entry
            entry = []
        entry.append(line)
    if entry:
        yield entry


def _file(facts: list[str]) -> str:
    lines: list[str] = []
    for fact in facts:
        number, _, setting = fact.partition(" ")
        number, bracket, section = number.partition("[")
        at = int(number)
        if bracket:
            lines += [""] * (at - 2 - len(lines))
            lines += [f"[{section}"]
        lines += [""] * (at - 1 - len(lines))
        lines.append(setting)
    return "".join(f"{line}\n" for line in lines) or "\n"
