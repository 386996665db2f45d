"""Asks `systemd --test` what it loaded: files, drop-ins, aliases, load states, listed names."""

import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

BINARY = Path("/usr/lib/systemd/systemd")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
KINDS = ("Wants", "PartOf", "BindsTo", "Conflicts", "PropagatesReloadTo")
PREFIX = "sdqueue-unitfile-"
TOP = "zz-all.target"
# Started instead of TOP, which it only names: nothing that is made here can get in its way.
PROBE = "zz.automount"
PROBE_TEXT = f"[Unit]\nDefaultDependencies=no\nAfter={TOP}\n[Automount]\nWhere=/zz\n"
# What is mounted inside goes with the namespace; v258 and later insist on a cgroup2 mount.
_IN_IMAGE = """
set -e
image=$1; units=$2; shift 2
mount --bind "$image" "$image"
cd "$image"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/systemd/system
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p "./$units"
mount --bind "$units" "./$units"
exec chroot . "$@"
"""
_UNIT = re.compile(r"^\t(?:->|→) Unit (\S+):$")
_EDGE = re.compile(r"^\t\t([A-Za-z]+): (\S+) \((.*)\)$")


@dataclass(slots=True)
class Seen:
    """What systemd says of one unit."""

    name: str
    state: str = ""
    fragment: str = ""
    dropins: list[str] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)
    edges: dict[str, set[str]] = field(default_factory=dict)


def ask(path: Sequence[str], image: Path | None = None) -> dict[str, Seen]:
    """Load TOP with this search path and return every unit that systemd then knows."""
    return parse(ask_text(path, image))


def ask_text(path: Sequence[str], image: Path | None = None) -> str:
    """Load TOP with this search path and return all that systemd prints.

    An `image` is an unpacked system whose systemd is asked; it sees the directory that the search
    path lies in where that is here.
    """
    Path(path[0], PROBE).write_text(PROBE_TEXT)
    environ = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "SYSTEMD_UNIT_PATH": ":".join(path),
        "SYSTEMD_LOG_TARGET": "console",
        "SYSTEMD_LOG_LEVEL": "err",
    }
    argv = [str(BINARY), "--test", "--system", f"--unit={PROBE}"]
    argv = [*(NOBODY if os.geteuid() == 0 else ()), *argv]
    if image:
        enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _IN_IMAGE, "sh"]
        argv = [*enter, str(image), _above(path), *argv]
    done = subprocess.run(
        argv,
        env=environ,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert "By units" in done.stdout, done.stderr[-2000:]
    return done.stdout


def _above(path: Sequence[str]) -> str:
    """Return the directory made for the test that a search path lies in."""
    first = Path(path[0])
    return str(first if first.name.startswith(PREFIX) else first.parent)


def parse(text: str) -> dict[str, Seen]:
    """Read the dump; nothing that is not known from its files comes along (PID 1's own units)."""
    units: dict[str, Seen] = {}
    unit: Seen | None = None
    for line in text.splitlines():
        if found := _UNIT.match(line):
            unit = units.setdefault(found.group(1), Seen(found.group(1)))
        elif not line.startswith("\t\t"):
            unit = None
        elif unit is not None:
            _line(unit, line)
    return units


def _line(unit: Seen, line: str) -> None:
    key, _, value = line.strip().partition(": ")
    if key == "Unit Load State":
        unit.state = value
    elif key == "Fragment Path":
        unit.fragment = value
    elif key == "DropIn Path":
        unit.dropins.append(value)
    elif key == "Alias":
        unit.aliases.add(value)
    elif key in KINDS and (found := _EDGE.match(line)) and "origin-file" in found.group(3):
        unit.edges.setdefault(key, set()).add(found.group(2))


@contextmanager
def open_directory() -> Iterator[Path]:
    """Give a new directory that others may read, and take it away."""
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made)


PREFIXES = ("a", "a-b", "a-b-c", "b", "b-", "c--d", "-e", "f.g", "h\\x2di")
INSTANCES = ("", "@", "@one", "@a-b", "@x@y")
TYPES = ("service", "target", "socket", "timer", "path", "slice", "mount", "device")
DIRECTORIES = ("etc", "run", "lib")
OUTSIDE = "outside"
WORDS = (
    "%n",
    "w@.service",
    "w@%i.service",
    "w@%p.service",
    "%p.target",
    "q%%.service",
    '"a".target',
)
BODIES = {
    "service": ("ExecStart=/bin/true", "Type=oneshot", "ExecStart=-true ; /bin/false x", ""),
    "socket": ("ListenStream=/run/x", "Accept=yes", ""),
    "timer": ("OnBootSec=5", "OnBootSec=", ""),
    "path": ("PathExists=/x", ""),
    "mount": ("What=/dev/x\nWhere=/a", "What=/dev/x"),
}
ODD = (
    "[Unit",
    "[Service]x",
    "no equals",
    "=x",
    "[X-Some]\nWants=no.service",
    "[Unit]\r",
    "\\",
    "#x\\",
)


