"""Units and the dependencies between them, each dependency with the place that says so.

Theory of operation. A dependency is stated once, by one unit: `a.service` says `After=b.service`.
systemd then keeps two: `After` on `a.service` and the inverse, `Before`, on `b.service`. So does a
`Graph`: `add()` writes both, `neighbours()` reads either, and `origins()` tells who stated it and
where, for both directions. The same dependency may be stated more than once (in the file, in a
drop-in, by default); all origins are kept, in the order in which they were added.

This module must not know how a unit came to be loaded, nor what a job is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

Kind = Literal[
    "Requires", "RequiredBy", "Requisite", "RequisiteOf", "Wants", "WantedBy",
    "BindsTo", "BoundBy", "PartOf", "ConsistsOf", "Upholds", "UpheldBy",
    "Conflicts", "ConflictedBy", "Before", "After", "OnSuccess", "OnSuccessOf",
    "OnFailure", "OnFailureOf", "Triggers", "TriggeredBy",
    "PropagatesReloadTo", "ReloadPropagatedFrom", "PropagatesStopTo", "StopPropagatedFrom",
    "JoinsNamespaceOf", "References", "ReferencedBy", "InSlice", "SliceOf",
]  # fmt: skip

KINDS: tuple[Kind, ...] = get_args(Kind)

_PAIRS: tuple[tuple[Kind, Kind], ...] = (
    ("Requires", "RequiredBy"),
    ("Requisite", "RequisiteOf"),
    ("Wants", "WantedBy"),
    ("BindsTo", "BoundBy"),
    ("PartOf", "ConsistsOf"),
    ("Upholds", "UpheldBy"),
    ("Conflicts", "ConflictedBy"),
    ("Before", "After"),
    ("OnSuccess", "OnSuccessOf"),
    ("OnFailure", "OnFailureOf"),
    ("Triggers", "TriggeredBy"),
    ("PropagatesReloadTo", "ReloadPropagatedFrom"),
    ("PropagatesStopTo", "StopPropagatedFrom"),
    ("JoinsNamespaceOf", "JoinsNamespaceOf"),
    ("References", "ReferencedBy"),
    ("InSlice", "SliceOf"),
)

INVERSE: dict[Kind, Kind] = dict(_PAIRS) | {b: a for a, b in _PAIRS}
"""What systemd writes on the other unit when one unit states a dependency."""

OriginKind = Literal["file", "dropin", "link", "install", "default", "implicit"]
LoadState = Literal["loaded", "not-found", "bad-setting", "error", "masked"]
ActiveState = Literal["active", "reloading", "inactive", "failed", "activating", "deactivating"]
Side = Literal["origin", "destination"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a dependency comes from.

    `file`: a line of the fragment; `dropin`: a line of a drop-in; `link`: an entry of a .wants/,
    .requires/ or .upholds/ directory; `install`: the same, but of an [Install] section that isn't
    enabled yet; `default`: DefaultDependencies=yes; `implicit`: another setting or the unit's type.
    `line` is 1-based and 0 where there is none. `note` says the rule in a few words ("a target
    orders itself after what it wants"), and `file`/`line` then point at the line that caused it.
    `word` is systemd's own class of origin where it isn't that of the kind: `path`, `mount-file`,
    `slice-property`…
    """

    kind: OriginKind
    file: str = ""
    line: int = 0
    note: str = ""
    word: str = ""

    @property
    def mask(self) -> str:
        """The word `systemd --test` prints for it: file, default, implicit, path…"""
        return self.word or (self.kind if self.kind in ("default", "implicit") else "file")


