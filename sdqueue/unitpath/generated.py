"""What generators would add to a root: emulated where that can be done, said where it can't.

A root that has the generators' output (a running system, or a copy of it) is left alone.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sdqueue.unitfile.fstab import Generated, Machine, generate
from sdqueue.unitfile.getty import getty
from sdqueue.unitpath.chase import Chaser, LinkLoop
from sdqueue.unitpath.search import GENERATORS
from sdqueue.unitpath.tree import Added, read_regular
from sdqueue.words.problem import Problem

RUN = "/run/systemd"
PLACES = (
    "/run/systemd/system-generators",
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
)
CHECKERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
FSTAB, GETTY = "systemd-fstab-generator", "systemd-getty-generator"
EMULATED = frozenset((FSTAB, GETTY))
# Generators that write nothing at a normal boot without what is named: a file, or a word on the
# kernel command line (which an installed system does not carry).
QUIET_WITHOUT: Mapping[str, str] = {
    "systemd-cryptsetup-generator": "/etc/crypttab",
    "systemd-integritysetup-generator": "/etc/integritytab",
    "systemd-veritysetup-generator": "/etc/veritytab",
    "systemd-rc-local-generator": "/etc/rc.local",
    "systemd-system-update-generator": "/system-update",
    "systemd-debug-generator": "",
    "systemd-hibernate-resume-generator": "",
    "systemd-run-generator": "",
    "systemd-factory-reset-generator": "",
}
_CONSOLE = re.compile(r"\bconsole=(?:/dev/)?([^\s,]+)")


@dataclass(frozen=True, slots=True)
class Generators:
    """What is added, what was wrong with its sources, and which generators nobody has seen run."""

    added: tuple[Added, ...] = ()
    problems: tuple[Problem, ...] = ()
    unseen: tuple[str, ...] = ()


def generators(
    root: str,
    version: int,
    *,
    container: bool = False,
    cmdline: str = "",
    there: frozenset[str] | None = None,
) -> Generators:
    """Emulate the generators of a root whose own output is not there.

    `cmdline` is a kernel command line, for the consoles. `there` names the generators that the root
    has, where that can't be seen in it; one that isn't there writes nothing.
    """
    base = root.rstrip("/")
    if any(_has_entries(f"{base}{RUN}/{name}") for name in GENERATORS):
        return Generators()
    chaser = Chaser(base)
    fstab = f"{base}/etc/fstab"
    machine = Machine(version, container, _fsck(base), _real(chaser, base))
    names = _installed(base, chaser) if there is None else there
    made, prompts = Generated(), Generated()
    if FSTAB in names:
        made = generate(_text(chaser, fstab), machine, source=fstab)
    if GETTY in names:
        prompts = getty(tuple(_CONSOLE.findall(cmdline)), container=container)
    added = (*_added(made, base), *_added(prompts, base))
    return Generators(added, tuple(made.problems), _unseen(base, names))


def _added(made: Generated, base: str) -> list[Added]:
    start = f"{base}{RUN}/generator"
    files = [Added(f"{start}/{name}", data=text.encode()) for name, text in made.files.items()]
    return files + [Added(f"{start}/{name}", text=text) for name, text in made.links.items()]


def _has_entries(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _text(chaser: Chaser, file: str) -> str:
    try:
        return read_regular(chaser.all(file)).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _fsck(base: str) -> Callable[[str], bool]:
    def there(fstype: str) -> bool:
        name = "fsck" if fstype in ("", "auto") else f"fsck.{fstype}"
        return any(os.path.lexists(f"{base}{place}/{name}") for place in CHECKERS)

    return there


def _real(chaser: Chaser, base: str) -> Callable[[str], str]:
    def real(path: str) -> str:
        try:
            return chaser.all(f"{base}{path}").removeprefix(base) or "/"
        except LinkLoop:
            return path

    return real


def _installed(base: str, chaser: Chaser) -> frozenset[str]:
    """Return the names of the generators that the root has."""
    names: set[str] = set()
    for place in PLACES:
        try:
            names.update(os.listdir(chaser.all(f"{base}{place}")))
        except OSError:
            continue
    return frozenset(names)


def _unseen(base: str, names: frozenset[str]) -> tuple[str, ...]:
    """Return the generators that may write something and that are not emulated."""
    return tuple(name for name in sorted(names) if name not in EMULATED and _may_write(name, base))


def _may_write(name: str, base: str) -> bool:
    if name not in QUIET_WITHOUT:
        return True
    source = QUIET_WITHOUT[name]
    return bool(source) and os.path.lexists(f"{base}{source}")
