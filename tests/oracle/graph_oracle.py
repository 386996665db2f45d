"""The judge: a real systemd's own dependency graph and boot transaction.

`systemd --test` loads units as PID 1 does, prints what it loaded and the jobs that it would run,
and ends. It refuses root, so that as root it runs as nobody; a tree (an unpacked image) is entered
with chroot in a mount namespace of its own, with a cgroup2 mount, which v258 and later insist on.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from tests.harness import images
from tests.harness.tools import require

BINARY = "/usr/lib/systemd/systemd"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
STOCK_PATH = ("/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
STOCK_USER_PATH = ("/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user")
GUEST_UNITS = "/run/host/units"
TIMEOUT_SEC = 120

Manager = Literal["system", "user"]

# A tree is bound onto itself so that what is mounted inside it goes with the namespace.
_ENTER = """
set -e
tree=$1; units=$2; shift 2
mount --bind "$tree" "$tree"
cd "$tree"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/systemd/system run/host/units
[ -z "$units" ] || mount --bind "$units" run/host/units
exec chroot . "$@"
"""
_HERE = """
set -e
mount -t tmpfs -o mode=755 tmpfs /run/systemd
mkdir -p /run/systemd/system
exec "$@"
"""
_UNIT = re.compile(r"^\t(?:->|→) Unit (.*):$")
_JOB = re.compile(r"^\t(?:->|→) Job (\d+):$")
_EDGE = re.compile(r"^\t\t([A-Za-z]+): (\S+) \(((?:(?:origin|destination)-[a-z-]+ ?)+)\)$")
_ACTION = re.compile(r"^\t\tAction: (\S+) -> (\S+)$")
_VERSION = re.compile(r"systemd (\d+)")
_MOUNTS_FOR = frozenset({"RequiresMountsFor", "WantsMountsFor"})

Edges = Mapping[str, Mapping[str, str]]


@dataclass(slots=True)
class DumpedUnit:
    """What systemd printed of one unit: `edges` is dependency kind → other → origins, sorted."""

    name: str
    load: str = ""
    active: str = ""
    aliases: list[str] = field(default_factory=list)
    edges: dict[str, dict[str, str]] = field(default_factory=dict)
    mounts_for: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dump:
    """One run: the units, the jobs as "UNIT/TYPE", and what was logged; no units if it failed."""

    units: dict[str, DumpedUnit]
    jobs: frozenset[str]
    log: str
    exit_status: int


@dataclass(frozen=True, slots=True)
class Systemd:
    """One systemd that can be asked: this machine's, or that of an unpacked image at `tree`."""

    tree: Path | None = None

    @property
    def binary(self) -> Path:
        """Where the manager's binary is, as seen from here."""
        return Path(f"{self.tree or ''}{BINARY}")

    def version(self) -> int:
        """Return the major version."""
        argv = ["chroot", str(self.tree), BINARY] if self.tree else [BINARY]
        out = subprocess.run(
            [*argv, "--version"], capture_output=True, text=True, check=True, timeout=TIMEOUT_SEC
        ).stdout
        found = _VERSION.search(out)
        assert found, out
        return int(found.group(1))

    def why_not(self) -> str:
        """Return why it can't be asked here, "" where it can."""
        if not self.binary.exists():
            return f"no {self.binary}"
        if os.geteuid() == 0:
            return "" if shutil.which("setpriv") else "no setpriv"
        return "a tree needs root" if self.tree else ""

    def run(
        self,
        unit_path: Sequence[str],
        target: str = "default.target",
        *,
        units: Path | None = None,
        manager: Manager = "system",
        log_level: str = "info",
    ) -> Dump:
        """Load and plan `target` with this search path; a tree sees `units` as GUEST_UNITS."""
        env = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "SYSTEMD_UNIT_PATH": ":".join(unit_path),
            "SYSTEMD_LOG_TARGET": "console",
            "SYSTEMD_LOG_LEVEL": log_level,
            "SYSTEMD_LOG_COLOR": "0",
            "SYSTEMD_COLORS": "0",
            "XDG_RUNTIME_DIR": "/tmp",
            "HOME": "/nonexistent",
        }
        done = subprocess.run(
            self._argv(target, units, manager),
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_SEC,
            check=False,
        )
        found, jobs = parse(done.stdout)
        return Dump(found, jobs, done.stderr, done.returncode)

    def seen(self, *files: str, manager: Manager = "system") -> str:
        """Return what is in some files as the manager sees them, one after the other."""
        argv = self._enter(["cat", *files], None, manager)
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_SEC, check=False
        )
        return done.stdout

    def _argv(self, target: str, units: Path | None, manager: Manager) -> list[str]:
        test = [BINARY, "--test", f"--{manager}", f"--unit={target}"]
        return self._enter([*NOBODY, *test] if os.geteuid() == 0 else test, units, manager)

    def _enter(self, argv: list[str], units: Path | None, manager: Manager) -> list[str]:
        enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
        if self.tree:
            return [*enter, _ENTER, "sh", str(self.tree), str(units or ""), *argv]
        if manager == "user" and os.geteuid() == 0:
            return [*enter, _HERE, "sh", *argv]
        return argv


def parse(text: str) -> tuple[dict[str, DumpedUnit], frozenset[str]]:
    """Read what `systemd --test` prints: the units by name, and the jobs as "UNIT/TYPE"."""
    units: dict[str, DumpedUnit] = {}
    jobs: set[str] = set()
    unit: DumpedUnit | None = None
    for line in text.splitlines():
        if found := _UNIT.match(line):
            unit = units.setdefault(found.group(1), DumpedUnit(found.group(1)))
        elif _JOB.match(line):
            unit = None
        elif found := _ACTION.match(line):
            jobs.add(f"{found.group(1)}/{found.group(2)}")
        elif unit is not None:
            _unit_line(unit, line)
    return units, frozenset(jobs)


def _unit_line(unit: DumpedUnit, line: str) -> None:
    if found := _EDGE.match(line):
        kind, other, origins = found.groups()
        into = unit.mounts_for if kind in _MOUNTS_FOR else unit.edges
        into.setdefault(kind, {})[other] = " ".join(sorted(origins.split()))
    elif line.startswith("\t\tUnit Load State: "):
        unit.load = line.rpartition(" ")[2]
    elif line.startswith("\t\tUnit Active State: "):
        unit.active = line.rpartition(" ")[2]
    elif line.startswith("\t\tAlias: "):
        unit.aliases.append(line.rpartition(" ")[2])


@cache
def systemd_of(version: str) -> Systemd:
    """Return the systemd of a version; the test is skipped where there can't be one."""
    require(images.missing(version))
    root = images.root_of(version)
    systemd = Systemd(None if str(root) == "/" else root)
    require(systemd.why_not())
    return systemd
