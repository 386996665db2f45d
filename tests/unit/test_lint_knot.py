"""What unties a knot of ordering, against trying everything; and the layout of its picture."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from sdqueue.boot.components import loops
from sdqueue.boot.graph import Graph, Node, Origin
from sdqueue.lint.formats.text import percent
from sdqueue.lint.knot import Knot, Pair
from sdqueue.lint.layout import lay_out

OLD, DEFAULT = Origin("file", "old.service", 1), Origin("default", "a.service", 9)
Edges = list[tuple[str, str, bool]]


@st.composite
def edges(draw: st.DrawFn) -> Edges:
    names = [f"u{i}.service" for i in range(draw(st.integers(2, 6)))] + ["t.target"]
    pairs = draw(
        st.sets(st.tuples(st.sampled_from(names), st.sampled_from(names)), min_size=2, max_size=14)
    )
    return [(a, b, draw(st.booleans())) for a, b in sorted(pairs) if a != b]


def graph_of(wanted: Edges) -> Graph:
    """Each edge stated by a line of its own, in a new file or in an old one."""
    graph = Graph()
    for at, (unit, other, new) in enumerate(wanted):
        for name in (unit, other):
            graph.put(Node(name))
        graph.add(unit, "After", other, Origin("file", "new.service", at + 1) if new else OLD)
    return graph


def knots_of(graph: Graph) -> list[Knot]:
    found = loops(graph.nodes, lambda unit: list(graph.neighbours(unit, "After")))
    return [Knot(graph, frozenset(c), lambda o: o.file == "new.service", 257) for c in found]


def is_acyclic(knot: Knot, without: tuple[Pair, ...]) -> bool:
    after: dict[str, list[str]] = {}
    for unit, other in knot.edges.keys() - set(without):
        after.setdefault(unit, []).append(other)
    return not loops(knot.units, lambda unit: after.get(unit, []))


@settings(max_examples=200)
@given(edges())
def test_no_smaller_set_of_lines_unties_a_knot(wanted: Edges) -> None:
    for knot in knots_of(graph_of(wanted)):
        # Each edge of these graphs is a line of its own.
        mine = [cut.pair for cut in knot.cuts()]
        smallest = next(
            (n for n in range(len(mine) + 1) for s in combinations(mine, n) if is_acyclic(knot, s)),
            None,
        )
        untied = knot.untie()
        if smallest is None:
            assert not untied.singles
            assert not untied.several
        elif smallest == 1:
            assert {cut.pair for cut in untied.singles} == {
                pair for pair in mine if is_acyclic(knot, (pair,))
            }
        else:
            assert is_acyclic(knot, tuple(cut.pair for cut in untied.several))
            assert not untied.exact or len(untied.several) == smallest


@given(edges())
def test_the_cycle_that_is_shown_is_one_and_has_a_new_edge_if_any_has(wanted: Edges) -> None:
    for knot in knots_of(graph_of(wanted)):
        cycle = knot.cycle()
        pairs = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
        assert pairs
        assert all(pair in knot.edges for pair in pairs)
        has_new = any(knot.has_new(pair) for pair in knot.edges)
        assert any(knot.has_new(pair) for pair in pairs) == has_new


def trio() -> Graph:
    graph = Graph()
    for name in ("a.service", "b.service", "t.target"):
        graph.put(Node(name))
    new = Origin("file", "new.service", 2)
    graph.add("t.target", "Wants", "a.service", OLD)
    graph.add("t.target", "Wants", "b.service", OLD)
    graph.add("a.service", "After", "t.target", new)
    graph.add("b.service", "After", "a.service", Origin("file", "new.service", 3))
    graph.add("t.target", "After", "b.service", DEFAULT)
    return graph


def test_removing_after_of_a_target_brings_its_default_edge_back() -> None:
    """In the trio that is harmless; with the edges the other way round it would close a cycle."""
    (knot,) = knots_of(trio())
    assert {cut.pair for cut in knot.untie().singles} == {
        ("a.service", "t.target"),
        ("b.service", "a.service"),
    }
    graph = trio()
    graph.add("a.service", "After", "b.service", OLD)
    (knot,) = knots_of(graph)
    assert ("a.service", "t.target") not in {cut.pair for cut in knot.untie().singles}


def test_the_same_after_on_the_follower_defuses_the_default_edge() -> None:
    (knot,) = knots_of(trio())
    assert knot.defused_by() == [("b.service", "t.target")]


def test_a_line_that_states_many_edges_is_one_line_to_remove() -> None:
    graph = Graph()
    line = Origin("dropin", "service.d/x.conf", 2)
    for name in ("late.service", *(f"u{i}.service" for i in range(9))):
        graph.put(Node(name))
    for i in range(9):
        graph.add(f"u{i}.service", "After", "late.service", line)
        graph.add("late.service", "After", f"u{i}.service", OLD)
    found = loops(graph.nodes, lambda unit: list(graph.neighbours(unit, "After")))
    knot = Knot(graph, frozenset(found[0]), lambda o: o is line, 257)
    assert [cut.text for cut in knot.untie().singles] == ["After=late.service"]


def test_an_edge_that_is_stated_twice_needs_both_lines_removed() -> None:
    graph = Graph()
    for name in ("a.service", "b.service"):
        graph.put(Node(name))
    graph.add("a.service", "After", "b.service", Origin("file", "new.service", 2))
    graph.add("b.service", "Before", "a.service", Origin("file", "new.service", 7))
    graph.add("b.service", "After", "a.service", OLD)
    (knot,) = knots_of(graph)
    assert {cut.place.line for cut in knot.untie().several} == {2, 7}


def test_a_knot_too_large_to_try_all_of_is_untied_and_said_to_be_not_exact() -> None:
    """Thirty small cycles through one old edge each: thirty lines have to go."""
    wanted = [("hub.service", f"u{i}.service", True) for i in range(30)]
    wanted += [(f"u{i}.service", "hub.service", False) for i in range(30)]
    (knot,) = knots_of(graph_of(wanted))
    untied = knot.untie()
    assert len(untied.several) == 30
    assert not untied.exact


@given(edges())
def test_boxes_of_a_picture_do_not_overlap(wanted: Edges) -> None:
    sizes = {name: 60.0 + len(name) for pair in wanted for name in pair[:2]}
    layout = lay_out(sizes, [(b, a) for a, b, _ in wanted], 30, 40, 80, 20)
    boxes = [(x - sizes[u] / 2, x + sizes[u] / 2, y) for u, (x, y) in layout.places.items()]
    for at, (left, right, y) in enumerate(boxes):
        assert left >= 0
        assert right <= layout.width
        assert y + 30 <= layout.height
        for other_left, other_right, other_y in boxes[at + 1 :]:
            assert y != other_y or right < other_left or other_right < left


def test_a_share_is_never_rounded_to_nothing_or_to_everything() -> None:
    assert [percent(p) for p in (0.0, 0.001, 0.5, 0.999, 1.0)] == [
        "0 %",
        "<1 %",
        "50 %",
        "99 %",
        "100 %",
    ]
