"""One knot of ordering: units that are all before and after each other, and what unties it.

Theory of operation. A knot is a strongly connected component of "is ordered after". Each of its
edges has the places that state it; an edge goes when all its places go. Places in the new files are
what a person can change, so the smallest set of those is searched whose removal leaves no cycle:
all single ones, all pairs, and so on for as long as there are few enough to try; beyond that one is
taken after the other as they help most, and `Untied.exact` says so.

Two things make the search more than cutting edges. Removing `After=T` from a unit that the target T
pulls in brings back the default edge "T after the unit", which the direct edge had kept away. And
the other way round: *adding* `After=T` to such a unit takes the default edge away ("defuses" it).

Example: T wants a and b, b After=a, a After=T. T is after b by default, but not after a, because a
is After=T. Removing that line leaves: b after a, T after b, and now T after a: no cycle.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice

from sdqueue.boot.atoms import kinds_with
from sdqueue.boot.components import loops, shortest_cycle
from sdqueue.boot.graph import Graph, Origin
from sdqueue.lint.finding import Edge

Pair = tuple[str, str]
"""(unit, other): `unit` is ordered after `other`."""

TRIALS = 500
EARLY_TARGETS = frozenset(
    f"{name}.target" for name in ("basic", "local-fs", "paths", "sockets", "sysinit", "timers")
)
"""Targets that other units stand on; nobody wants to be started after those by way of repair."""
MAX_PLACES = 4
USER_WRITTEN = ("file", "dropin")


@dataclass(frozen=True, slots=True)
class Cut:
    """One ordering dependency as a person wrote it: remove it there.

    `pair` is an edge that it states; a line of a template or of a drop-in for many units states
    many, but it is one line to remove.
    """

    pair: Pair
    stated: str
    place: Origin

    @property
    def named(self) -> str:
        """The unit that the line names."""
        unit, other = self.pair
        return other if self.stated == "After" else unit

    @property
    def text(self) -> str:
        return f"{self.stated}={self.named}"

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What makes two cuts one: the same name in the same line."""
        return self.place.file, self.place.line, self.stated, self.named


@dataclass(frozen=True, slots=True)
class Untied:
    """The smallest sets of cuts that leave no cycle: all of one, or one set of several."""

    singles: tuple[Cut, ...] = ()
    several: tuple[Cut, ...] = ()
    exact: bool = True


