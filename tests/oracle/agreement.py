"""Whether the judge and we agree over one directory of units: graph, jobs, what may be lost.

Where systemd's own answer differs from run to run (the order of its hash tables), a line of
difference counts only if it stays through several runs, and what it does counts as foreseen if we
find it when we look longer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from graph_oracle import GUEST_UNITS, Dump, Systemd
from graph_oracle import Manager as Scope
from oracle import CONFLICT, ERROR, SILENT, VICTIM
from ours import differences, facts, load

from sdqueue.boot.activate import activate, boot_mode
from sdqueue.boot.draws import Outlook, outlook
from sdqueue.boot.graph import Graph
from sdqueue.boot.hashorder import HashOrder
from sdqueue.boot.loading import Manager

RUNS = 1000
WHOLE = 20
LOOKS = 4
"""How often we draw, and how often we look again where the judge did what we didn't foresee."""
PATIENCE = 8
"""How often the judge is asked again before a difference is one."""


@dataclass(slots=True)
class Bench:
    """One judge, and what its manager sees, found out once.

    `places` is the search path below the directory that is asked about. `probe` is a unit that
    only names `target`, so that it can always be started and the graph is always printed.
    """

    systemd: Systemd
    target: str
    probe: str
    places: tuple[str, ...] = ("",)
    scope: Scope = "system"
    manager: Manager | None = None

    def ask(self, directory: Path, unit: str, *, log_level: str = "info") -> Dump:
        """Let systemd load and plan one unit of a directory."""
        path = self._path(directory)
        return self.systemd.run(
            path, unit, units=directory, manager=self.scope, log_level=log_level
        )

    def graph(self, directory: Path, dump: Dump) -> Graph:
        """Return our graph of the same; `dump` is any of the judge's, for what it saw."""
        self.manager = self.manager or facts(self.systemd, dump, self.scope)
        path = self._path(directory)
        return load(self.systemd, path, self.probe, self.manager, directory).graph

    def _path(self, directory: Path) -> tuple[str, ...]:
        top = GUEST_UNITS if self.systemd.tree else str(directory)
        return tuple(f"{top}/{place}".rstrip("/") for place in self.places)


def agree(bench: Bench, directory: Path, *, draws: int = 2) -> "tuple[list[str], Foreseen | None]":
    """Return all differences between the judge and us, [] for agreement, and what we foresee."""
    dump = bench.ask(directory, bench.probe)
    if not dump.units:
        return [f"the judge failed: {dump.log[-300:]}"], None
    graph = bench.graph(directory, dump)
    found = _graph(bench, directory, dump, graph)
    return (found, None) if found else _verdict(bench, directory, graph, draws)


def _graph(bench: Bench, directory: Path, dump: Dump, graph: Graph) -> list[str]:
    found = differences(dump, graph)
    for _ in range(PATIENCE):
        if not found:
            break
        again = set(differences(bench.ask(directory, bench.probe), graph))
        found = [line for line in found if line in again]
    return found


def _verdict(
    bench: Bench, directory: Path, graph: Graph, draws: int
) -> "tuple[list[str], Foreseen]":
    """Return what the judge does and we didn't foresee, not even when looking longer."""
    assert bench.manager is not None
    dumps = [bench.ask(directory, bench.target, log_level="debug") for _ in range(draws)]
    version = bench.manager.version
    first = _foresee(graph, bench.target, version, 1)
    out = [line for dump in dumps for line in _draw(dump, first)]
    for seed in range(2, LOOKS + 1):
        if out:
            ours = _foresee(graph, bench.target, version, seed)
            again = {line for dump in dumps for line in _draw(dump, ours)}
            out = [line for line in out if line in again]
    return list(dict.fromkeys(out)), first


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What we say can come, and the jobs of some whole draws of ours."""

    outlook: Outlook
    jobs: tuple[frozenset[str], ...]

    @property
    def fails(self) -> bool:
        """Whether the request always fails."""
        return bool(self.outlook.refusal or self.outlook.fatal)

    @property
    def by_chance(self) -> bool:
        """Whether anything is left to chance."""
        ours = self.outlook
        return bool(ours.p_lost or ours.p_conflicting or ours.errors)


def _foresee(graph: Graph, target: str, version: int, seed: int) -> Foreseen:
    target = graph.id(target)
    mode = boot_mode(graph, target)
    runs = 200 if seed == 1 else RUNS
    ours = outlook(graph, target, mode=mode, version=version, seed=seed, runs=runs)
    lucks = (HashOrder(Random(seed * WHOLE + i)) for i in range(WHOLE))
    played = (activate(graph, target, mode=mode, version=version, luck=luck) for luck in lucks)
    return Foreseen(ours, tuple(outcome.jobs for outcome in played))


def _draw(dump: Dump, foreseen: Foreseen) -> list[str]:
    """Return what one draw of the judge's has that ours could not have."""
    ours, error = foreseen.outlook, ERROR.search(dump.log)
    if error:
        known = foreseen.fails or ours.errors
        return [] if known else [f"the judge fails: {error.group(1)}"]
    if foreseen.fails:
        return [f"we fail: {ours.refusal or ours.fatal}"]
    victims, conflicting = set(VICTIM.findall(dump.log)), set(CONFLICT.findall(dump.log))
    out = [f"{unit} is a victim" for unit in sorted(_units(victims) - _units(ours.p_deleted))]
    out += [f"{job} loses a conflict" for job in sorted(conflicting - ours.p_conflicting.keys())]
    if not conflicting:
        silent = _units(SILENT.findall(dump.log)) - _units(ours.p_lost)
        out += [f"{unit} goes with a victim" for unit in sorted(silent)]
    return out + ([] if foreseen.by_chance else _jobs(dump.jobs, foreseen.jobs))


def _units(jobs: Iterable[str]) -> set[str]:
    """Which of a unit's jobs is the newest, start or verify-active, hangs on chance too."""
    return {job.rpartition("/")[0] for job in jobs}


def _jobs(judged: frozenset[str], mine: tuple[frozenset[str], ...]) -> list[str]:
    """Return the jobs that only the judge queues, and those that only we do, and always."""
    never = judged.difference(*mine)
    always = frozenset.intersection(*mine) - judged
    out = [f"{job}: only the judge queues it" for job in sorted(never)]
    return out + [f"{job}: only we queue it" for job in sorted(always)]
