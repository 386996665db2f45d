"""Strongly connected components against their definition, on random graphs and a long chain."""

from hypothesis import given
from hypothesis import strategies as st

from sdqueue.boot.components import components, leading_to, loops, shortest_cycle

Out = dict[int, list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Out:
    n = draw(st.integers(1, 9))
    edges = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=24))
    return {i: sorted(b for a, b in edges if a == i) for i in range(n)}


def reach(out: Out, start: int) -> set[int]:
    seen: set[int] = set()
    todo = [start]
    while todo:
        for other in out[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


@given(graphs())
def test_two_nodes_share_a_component_if_each_leads_to_the_other(out: Out) -> None:
    of = {v: i for i, c in enumerate(components(out, out.__getitem__)) for v in c}
    assert of.keys() == out.keys()
    for a in out:
        for b in out:
            mutual = a == b or (b in reach(out, a) and a in reach(out, b))
            assert (of[a] == of[b]) == mutual


@given(graphs())
def test_a_component_comes_after_those_it_leads_to(out: Out) -> None:
    of = {v: i for i, c in enumerate(components(out, out.__getitem__)) for v in c}
    assert all(of[b] <= of[a] for a in out for b in out[a])


@given(graphs())
def test_loops_are_where_a_node_leads_to_itself(out: Out) -> None:
    looping = {v for c in loops(out, out.__getitem__) for v in c}
    assert looping == {v for v in out if v in reach(out, v)}
    into = {v: [u for u in out if v in out[u]] for v in out}
    assert leading_to(looping, into) == {v for v in out if v in looping or reach(out, v) & looping}


@given(graphs())
def test_a_shortest_cycle_is_a_cycle(out: Out) -> None:
    for a in out:
        for b in out[a]:
            path = shortest_cycle(a, b, out.__getitem__, set(out))
            assert bool(path) == (a == b or a in reach(out, b))
            if path and a != b:
                assert path[:2] == [a, b]
                assert all(w in out[v] for v, w in zip(path, [*path[1:], a], strict=True))


def test_a_chain_of_a_hundred_thousand_needs_no_deep_stack() -> None:
    out = {i: [i + 1] for i in range(100_000)} | {100_000: [0]}
    assert len(components(out, out.__getitem__)) == 1
