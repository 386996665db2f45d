"""One random set of units before the judge: the same graph, and nothing done that wasn't foreseen.

Where systemd's own answer differs from run to run (the order of its hash tables), a line of
difference counts only if it stays through several runs.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from graph_oracle import GUEST_UNITS, Dump, Systemd
from oracle import CONFLICT, ERROR, SILENT, VICTIM
from ours import differences, facts, load
from random_units import PROBE, TARGET, Files, write

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
    """One judge, and what its manager sees, found out once."""

    systemd: Systemd
    manager: Manager | None = None
    asked: int = field(default=0)

    def ask(self, directory: Path, unit: str, *, log_level: str = "info") -> Dump:
        """Let systemd load and plan one unit of a directory."""
        self.asked += 1
        return self.systemd.run(self._path(directory), unit, units=directory, log_level=log_level)

    def graph(self, directory: Path, dump: Dump) -> Graph:
        """Return our graph of the same; `dump` is any of the judge's, for what it saw."""
        self.manager = self.manager or facts(self.systemd, dump)
        path = self._path(directory)
        return load(self.systemd, path, PROBE, self.manager, directory).graph

    def _path(self, directory: Path) -> tuple[str]:
        return (GUEST_UNITS if self.systemd.tree else str(directory),)


@contextmanager
def written(files: Files) -> Iterator[Path]:
    """Keep a set in a directory that nobody may read."""
    directory = Path(tempfile.mkdtemp(prefix="sdqueue-random-"))
    try:
        write(files, directory)
        yield directory
    finally:
        shutil.rmtree(directory)


def examine(bench: Bench, files: Files, *, draws: int = 2) -> list[str]:
    """Return all differences between the judge and us over one set; [] is agreement."""
    with written(files) as directory:
        dump = bench.ask(directory, PROBE)
        if not dump.units:
            return [f"the judge failed: {dump.log[-300:]}"]
        graph = bench.graph(directory, dump)
        return _graph(bench, directory, dump, graph) or _verdict(bench, directory, graph, draws)


def _graph(bench: Bench, directory: Path, dump: Dump, graph: Graph) -> list[str]:
    found = differences(dump, graph)
    for _ in range(PATIENCE):
        if not found:
            break
        again = set(differences(bench.ask(directory, PROBE), graph))
        found = [line for line in found if line in again]
    return found


def _verdict(bench: Bench, directory: Path, graph: Graph, draws: int) -> list[str]:
    """Return what the judge does and we didn't foresee, not even when looking longer."""
    assert bench.manager is not None
    dumps = [bench.ask(directory, TARGET, log_level="debug") for _ in range(draws)]
    out: list[str] = []
    for seed in range(1, LOOKS + 1):
        ours = _foresee(graph, bench.manager.version, seed)
        out = [line for dump in dumps for line in _draw(dump, ours) if seed == 1 or line in out]
        if not out:
            break
    return list(dict.fromkeys(out))


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


def _foresee(graph: Graph, version: int, seed: int) -> Foreseen:
    mode = boot_mode(graph, TARGET)
    runs = 200 if seed == 1 else RUNS
    ours = outlook(graph, TARGET, mode=mode, version=version, seed=seed, runs=runs)
    lucks = (HashOrder(Random(seed * WHOLE + i)) for i in range(WHOLE))
    played = (activate(graph, TARGET, mode=mode, version=version, luck=luck) for luck in lucks)
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
