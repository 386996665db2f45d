"""The transaction against systemd's own, on every case: victims, odds, collateral, final jobs.

The graph is systemd's too, so that only what `sdqueue.boot` makes of it is judged here.
"""

from collections.abc import Iterable
from math import sqrt

import pytest
from graph_oracle import systemd_of
from oracle import Case, Draw, Installed, cases, installed

from sdqueue.boot.activate import activate, boot_mode
from sdqueue.boot.draws import Outlook, outlook
from sdqueue.boot.graph import Graph
from tests.harness import images
from tests.harness.tools import SOAK

DRAWS = 100 if SOAK else 3
VERSIONS = tuple(images.SUITES)
RECORDED_ON = "252"


def _mode(case: Case, graph: Graph) -> str:
    return boot_mode(graph, graph.id(case.target)) if case.target == "default.target" else "replace"


def _look(case: Case, here: Installed) -> tuple[Graph, Outlook]:
    graph = here.graph()
    found = outlook(
        graph,
        graph.id(case.target),
        mode=_mode(case, graph),  # type: ignore[arg-type]
        version=here.systemd.version(),
    )
    return graph, found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_systemd_never_does_what_was_not_foreseen(case: Case, version: str) -> None:
    systemd = systemd_of(version)
    with installed(case, systemd) as here:
        graph, ours = _look(case, here)
        draws = [here.draw() for _ in range(DRAWS)]
    for draw in draws:
        assert _units(draw.victims) <= _units(ours.p_deleted)
        assert draw.victims | draw.silent <= ours.p_lost.keys()
        assert draw.conflicting <= ours.p_conflicting.keys()
        assert not draw.error or draw.error in ours.errors
        assert bool(ours.loops) == bool(draw.victims) or draw.error
        _same_jobs(case, graph, ours, draw, systemd.version())
    if ours.fatal:
        assert all(draw.error for draw in draws)


def _units(jobs: Iterable[str]) -> set[str]:
    """Which of a unit's jobs is the newest, start or verify-active, hangs on chance too."""
    return {job.rpartition("/")[0] for job in jobs}


def _same_jobs(case: Case, graph: Graph, ours: Outlook, draw: Draw, version: int) -> None:
    """What is queued differs from a draw of ours by no more than what luck decides."""
    if draw.error:
        return
    mode = _mode(case, graph)
    mine = activate(graph, graph.id(case.target), mode=mode, version=version)  # type: ignore[arg-type]
    by_luck = {
        job.rpartition("/")[0]
        for job in (*ours.p_lost, *ours.p_conflicting)
        if ours.p_lost.get(job) != 1.0 and ours.p_conflicting.get(job) != 1.0
    }
    differing = {job.rpartition("/")[0] for job in mine.jobs ^ draw.jobs}
    assert differing <= by_luck


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_odds_are_those_of_a_hundred_recorded_runs(case: Case) -> None:
    with installed(case, systemd_of(RECORDED_ON)) as here:
        _, ours = _look(case, here)
    recorded = case.expected["deleted"]
    runs = case.expected["runs"]
    assert isinstance(recorded, dict)
    assert isinstance(runs, int)
    for job in {*recorded, *ours.p_deleted}:
        p = ours.p_deleted.get(job, 0.0)
        assert abs(p - recorded.get(job, 0.0)) < 4.5 * sqrt(p * (1 - p) / runs) + 0.04, job
    assert bool(ours.fatal) == (case.expected["unbreakable"] == 1.0)
