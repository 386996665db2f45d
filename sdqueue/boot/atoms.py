"""What each kind of dependency does: the dependency atoms that a transaction looks at.

Re-enacts atom_map[], src/core/unit-dependency-atom.c, v252 to v262.
Differs: only the atoms that take part in building a transaction, in ordering, or in default
dependencies of targets; what acts later, on running units, is left out.
"""

from functools import cache
from typing import Literal, get_args

from sdqueue.boot.graph import KINDS, Kind

Atom = Literal[
    "pull-in-start",
    "pull-in-start-ignored",
    "pull-in-verify",
    "pull-in-stop",
    "pull-in-stop-ignored",
    "propagate-stop",
    "propagate-stop-graceful",
    "propagates-reload-to",
    "add-default-target-dependency-queue",
    "default-target-dependencies",
    "before",
    "after",
    "triggers",
    "triggered-by",
]

ATOMS: tuple[Atom, ...] = get_args(Atom)

ATOM_MAP: dict[Kind, frozenset[Atom]] = {
    "Requires": frozenset({"pull-in-start", "add-default-target-dependency-queue"}),
    "Requisite": frozenset({"pull-in-verify", "add-default-target-dependency-queue"}),
    "Wants": frozenset({"pull-in-start-ignored", "add-default-target-dependency-queue"}),
    "BindsTo": frozenset({"pull-in-start", "add-default-target-dependency-queue"}),
    "Upholds": frozenset({"pull-in-start-ignored", "add-default-target-dependency-queue"}),
    "PartOf": frozenset({"add-default-target-dependency-queue"}),
    "RequiredBy": frozenset({"propagate-stop", "default-target-dependencies"}),
    "RequisiteOf": frozenset({"propagate-stop", "default-target-dependencies"}),
    "WantedBy": frozenset({"default-target-dependencies"}),
    "BoundBy": frozenset({"propagate-stop", "default-target-dependencies"}),
    "UpheldBy": frozenset({"default-target-dependencies"}),
    "ConsistsOf": frozenset({"propagate-stop"}),
    "Conflicts": frozenset({"pull-in-stop"}),
    "ConflictedBy": frozenset({"pull-in-stop-ignored"}),
    "PropagatesStopTo": frozenset({"propagate-stop-graceful"}),
    "PropagatesReloadTo": frozenset({"propagates-reload-to"}),
    "Before": frozenset({"before"}),
    "After": frozenset({"after"}),
    "Triggers": frozenset({"triggers"}),
    "TriggeredBy": frozenset({"triggered-by"}),
}
"""The table of v254 and later; a kind that isn't listed has no atom of those above."""

GRACEFUL_SINCE = 254
"""PropagatesStopTo= was an ordinary propagation of stop before this version."""


def atoms(kind: Kind, version: int) -> frozenset[Atom]:
    """What one kind of dependency does in that version of systemd."""
    found = ATOM_MAP.get(kind, frozenset())
    if version < GRACEFUL_SINCE and "propagate-stop-graceful" in found:
        return frozenset({"propagate-stop"})
    return found


@cache
def kinds_with(atom: Atom, version: int) -> tuple[Kind, ...]:
    """The kinds of dependency that have an atom, in systemd's order of kinds."""
    return tuple(kind for kind in KINDS if atom in atoms(kind, version))