@dataclass(slots=True)
class Maker:
    """Fills a directory with a search path of unit files, links, drop-ins and oddities."""

    random: random.Random
    root: Path

    def names(self) -> list[str]:
        """Return some names, templates among them."""
        return [self.name() for _ in range(self.random.randint(3, 12))]

    def name(self) -> str:
        pick = self.random.choice
        kind = pick(TYPES)
        middle = pick(INSTANCES) if kind in ("service", "target", "socket", "timer", "path") else ""
        return f"{pick(PREFIXES)}{middle}.{kind}"

    def path(self) -> tuple[str, ...]:
        return tuple(str(self.root / each) for each in DIRECTORIES)

    def fill(self) -> list[str]:
        """Make everything; return the names that a target can want."""
        for each in (*DIRECTORIES, OUTSIDE):
            (self.root / each).mkdir()
        names = self.names()
        for name in names:
            self._unit(name, names)
        for _ in range(self.random.randint(0, 8)):
            self._dropin(self.random.choice(names), names)
        for _ in range(self.random.randint(0, 5)):
            self._wants(self.random.choice(names), names)
        wanted = sorted({each.replace("@.", "@two.") for each in (*names, *self.names())})
        text = "[Unit]\nWants=" + " ".join(wanted) + "\n"
        (self.root / "etc" / TOP).write_text(text)
        return wanted

    def text(self, kind: str, names: list[str]) -> str:
        pick = self.random.choice
        lines = ["[Unit]"]
        for _ in range(self.random.randint(0, 3)):
            words = self.random.choices([*names, *WORDS], k=self.random.randint(0, 3))
            lines.append(f"{pick(KINDS)}={' '.join(words)}")
        if self.random.random() < 0.15:
            lines.append(pick(ODD))
        if kind in BODIES:
            lines += [f"[{kind.capitalize()}]", pick(BODIES[kind]), pick(BODIES[kind])]
        return "\n".join(lines) + "\n"

    def _unit(self, name: str, names: list[str]) -> None:
        pick = self.random.choice
        kind = name.rpartition(".")[2]
        for directory in self.random.sample(DIRECTORIES, self.random.choice((1, 1, 2))):
            path = self.root / directory / name
            if path.is_symlink() or path.exists():
                continue
            other = pick(names)
            what = self.random.random()
            if what < 0.55:
                path.write_text(self.text(kind, names))
            elif what < 0.6:
                path.write_text("")
            elif what < 0.67:
                path.symlink_to("/dev/null")
            elif what < 0.8:
                path.symlink_to(other)
            elif what < 0.9:
                path.symlink_to(self.root / pick(DIRECTORIES) / other)
            else:
                outside = self.root / OUTSIDE / pick((name, other))
                if self.random.random() < 0.8:
                    outside.write_text(self.text(kind, names))
                path.symlink_to(outside)

    def _above(self, name: str) -> str:
        """Return a name whose drop-ins the unit gets, or one of which it should not."""
        prefix, _, kind = name.rpartition(".")
        before, at, instance = prefix.partition("@")
        cut = before.rfind("-") + 1
        return self.random.choice(
            (
                name,
                kind,
                f"{before}{at}.{kind}",
                f"{before[:cut] or before}{at}{instance}.{kind}",
                f"{before[:cut] or before}{at}.{kind}",
                f"a-.{kind}",
            )
        )

    def _dropin(self, name: str, names: list[str]) -> None:
        pick = self.random.choice
        directory = self.root / pick(DIRECTORIES) / f"{self._above(name)}.d"
        directory.mkdir(exist_ok=True)
        path = directory / pick(("10-a.conf", "20-b.conf", "5.conf", "x.txt", ".h.conf", "é.conf"))
        if path.is_symlink() or path.exists():
            return
        what = self.random.random()
        if what < 0.15:
            path.symlink_to("/dev/null")
        elif what < 0.2:
            path.write_text("")
        else:
            path.write_text(self.text(name.rpartition(".")[2], names))

    def _wants(self, name: str, names: list[str]) -> None:
        pick = self.random.choice
        above = self._above(name)
        suffix = pick((".wants", ".wants", ".requires")) if above != "target" else ".wants"
        directory = self.root / pick(DIRECTORIES) / f"{above}{suffix}"
        directory.mkdir(exist_ok=True)
        path = directory / pick((*names, "not-a-unit", "w@.service"))
        if path.is_symlink() or path.exists():
            return
        what = self.random.random()
        if what < 0.15:
            path.symlink_to("/dev/null")
        elif what < 0.25:
            path.write_text("[Unit]\n")
        else:
            path.symlink_to(pick((path.name, "../" + path.name, "other.service")))
