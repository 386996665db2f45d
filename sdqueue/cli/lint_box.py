"""The box that units are for: a root or a named base, its systemd, what specifiers say there."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sdqueue.boot.loading.manager import NEWEST
from sdqueue.unitbase import BASES, facts
from sdqueue.unitfile.specifier import Host
from sdqueue.words.errors import UsageError

NO_ID = "0" * 31 + "1"
"""Stands for an id that is made at boot."""
_SHARED = re.compile(r"^libsystemd-shared-(\d+)")
_LIBRARIES = ("usr/lib/systemd", "lib/systemd", "usr/lib64/systemd", "usr/lib/*/systemd")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for, as options say it."""

    paths: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    root: str = ""
    base: str = ""
    generators: str | None = None
    user: bool = False
    version: int | None = None
    target: str = ""
    everything: bool = False
    seed: int = 1


@contextmanager
def rooted(wish: Wish) -> Iterator[Wish]:
    """Give a named base a root of its own for as long as it is looked at."""
    if not wish.base:
        yield wish
        return
    if wish.base not in BASES:
        raise UsageError(f"there is no base {wish.base}. The bases: {', '.join(BASES)}.")
    if wish.root:
        raise UsageError("--base and --root: the box can't be both")
    with TemporaryDirectory(prefix="sdqueue-lint-") as root:
        _unpack(wish.base, root)
        yield replace(wish, root=root, version=wish.version or BASES[wish.base].systemd)


def _unpack(base: str, root: str) -> None:
    found = facts(base)
    for path in {os.path.dirname(path) for path in (*found.files, *found.links)}:
        os.makedirs(f"{root}/{path}", exist_ok=True)
    os.symlink("usr/lib", f"{root}/lib")
    for path, text in found.files.items():
        Path(f"{root}/{path}").write_text(text)
    for path, text in found.links.items():
        os.symlink(text, f"{root}/{path}")


def version(wish: Wish, root: str) -> tuple[int, list[str]]:
    found = wish.version or version_of(root)
    if found is None:
        return NEWEST, [f"the version of systemd in {root or '/'} is not known; taken for {NEWEST}"]
    if found > NEWEST:
        return found, [f"systemd {found} is newer than what this was checked against ({NEWEST})"]
    return found, []


def version_of(root: str) -> int | None:
    """The version of the systemd in a root, by the name of its own library; None if none is."""
    found = [
        int(match.group(1))
        for place in _LIBRARIES
        for file in Path(root or "/").glob(f"{place}/libsystemd-shared-*")
        if (match := _SHARED.match(file.name))
    ]
    return max(found, default=None)


def host(root: str, *, user: bool) -> Host:
    lines = _text(f"{root}/etc/os-release").splitlines()
    release = dict(line.split("=", 1) for line in lines if "=" in line)
    found = Host(
        machine_id=_text(f"{root}/etc/machine-id").strip() or NO_ID,
        boot_id=NO_ID,
        hostname=_text(f"{root}/etc/hostname").strip() or "localhost",
        pretty_hostname="localhost",
        architecture=os.uname().machine.replace("_", "-"),
        kernel=os.uname().release,
        os_release={key: value.strip("\"'") for key, value in release.items()},
    )
    return _of_user(found) if user else found


def _of_user(found: Host) -> Host:
    """The same for a user's manager: the caller's, since whose it will be isn't known."""
    home = os.environ.get("HOME") or "/root"
    return replace(
        found,
        uid=os.getuid(),
        gid=os.getgid(),
        home=home,
        runtime_dir=os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}",
        state_dir=f"{home}/.local/state",
        cache_dir=f"{home}/.cache",
        logs_dir=f"{home}/.local/state/log",
        config_dir=f"{home}/.config",
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace") if os.path.isfile(path) else ""
    except OSError:
        return ""
