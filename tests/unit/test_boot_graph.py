"""The dependency graph: both directions, every origin, aliases."""

import pytest

from sdqueue.boot.atoms import ATOM_MAP, ATOMS, atoms, kinds_with
from sdqueue.boot.graph import INVERSE, KINDS, Graph, Kind, Node, Origin

HERE = Origin("file", "a.service", 3)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_inverse_that_leads_back(kind: Kind) -> None:
    assert INVERSE[INVERSE[kind]] == kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_dependency_is_seen_from_both_units(kind: Kind) -> None:
    graph = Graph()
    assert graph.add("a.service", kind, "b.service", HERE)
    assert list(graph.neighbours("a.service", kind)) == ["b.service"]
    assert list(graph.neighbours("b.service", INVERSE[kind])) == ["a.service"]
    assert graph.origins("a.service", kind, "b.service") == [("origin", HERE)]
    assert graph.origins("b.service", INVERSE[kind], "a.service") == [("destination", HERE)]


def test_a_second_statement_is_kept_and_is_not_new() -> None:
    graph = Graph()
    graph.add("a.service", "After", "b.service", HERE)
    there = Origin("default")
    assert not graph.add("b.service", "Before", "a.service", there)
    assert not graph.add("a.service", "After", "b.service", HERE)
    assert graph.origins("a.service", "After", "b.service") == [
        ("origin", HERE),
        ("destination", there),
    ]


def test_a_unit_does_not_depend_on_itself_under_any_of_its_names() -> None:
    graph = Graph()
    graph.put(Node("a.service", frozenset({"a.service", "b.service"})))
    assert not graph.add("a.service", "After", "b.service", HERE)
    assert list(graph.neighbours("a.service", "After")) == []


def test_a_unit_that_nobody_loaded_is_not_found() -> None:
    assert Graph().node("a.service").load_state == "not-found"


def test_a_unit_of_two_kinds_of_neighbour_is_named_once() -> None:
    graph = Graph()
    graph.add("a.service", "Requires", "b.service", HERE)
    graph.add("a.service", "BindsTo", "b.service", HERE)
    assert list(graph.neighbours("a.service", "Requires", "BindsTo")) == ["b.service"]


def test_each_atom_belongs_to_a_kind_and_propagated_stops_became_graceful_in_254() -> None:
    assert {atom for kind in ATOM_MAP for atom in ATOM_MAP[kind]} == set(ATOMS)
    assert atoms("PropagatesStopTo", 252) == {"propagate-stop"}
    assert atoms("PropagatesStopTo", 254) == {"propagate-stop-graceful"}
    assert kinds_with("pull-in-start", 252) == ("Requires", "BindsTo")
