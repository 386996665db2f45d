"""Merging of unit jobs: every pair and triple, on a unit that is active and one that isn't."""

from itertools import product

import pytest

from sdqueue.boot.graph import Node
from sdqueue.boot.jobs import (
    JOB_TYPES,
    MERGING,
    REDUNDANT,
    JobType,
    collapse,
    is_conflicting,
    is_mergeable,
    lookup_merge,
    merge_and_collapse,
    runs_before,
    runs_before_after,
)

NODES = [Node("a.service"), Node("a.service", active_state="active")]
PAIRS = list(product(MERGING, MERGING))
TRIPLES = list(product(MERGING, MERGING, MERGING))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_merging_is_commutative(a: JobType, b: JobType) -> None:
    assert lookup_merge(a, b) == lookup_merge(b, a)


@pytest.mark.parametrize("a", MERGING)
def test_only_a_stop_is_at_odds_with_the_others(a: JobType) -> None:
    assert is_mergeable(a, "stop") == (a == "stop")
    assert is_conflicting(a, "stop") != is_mergeable(a, "stop")


@pytest.mark.parametrize("node", NODES, ids=["inactive", "active"])
@pytest.mark.parametrize(("a", "b", "c"), TRIPLES)
def test_merging_is_associative_and_mergeability_transitive(
    a: JobType, b: JobType, c: JobType, node: Node
) -> None:
    if is_mergeable(a, b) and is_mergeable(b, c):
        assert is_mergeable(a, c)
    ab, bc = merge_and_collapse(a, b, node), merge_and_collapse(b, c, node)
    if ab is None:
        assert not is_mergeable(a, b)
        return
    assert ab in MERGING
    assert is_mergeable(ab, c) == (is_mergeable(a, c) and is_mergeable(b, c))
    if bc is not None:
        assert merge_and_collapse(ab, c, node) == merge_and_collapse(a, bc, node)


@pytest.mark.parametrize("node", NODES, ids=["inactive", "active"])
@pytest.mark.parametrize("a", JOB_TYPES)
def test_what_collapses_is_then_settled(a: JobType, node: Node) -> None:
    settled = collapse(a, node)
    assert settled in (*MERGING, "nop")
    assert collapse(settled, node) == settled


def test_every_type_of_a_transaction_says_when_it_is_redundant() -> None:
    assert set(REDUNDANT) == {*MERGING, "nop"}


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_of_two_ordered_jobs_one_goes_first(a: JobType, b: JobType) -> None:
    """With "A Before= B" seen from A as Before and from B as After, exactly one of them holds."""
    assert runs_before(a, b) != runs_before_after(b, a)


def test_a_stop_comes_before_a_start_and_stops_go_the_other_way_round() -> None:
    assert runs_before("start", "start")
    assert not runs_before("stop", "stop")
    assert not runs_before("start", "stop")
    assert runs_before("stop", "start")
    assert not runs_before("nop", "start")