@dataclass(frozen=True, slots=True)
class Node:
    """One unit, as far as a transaction looks at it; `names` holds its aliases and its own name."""

    name: str
    names: frozenset[str] = frozenset()
    load_state: LoadState = "loaded"
    default_dependencies: bool = True
    perpetual: bool = False
    active_state: ActiveState = "inactive"
    allow_isolate: bool = False
    ignore_on_isolate: bool = False

    @property
    def active(self) -> bool:
        """Re-enacts UNIT_IS_ACTIVE_OR_RELOADING(), src/basic/unit-def.h, v252."""
        return self.active_state in ("active", "reloading")

    @property
    def inactive(self) -> bool:
        """Re-enacts UNIT_IS_INACTIVE_OR_FAILED(), src/basic/unit-def.h, v252."""
        return self.active_state in ("inactive", "failed")

    @property
    def type(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(slots=True)
class Graph:
    """Units by name and their dependencies in both directions; filled once, then only read.

    `one_way` kinds have no inverse: JoinsNamespaceOf before v254.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    one_way: frozenset[Kind] = frozenset()
    _near: dict[str, dict[Kind, dict[str, None]]] = field(default_factory=dict)
    _stated: dict[tuple[str, Kind, str], tuple[Origin, ...]] = field(default_factory=dict)

    def put(self, node: Node) -> None:
        """Add or replace a unit; all its names then mean it."""
        self.nodes[node.name] = node
        for name in node.names:
            if name != node.name:
                self.aliases[name] = node.name

    def id(self, name: str) -> str:
        """The unit's own name for any of its names; a name that nobody has stays itself."""
        return self.aliases.get(name, name)

    def node(self, name: str) -> Node:
        """The unit of that name; a unit that was never put is not-found."""
        known = self.nodes.get(self.id(name))
        return known or Node(name, load_state="not-found", default_dependencies=False)

    def add(self, unit: str, kind: Kind, other: str, origin: Origin) -> bool:
        """State a dependency and its inverse; tell whether it is new (a further origin isn't).

        Re-enacts unit_add_dependency(), src/core/unit.c, v252. A unit's dependency on itself is
        dropped, as there; the caller warns.
        """
        unit, other = self.id(unit), self.id(other)
        if unit == other:
            return False
        new = not self.has(unit, kind, other)
        key = (unit, kind, other)
        had = self._stated.get(key, ())
        if origin not in had:
            self._stated[key] = (*had, origin)
        self._near.setdefault(unit, {}).setdefault(kind, {})[other] = None
        if kind in self.one_way:
            return new
        self._near.setdefault(other, {}).setdefault(INVERSE[kind], {})[unit] = None
        return new

    def retract(self, unit: str, masks: frozenset[str]) -> None:
        """Take back what a unit stated with origins of these words.

        Re-enacts unit_remove_dependencies(), src/core/unit.c, v252.
        """
        for key in [key for key in self._stated if key[0] == unit]:
            _, kind, other = key
            left = tuple(origin for origin in self._stated[key] if origin.mask not in masks)
            if left:
                self._stated[key] = left
                continue
            del self._stated[key]
            if (other, INVERSE[kind], unit) not in self._stated:
                self._near[unit][kind].pop(other, None)
                self._near.get(other, {}).get(INVERSE[kind], {}).pop(unit, None)

    def with_nodes(self, changed: Iterable[Node]) -> "Graph":
        """The same dependencies with some units in another state; the dependencies are shared."""
        nodes = self.nodes | {node.name: node for node in changed}
        return Graph(nodes, self.aliases, self.one_way, self._near, self._stated)

    def has(self, unit: str, kind: Kind, other: str) -> bool:
        return other in self._near.get(unit, {}).get(kind, ())

    def neighbours(self, unit: str, *kinds: Kind) -> Iterator[str]:
        """Every unit that `unit` has one of these dependencies on, once, in order of adding."""
        near = self._near.get(unit)
        if near is None:
            return
        if len(kinds) == 1:
            yield from near.get(kinds[0], ())
            return
        yield from dict.fromkeys(other for kind in kinds for other in near.get(kind, ()))

    def kinds(self, unit: str) -> Iterable[Kind]:
        """The kinds of dependency that `unit` has, stated by it or by others."""
        return self._near.get(unit, {}).keys()

    def origins(self, unit: str, kind: Kind, other: str) -> list[tuple[Side, Origin]]:
        """Who says that `unit` has this dependency on `other`: `unit` (origin) or `other`."""
        own = self._stated.get((unit, kind, other), ())
        theirs = self._stated.get((other, INVERSE[kind], unit), ())
        if kind in self.one_way:
            theirs = ()
        return [("origin", o) for o in own] + [("destination", o) for o in theirs]

    def stated(self) -> Iterator[tuple[str, Kind, str, tuple[Origin, ...]]]:
        """Every dependency as it was stated, each once, without inverses."""
        for (unit, kind, other), origins in self._stated.items():
            yield unit, kind, other, origins
