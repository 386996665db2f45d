"""The box that units are for: this one, a root, or a named base that exists in imagination only."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from sdqueue.boot.loading.manager import NEWEST
from sdqueue.unitbase import BASES, facts
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath import Added
from sdqueue.unitpath.host import systemd_version
from sdqueue.words.errors import UsageError

UNTIL_BOOT: Mapping[str, str] = {
    "machine_id": "0" * 31 + "1",
    "boot_id": "0" * 31 + "1",
    "hostname": "localhost",
    "pretty_hostname": "localhost",
    "kernel": "0",
    "architecture": "x86-64",
}
"""Stands for what nobody can know of a box that hasn't booted, so that its units can be loaded."""


@dataclass(frozen=True, slots=True)
class Box:
    """`label` is what people call it, `entries` are all its units where it has no directory."""

    root: str
    version: int
    label: str
    entries: tuple[Added, ...] = ()
    notes: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None


def find_box(root: str, base: str, version: int | None) -> Box:
    """The box that these options mean; UsageError where there is no such box."""
    if base:
        return _named(root, base, version)
    if root and not os.path.isdir(root):
        raise UsageError(f"{root}: there is no such directory")
    top = os.path.abspath(root).rstrip("/") if root else ""
    found = version or systemd_version(top)
    environ = {k: v for k, v in os.environ.items() if k != "SYSTEMD_UNIT_PATH"} if top else None
    notes = tuple(_about(found, top or "/"))
    return Box(top, found or NEWEST, top or "/", notes=notes, environ=environ)


def _named(root: str, base: str, version: int | None) -> Box:
    if base not in BASES:
        raise UsageError(f"there is no base {base}. The bases: {', '.join(BASES)}.")
    if root:
        raise UsageError("--base and --root: the box can't be both")
    # A directory that nobody has, so that nothing of this machine is seen.
    top = f"/{base}:"
    found = version or BASES[base].systemd
    return Box(top, found, base, tuple(_entries(base, top)), tuple(_about(found, base)), {})


def _entries(base: str, top: str) -> Iterator[Added]:
    known = facts(base)
    for path, text in known.files.items():
        yield Added(f"{top}/{path}", data=text.encode())
    for path, text in known.links.items():
        yield Added(f"{top}/{path}", text=text)


def _about(version: int | None, label: str) -> Iterator[str]:
    if version is None:
        yield f"the version of systemd in {label} is not known; taken for {NEWEST}"
    elif version > NEWEST:
        yield f"systemd {version} is newer than what this was checked against ({NEWEST})"


def filled(host: Host) -> Host:
    """The same with a word for everything that isn't known before a boot."""
    unknown = {f.name for f in fields(host) if getattr(host, f.name) is None}
    return replace(host, **{name: UNTIL_BOOT[name] for name in unknown})  # type: ignore[arg-type]
