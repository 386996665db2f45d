"""What a real systemd makes of one case: victims, collateral, errors, final jobs, and its graph.

Builds the root of a case as a person would (copy the units, `systemctl --root enable`), asks
`systemd --test` as often as wanted, and reads a `sdqueue.boot` graph out of its dump. The graph is
taken with a target of our own that pulls nothing in, because a failed transaction prints no dump.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from graph_oracle import GUEST_UNITS, Dump, DumpedUnit, Systemd

from sdqueue.boot.graph import INVERSE, KINDS, Graph, Node, Origin

CASES = Path(__file__).parents[1] / "cases" / "lint"
STOCK = "/usr/lib/systemd/system"
ETC = "etc/systemd/system"
PROBE = "sdqueue-probe.target"
PERPETUAL = frozenset({"-.slice", "system.slice", "init.scope", "-.mount"})
IGNORE_ON_ISOLATE = frozenset({"device", "mount", "swap", "scope", "slice"})
VICTIM = re.compile(r"Job (\S+) deleted to break ordering cycle")
SILENT = re.compile(r"Deleting job (\S+) as dependency of job")
CONFLICT = re.compile(r"Fixing conflicting jobs .* by deleting job (\S+)")
ERROR = re.compile(r"^Failed to (?:start|isolate) default target: (.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Case:
    """One directory of tests/cases/lint."""

    name: str
    units: Path
    enable: tuple[str, ...]
    mask: tuple[str, ...]
    links: dict[str, str]
    default: str
    target: str
    expected: dict[str, object]

    @classmethod
    def read(cls, folder: Path) -> "Case":
        wish = json.loads((folder / "case.json").read_text())
        return cls(
            folder.name,
            folder / "units",
            tuple(wish.get("enable", ())),
            tuple(wish.get("mask", ())),
            wish.get("links", {}),
            wish["default"],
            wish.get("target", "default.target"),
            json.loads((folder / "expected.json").read_text()),
        )


def cases() -> list[Case]:
    """All cases, in order of their number."""
    return [Case.read(folder) for folder in sorted(CASES.iterdir()) if folder.is_dir()]


@dataclass(frozen=True, slots=True)
class Draw:
    """One run of the real thing."""

    victims: frozenset[str]
    silent: frozenset[str]
    conflicting: frozenset[str]
    error: str
    jobs: frozenset[str]


@dataclass(slots=True)
class Installed:
    """A case in a root of its own, ready to be asked about."""

    root: Path
    systemd: Systemd
    target: str
    unit_path: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        top = GUEST_UNITS if self.systemd.tree else self.root
        self.unit_path = (f"{top}/{ETC}", f"{top}{STOCK}")

    def _ask(self, target: str, log_level: str = "info") -> Dump:
        units = self.root if self.systemd.tree else None
        return self.systemd.run(self.unit_path, target, units=units, log_level=log_level)

    def draw(self) -> Draw:
        """Ask once."""
        dump = self._ask(self.target, "debug")
        error = ERROR.search(dump.log)
        return Draw(
            frozenset(VICTIM.findall(dump.log)),
            frozenset(SILENT.findall(dump.log)),
            frozenset(CONFLICT.findall(dump.log)),
            error.group(1) if error else "",
            dump.jobs,
        )

    def graph(self) -> Graph:
        """The graph of everything that the case's target loads, mounts of this machine included."""
        probe = self.root / ETC / PROBE
        probe.write_text(f"[Unit]\nDefaultDependencies=no\nAfter={self.target}\n")
        dump = self._ask(PROBE)
        probe.unlink()
        assert dump.exit_status == 0, dump.log
        return graph_of(dump.units, {"default.target", "multi-user.target", "graphical.target"})


@contextmanager
def installed(case: Case, systemd: Systemd | None = None) -> Iterator[Installed]:
    """Put a case into a fresh root with the stock units of that systemd, or of this machine's."""
    systemd = systemd or Systemd()
    root = Path(tempfile.mkdtemp(prefix="sdqueue-oracle-"))
    try:
        root.chmod(0o755)
        shutil.copytree(f"{systemd.tree or ''}{STOCK}", f"{root}{STOCK}", symlinks=True)
        shutil.copytree(case.units, root / ETC, symlinks=True, dirs_exist_ok=True)
        _install(case, root)
        _readable(root, GUEST_UNITS if systemd.tree else str(root))
        yield Installed(root, systemd, case.target)
    finally:
        shutil.rmtree(root)


def _install(case: Case, root: Path) -> None:
    etc = root / ETC
    for name in case.mask:
        (etc / name).symlink_to("/dev/null")
    (etc / "default.target").symlink_to(f"{STOCK}/{case.default}")
    for name in case.enable:
        subprocess.run(
            ["systemctl", f"--root={root}", "enable", name], check=True, capture_output=True
        )
    for link, to in case.links.items():
        (etc / link).parent.mkdir(exist_ok=True)
        (etc / link).symlink_to(to)


def _readable(root: Path, seen_as: str) -> None:
    """Point absolute links into the root, where the search path is; let nobody read it all."""
    for folder, names, files in os.walk(root):
        Path(folder).chmod(0o755)
        for path in (Path(folder, name) for name in (*names, *files)):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
                continue
            to = os.readlink(path).replace("/lib/systemd/", "/usr/lib/systemd/", 1)
            to = to.replace("/usr/usr/", "/usr/", 1)
            if to.startswith("/") and to != "/dev/null":
                path.unlink()
                path.symlink_to(f"{seen_as}{to}")


def graph_of(units: dict[str, DumpedUnit], isolatable: set[str]) -> Graph:
    """Read a graph out of a dump; each edge keeps systemd's own words for its origins."""
    graph = Graph()
    for unit in units.values():
        graph.put(_node(unit, isolatable))
    for unit in units.values():
        for kind in KINDS:
            for other, said in unit.edges.get(kind, {}).items():
                for word in said.split():
                    side, _, mask = word.partition("-")
                    origin = Origin("default" if mask == "default" else "implicit", note=mask)
                    if side == "origin":
                        graph.add(unit.name, kind, other, origin)
                    else:
                        graph.add(other, INVERSE[kind], unit.name, origin)
    return graph


def _node(unit: DumpedUnit, isolatable: set[str]) -> Node:
    names = frozenset({unit.name, *unit.aliases})
    return Node(
        unit.name,
        names,
        load_state=unit.load,  # type: ignore[arg-type]
        perpetual=unit.name in PERPETUAL,
        active_state=unit.active,  # type: ignore[arg-type]
        allow_isolate=bool(names & isolatable),
        ignore_on_isolate=unit.name.rpartition(".")[2] in IGNORE_ON_ISOLATE,
    )
