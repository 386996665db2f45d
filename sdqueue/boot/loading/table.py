"""Which dependencies DefaultDependencies=yes gives a unit: the table, one row a statement.

A row holds for a type of unit, a range of versions, a manager (`system`, `user` or both) and
traits of the unit (`Traits`, found out by `types`). The order of the rows is the order in which
systemd states them, which is the order in which the units named are loaded.

Re-enacts service_add_default_dependencies() and its like, src/core/{service,socket,timer,path,
slice,scope,automount,swap,mount,target}.c, v252 to v262.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sdqueue.boot.graph import Kind

Trait = Literal["network", "nofail", "tmpfs", "calendar", "extrinsic", "container", "shutdown"]
Scope = Literal["system", "user", "both"]


@dataclass(frozen=True, slots=True)
class Default:
    """A unit of `type` states `kinds` of `other` by default; `until` is the first without."""

    type: str
    kinds: tuple[Kind, ...]
    other: str
    scope: Scope = "both"
    when: frozenset[Trait] = frozenset()
    unless: frozenset[Trait] = frozenset()
    since: int = 0
    until: int = 1_000_000


def _if(*traits: Trait) -> frozenset[Trait]:
    return frozenset(traits)


STOP: tuple[Kind, ...] = ("Before", "Conflicts")
NEED: tuple[Kind, ...] = ("After", "Requires")
PULL: tuple[Kind, ...] = ("Wants", "After")

DEFAULTS: tuple[Default, ...] = (
    Default("service", NEED, "sysinit.target", "system"),
    Default("service", ("Requires",), "basic.target", "user"),
    Default("service", ("After",), "basic.target"),
    Default("service", STOP, "shutdown.target"),
    Default("socket", ("Before",), "sockets.target"),
    Default("socket", NEED, "sysinit.target", "system"),
    Default("socket", STOP, "shutdown.target"),
    Default("timer", ("Before",), "timers.target"),
    Default("timer", NEED, "sysinit.target", "system"),
    Default("timer", ("After",), "time-sync.target", "system", _if("calendar")),
    Default("timer", ("After",), "time-set.target", "system", _if("calendar")),
    Default("timer", STOP, "shutdown.target"),
    Default("path", ("Before",), "paths.target"),
    Default("path", NEED, "sysinit.target", "system"),
    Default("path", STOP, "shutdown.target"),
    Default("slice", STOP, "shutdown.target"),
    Default("scope", STOP, "shutdown.target"),
    Default("target", STOP, "shutdown.target", unless=_if("shutdown")),
    Default("automount", ("Before",), "local-fs.target", "system"),
    Default("automount", ("After",), "local-fs-pre.target", "system"),
    Default("automount", STOP, "umount.target", "system"),
    Default("swap", ("Before",), "swap.target", "system", unless=_if("container"), until=261),
    Default("swap", ("After",), "remote-fs-pre.target", "system", _if("network"),
            _if("container"), since=261),
    Default("swap", ("Before",), "remote-fs.target", "system", _if("network"),
            _if("container"), since=261),
    Default("swap", ("After",), "network.target", "system", _if("network"),
            _if("container"), since=261),
    Default("swap", PULL, "network-online.target", "system", _if("network"),
            _if("container"), since=261),
    Default("swap", ("Before",), "swap.target", "system", unless=_if("container", "network"),
            since=261),
    Default("swap", STOP, "umount.target", "system", unless=_if("container")),
    Default("mount", ("Before",), "remote-fs.target", "system", _if("network"),
            _if("extrinsic", "nofail")),
    Default("mount", ("Before",), "local-fs.target", "system",
            unless=_if("extrinsic", "nofail", "network")),
    Default("mount", ("After",), "remote-fs-pre.target", "system", _if("network"),
            _if("extrinsic")),
    Default("mount", ("After",), "local-fs-pre.target", "system",
            unless=_if("extrinsic", "network")),
    Default("mount", STOP, "umount.target", "system", unless=_if("extrinsic")),
    Default("mount", ("After",), "network.target", "system", _if("network"), _if("extrinsic")),
    Default("mount", PULL, "network-online.target", "system", _if("network"), _if("extrinsic")),
    Default("mount", ("After",), "swap.target", "system", _if("tmpfs"), _if("extrinsic")),
)  # fmt: skip


@lru_cache(maxsize=256)
def defaults(
    unit_type: str, version: int, traits: frozenset[Trait], *, user: bool
) -> tuple[Default, ...]:
    """Return the rows that hold for a unit of this type, with these traits, in order."""
    return tuple(_holding(unit_type, version, traits, "user" if user else "system"))


def _holding(
    unit_type: str, version: int, traits: frozenset[Trait], scope: Scope
) -> Iterator[Default]:
    for row in DEFAULTS:
        if (
            row.type == unit_type
            and row.since <= version < row.until
            and row.scope in ("both", scope)
            and row.when <= traits
            and not row.unless & traits
        ):
            yield row