@dataclass(slots=True)
class Knot:
    """The units of one component and the ordering among them; `is_new` tells whose places count."""

    graph: Graph
    units: frozenset[str]
    is_new: Callable[[Origin], bool]
    version: int
    edges: dict[Pair, list[tuple[str, Origin]]] = field(init=False)

    def __post_init__(self) -> None:
        self.edges = {
            (unit, other): self._stated(unit, other)
            for unit in sorted(self.units)
            for other in self.graph.neighbours(unit, "After")
            if other in self.units
        }

    def _stated(self, unit: str, other: str) -> list[tuple[str, Origin]]:
        said = self.graph.origins(unit, "After", other)
        return [("After" if side == "origin" else "Before", origin) for side, origin in said]

    def has_new(self, pair: Pair) -> bool:
        """Whether the edge is there because of the new files."""
        return any(self.is_new(origin) for _, origin in self.edges[pair])

    def cycle(self) -> list[str]:
        """A shortest cycle, of those with a new edge if there are any; each after the next."""
        best: list[str] = []
        for unit, other in self._promising():
            found = shortest_cycle(unit, other, self._after(), set(self.units))
            if found and (not best or len(found) < len(best)):
                best = found
        return best

    def _promising(self) -> list[Pair]:
        new = [pair for pair in self.edges if self.has_new(pair)]
        written = [p for p in new if any(o.kind in USER_WRITTEN for _, o in self.edges[p])]
        return written or new or list(self.edges)

    def _after(self) -> Callable[[str], list[str]]:
        after: dict[str, list[str]] = {}
        for unit, other in self.edges:
            after.setdefault(unit, []).append(other)
        return lambda unit: after.get(unit, [])

    def steps(self, cycle: list[str]) -> tuple[Edge, ...]:
        """The edges of a cycle with their places, a new place of each where there is one."""
        return tuple(
            self.step(unit, other)
            for unit, other in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True)
        )

    def step(self, unit: str, other: str) -> Edge:
        """One edge with the place that a person would want to see."""
        said = self.edges.get((unit, other)) or [("After", Origin("implicit"))]
        stated, origin = min(said, key=self._telling)
        return Edge(unit, other, origin.kind, origin.file, origin.line, stated, origin.note)

    def _telling(self, said: tuple[str, Origin]) -> tuple[bool, bool, bool]:
        origin = said[1]
        return (not self.is_new(origin), origin.kind not in USER_WRITTEN, not origin.line)

    def cuts(self) -> list[Cut]:
        """Every ordering dependency in the new files that could be removed, each once."""
        found: dict[tuple[str, int, str, str], Cut] = {}
        for cut in self._written():
            found.setdefault(cut.key, cut)
        return list(found.values())

    def _written(self) -> Iterator[Cut]:
        for pair, said in self.edges.items():
            for stated, origin in said:
                if origin.kind in USER_WRITTEN and self.is_new(origin):
                    yield Cut(pair, stated, origin)

    def cut_edges(self, cuts: Iterable[Cut]) -> list[Pair]:
        """The edges that are gone once these are removed: those that nothing else states."""
        keys = {cut.key for cut in cuts}
        return [
            pair
            for pair, said in self.edges.items()
            if all(Cut(pair, stated, origin).key in keys for stated, origin in said)
        ]

    def _unties(self, cuts: Iterable[Cut]) -> bool:
        return self._acyclic(self.cut_edges(cuts))

    def untie(self) -> Untied:
        """Find the smallest sets of cuts that leave no cycle."""
        cuts = self.cuts()
        singles = tuple(cut for cut in cuts if self._unties([cut]))
        if singles:
            return Untied(singles)
        if not self._unties(cuts):
            return Untied()
        for size in range(2, min(MAX_PLACES, len(cuts)) + 1):
            sets = list(islice(combinations(cuts, size), TRIALS + 1))
            if len(sets) > TRIALS:
                return Untied(several=self._greedy(cuts), exact=False)
            for several in sets:
                if self._unties(several):
                    return Untied(several=several)
        return Untied(several=self._greedy(cuts), exact=len(cuts) <= MAX_PLACES)

    def _greedy(self, cuts: list[Cut]) -> tuple[Cut, ...]:
        """Leave out every cut that isn't needed; small, but maybe not the smallest."""
        kept = list(cuts)
        for cut in cuts:
            rest = [other for other in kept if other is not cut]
            if self._unties(rest):
                kept = rest
        return tuple(kept)

    def freed_by(self) -> list[str]:
        """New units whose default edges all gone leave no cycle: DefaultDependencies=no."""
        found = []
        for unit in sorted(self.units):
            gone = [
                pair
                for pair, said in self.edges.items()
                if unit in pair and all(origin.kind == "default" for _, origin in said)
            ]
            if gone and self._acyclic(gone, restore=False):
                found.append(unit)
        return found

    def defused_by(self) -> list[Pair]:
        """(unit, target) where adding After=target to a new unit alone leaves no cycle."""
        return [
            (unit, target)
            for (target, unit), said in self.edges.items()
            if target.endswith(".target")
            and target not in EARLY_TARGETS
            and all(origin.kind == "default" for _, origin in said)
            and self.pulls_in(target, unit)
            and self._acyclic([(target, unit)], add=[(unit, target)], restore=False)
        ]

    def pulls_in(self, target: str, unit: str) -> bool:
        """Whether a target would order itself after the unit by default.

        Re-enacts the conditions of unit_add_default_target_dependency(), src/core/unit.c, v252.
        """
        kinds = kinds_with("default-target-dependencies", self.version)
        ends = (self.graph.node(target), self.graph.node(unit))
        return (
            ends[0].type == "target"
            and all(node.load_state == "loaded" and node.default_dependencies for node in ends)
            and target in self.graph.neighbours(unit, *kinds)
        )

    def _acyclic(
        self, without: Iterable[Pair], *, add: Iterable[Pair] = (), restore: bool = True
    ) -> bool:
        gone = set(without)
        left = {pair for pair in self.edges if pair not in gone} | set(add)
        if restore:
            left |= {(target, unit) for unit, target in gone if self._comes_back(unit, target)}
        after: dict[str, list[str]] = {}
        for unit, other in left:
            after.setdefault(unit, []).append(other)
        return not loops(self.units, lambda unit: after.get(unit, []))

    def _comes_back(self, unit: str, target: str) -> bool:
        return self.pulls_in(target, unit)


def knots(
    graph: Graph,
    components: Iterable[Iterable[str]],
    is_new: Callable[[Origin], bool],
    version: int,
) -> Iterator[Knot]:
    """The knots within these components, by "is ordered after" alone."""
    for units in components:
        yield Knot(graph, frozenset(units), is_new, version)
