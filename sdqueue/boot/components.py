"""Strongly connected components of a directed graph, and what leads into them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def components(nodes: Iterable[V], out: Callable[[V], Iterable[V]]) -> list[list[V]]:
    """All strongly connected components, each after those that it leads to.

    Tarjan's algorithm without recursion, so that a chain of any length will do. `out` may name
    only members of `nodes`.
    """
    index: dict[V, int] = {}
    low: dict[V, int] = {}
    waiting: list[V] = []
    found: list[list[V]] = []
    done: set[V] = set()
    for root in nodes:
        path: list[tuple[V, Iterator[V]]] = []
        if root not in index:
            _enter(root, index, low, waiting)
            path.append((root, iter(out(root))))
        while path:
            node, rest = path[-1]
            for other in rest:
                if other not in index:
                    _enter(other, index, low, waiting)
                    path.append((other, iter(out(other))))
                    break
                if other not in done:
                    low[node] = min(low[node], index[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_leave(node, waiting, done))
    return found


def _enter(node: V, index: dict[V, int], low: dict[V, int], waiting: list[V]) -> None:
    index[node] = low[node] = len(index)
    waiting.append(node)


def _leave(root: V, waiting: list[V], done: set[V]) -> list[V]:
    at = len(waiting) - 1
    while waiting[at] != root:
        at -= 1
    component = waiting[at:]
    del waiting[at:]
    done.update(component)
    return component


def loops(nodes: Iterable[V], out: Callable[[V], Iterable[V]]) -> list[list[V]]:
    """The components that hold a cycle; a node that leads to itself counts."""
    return [c for c in components(nodes, out) if len(c) > 1 or c[0] in out(c[0])]


def leading_to(goals: Iterable[V], into: Mapping[V, Iterable[V]]) -> set[V]:
    """All nodes from which a goal can be reached, the goals too; `into` gives predecessors."""
    seen = set(goals)
    todo = list(seen)
    while todo:
        for other in into.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def shortest_cycle(start: V, second: V, out: Callable[[V], Iterable[V]], within: set[V]) -> list[V]:
    """A shortest cycle that begins with the edge from `start` to `second`, inside `within`.

    The result starts with `start`; it is empty where there is no such cycle.
    """
    came: dict[V, V] = {second: start}
    todo = [second]
    for node in todo:
        if node == start:
            break
        for other in out(node):
            if other in within and other not in came:
                came[other] = node
                todo.append(other)
    if start not in came:
        return []
    path = [start]
    while (node := came[path[-1]]) != start:
        path.append(node)
    return [start, *reversed(path[1:])]
