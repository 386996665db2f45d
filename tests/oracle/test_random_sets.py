"""A slice of the random sets that tests/soak/random_unit_sets.py plays, and what it once found."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from agreement import Bench
from graph_oracle import Manager, systemd_of
from random_sets import bench_of, examine
from random_units import PROBE, TARGET, make

from tests.harness import images
from tests.harness.tools import require_root

CASES = Path(__file__).parents[1] / "cases" / "random_sets"
SLICE = {"252": range(5000, 5020), "257": range(5000, 5006), "262": range(5000, 5006)}
USER_SLICE = range(6000, 6005)
FOUND = sorted(CASES.glob("*/case.json"))


@cache
def bench(version: str, scope: Manager = "system") -> Bench:
    """The judge of that version; the test is skipped where there can't be one."""
    return bench_of(systemd_of(version), scope)


@pytest.mark.parametrize("version", SLICE)
def test_random_sets_get_systemds_graph_and_nothing_unforeseen_happens(version: str) -> None:
    judge = bench(version)
    for seed in SLICE[version]:
        assert examine(judge, make(seed)) == [], seed


@pytest.mark.parametrize("version", SLICE)
def test_a_user_manager_does_the_same(version: str) -> None:
    require_root()
    judge = bench(version, "user")
    for seed in USER_SLICE:
        assert examine(judge, make(seed)) == [], seed


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.parent.name)
def test_what_was_once_seen_differently_is_agreed_on(case: Path) -> None:
    found = json.loads(case.read_text())
    assert examine(bench(found["version"]), found["files"]) == []


def test_a_disagreement_would_be_seen() -> None:
    judge = bench(images.machine_version())
    base = {PROBE: f"[Unit]\nAfter={TARGET}\n", TARGET: "[Unit]\nWants=a.service\n"}
    service = {"a.service": "[Service]\nExecStart=/bin/true\n"}
    assert examine(judge, base | service) == []
    assert judge.manager
    wrong = replace(judge, manager=replace(judge.manager, user=True))
    found = examine(wrong, base | service)
    assert any("sysinit.target" in line for line in found)
