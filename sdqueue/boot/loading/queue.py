"""The load queue: which units get loaded, in which order, and how dependencies are stated.

Theory of operation. Naming a unit makes a stub and puts it in front of a queue; the queue is
worked off from its front until it is empty, and each unit that is loaded from it names further
units. Only then, when all aliases are known, the targets get their default ordering. The order is
systemd's own, because some results hang on it: whether a mount unit or the unit that needs it
states their dependency (`path` or `file`), and which of two targets that want each other is the
later one. Where systemd's order is that of a hash table the order here is that of statement, and
what hangs on it is noted in `Loading.unsure`.

Example: multi-user.target names a.service (Wants), then b.service. b.service is loaded first. If
b.service needs /srv and a mount unit for it exists, that becomes a stub in front of a.service; when
it is loaded it finds that b.service needs it, and states After= on b.service's behalf, as `path`.

To be kept in step by hand: an `Entry` is one unit, however many names it has; names that turn out
to be aliases lead to the same entry from the start, where systemd merges two stubs later. The
order stays the same, since a stub of each name is queued.

Re-enacts manager_load_unit_prepare(), manager_dispatch_load_queue() and
manager_dispatch_target_deps_queue(), src/core/manager.c; unit_add_dependency() and
unit_add_default_target_dependency(), src/core/unit.c, v252.
Differs: units are never unloaded, and a unit is loaded once; an alias of a masked unit is always
that unit, where systemd makes it another one, in error, if the masked unit was loaded first.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from sdqueue.boot import atoms
from sdqueue.boot.graph import ActiveState, Graph, Kind, LoadState, Origin
from sdqueue.boot.loading.manager import Manager, MountPoint
from sdqueue.unitfile.unit import Unit
from sdqueue.words import unitname
from sdqueue.words.problem import Problem
from sdqueue.words.unitname import NameKind

MountsKind = Literal["Requires", "Wants"]
CAN_TRIGGER = frozenset({"automount", "path", "socket", "timer"})
CANNOT_FAIL = frozenset({"device", "slice"})
HAS_CGROUP = frozenset({"service", "mount", "swap", "socket", "slice", "scope"})
TARGET_NOTE = "a target orders itself after what it pulls in"

Load = Callable[[str], Unit]
kinds_with = lru_cache(atoms.kinds_with)


@dataclass(slots=True, eq=False)
class Entry:
    """One unit on its way from stub to loaded.

    `speaks_as` is what its lines call it by: while the unit's own file is read, the name by which
    it was first asked for, be that an alias; afterwards its own name.
    `mounts_for` maps what it needs below which path to the origin of that need. `slice` is where
    it runs; the dependency is stated when all settings are read, since the last one counts.
    """

    unit: Unit
    name: str
    type: str
    speaks_as: str
    load_state: LoadState | Literal["stub"] = "stub"
    default_dependencies: bool = True
    perpetual: bool = False
    mounted: MountPoint | None = None
    active_state: ActiveState = "inactive"
    slice: tuple["Entry", Origin] | None = None
    service: "Entry | None" = None
    mounts_for: dict[MountsKind, dict[str, Origin]] = field(default_factory=dict)
    in_target_queue: bool = False


@dataclass(frozen=True, slots=True)
class Unsure:
    """A dependency that hangs on an order which systemd does not fix."""

    unit: str
    other: str
    why: str


@dataclass(slots=True)
class Loading:
    """All entries, the queues, and the graph that grows; `load` returns the unit of any name.

    `needing` says who needs what is mounted at a path (`mountneeds`).
    """

    load: Load
    manager: Manager
    read: Callable[["Loading", Entry], None]
    fragment_of: Callable[[str], str | None]
    graph: Graph = field(default_factory=Graph)
    entries: dict[str, Entry] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unsure: list[Unsure] = field(default_factory=list)
    bus_names: dict[str, Entry] = field(default_factory=dict)
    _names: dict[str, Entry] = field(default_factory=dict)
    _queue: list[tuple[Entry, str]] = field(default_factory=list)
    _dispatching: bool = False
    _targets: list[Entry] = field(default_factory=list)
    needing: dict[tuple[MountsKind, str], dict[Entry, None]] = field(default_factory=dict)

    def known(self, name: str) -> Entry | None:
        """Return the entry of a name that has been named before."""
        return self._names.get(name)

    def refer(self, name: str) -> Entry | None:
        """Return the entry of a name, loading it as soon as may be.

        That is at once unless another unit is being loaded, which is put before it.
        """
        new = name not in self._names
        entry = self.prepare(name)
        if new and not self._dispatching:
            self.dispatch()
        return entry

    def prepare(self, name: str) -> Entry | None:
        """Return the entry of a name, queued if it is new; None where no unit can be so named."""
        entry = self._names.get(name)
        if entry is not None:
            return entry
        kind = unitname.kind_of(name)
        if kind is None or kind is NameKind.TEMPLATE:
            return None
        unit_type = name.rpartition(".")[2]
        if kind is NameKind.INSTANCE and unit_type not in unitname.MAY_TEMPLATE:
            return None
        entry = self.stub(name)
        self.enqueue(entry, name)
        return entry

    def stub(self, name: str) -> Entry:
        """Return the entry of a valid name without queueing it."""
        unit = self.load(name)
        entry = self.entries.get(unit.name)
        if entry is None:
            entry = Entry(unit, unit.name, unit.name.rpartition(".")[2], unit.name)
            self.entries[unit.name] = entry
        return self._names.setdefault(name, entry)

    def enqueue(self, entry: Entry, name: str) -> None:
        """Put a unit, asked for by this name, in front of the queue."""
        self._queue.append((entry, name))

    def related(self, entry: Entry, unit_type: str) -> Entry | None:
        """Return the unit of the same name with another type, loading it."""
        return self.refer(f"{entry.name.rpartition('.')[0]}.{unit_type}")

    def triggers(self, entry: Entry) -> bool:
        """Say whether a unit has one that it triggers."""
        return any(True for _ in self.graph.neighbours(entry.name, "Triggers"))

    @staticmethod
    def name_from_path(path: str, unit_type: str) -> str | None:
        """Return the unit that is named after a path, None where none can be."""
        try:
            return unitname.from_path(path, unit_type)
        except ValueError:
            return None

    def dispatch(self) -> None:
        """Load everything that is queued, then order targets after what they pull in."""
        self._dispatching = True
        while self._queue:
            entry, name = self._queue.pop()
            if entry.load_state == "stub":
                entry.speaks_as = name
                for name in entry.unit.names:
                    self._names.setdefault(name, entry)
                self.read(self, entry)
        self._dispatching = False
        while self._targets:
            entry = self._targets.pop()
            entry.in_target_queue = False
            kinds = kinds_with("default-target-dependencies", self.manager.version)
            for target in list(self.graph.neighbours(entry.name, *kinds)):
                self.order_target(entry, self.entries[target])

    def queue_target(self, entry: Entry) -> None:
        """Remember to look at the targets that pull in this unit."""
        if not entry.in_target_queue:
            entry.in_target_queue = True
            self._targets.append(entry)

    def state(self, entry: Entry, kinds: tuple[Kind, ...], name: str, origin: Origin) -> bool:
        """State dependencies on a unit by name, loading it; False where there can't be such one."""
        resolved = resolve_template(entry.speaks_as, name)
        other = self.refer(resolved) if resolved else None
        if other is None:
            return False
        for kind in kinds:
            self.add(entry, kind, other, origin)
        return True

    def add(self, entry: Entry, kind: Kind, other: Entry, origin: Origin) -> None:
        """State one dependency, unless it is one that systemd refuses."""
        why = "" if entry is other else refused(entry, kind, other)
        if entry is other:
            if origin.kind != "implicit":
                self.warn(origin, f"{kind}={other.name} on itself is dropped")
        elif why:
            self.warn(origin, f"{kind}={other.name} ignored: {why}")
        else:
            self.graph.add(entry.name, kind, other.name, origin)

    def warn(self, origin: Origin, message: str) -> None:
        """Keep a warning about a place."""
        self.problems.append(Problem(origin.file, origin.line, message, "warning"))

    def order_now(self, target: Entry) -> None:
        """Order a target after what it pulls in as far as that is loaded, PartOf= counted too.

        What it is part of is ordered before it only if it happens to be loaded by now.
        """
        kinds = kinds_with("add-default-target-dependency-queue", self.manager.version)
        for name in list(self.graph.neighbours(target.name, *kinds)):
            other = self.entries[name]
            self.order_target(other, target)
            if self.graph.has(target.name, "PartOf", name):
                self._note_part_of(target, other)

    def _note_part_of(self, target: Entry, other: Entry) -> None:
        pulled = any(self.graph.has(target.name, kind, other.name) for kind in _PULLING[:-1])
        wants_none = not other.unit.flag("Unit", "DefaultDependencies", default=True)
        if pulled or wants_none or not other.unit.loaded:
            return
        why = "PartOf= of a target orders it only if the other unit happens to be loaded before"
        self.unsure.append(Unsure(target.name, other.name, why))

    def order_target(self, entry: Entry, target: Entry) -> None:
        """Order a target after a unit that it pulls in, unless it is before it already."""
        if target.type != "target" or entry.load_state != "loaded" or entry is target:
            return
        if target.load_state != "loaded":
            return
        if not (entry.default_dependencies and target.default_dependencies):
            return
        if self.graph.has(target.name, "Before", entry.name):
            self._note_mutual(entry, target)
            return
        cause = _cause(self.graph, target.name, entry.name)
        origin = Origin("default", cause.file, cause.line, TARGET_NOTE)
        self.graph.add(target.name, "After", entry.name, origin)

    def _note_mutual(self, entry: Entry, target: Entry) -> None:
        said = self.graph.origins(target.name, "Before", entry.name)
        if all(origin.note == TARGET_NOTE for _, origin in said):
            why = "each of these targets pulls in the other: which is the later one is chance"
            self.unsure.append(Unsure(target.name, entry.name, why))


def refused(entry: Entry, kind: Kind, other: Entry) -> str:
    """Return why systemd doesn't take a dependency between these two, "" where it does."""
    if kind == "Before" and other.type == "device":
        return "a device can't be delayed"
    if kind == "OnFailure" and entry.type in CANNOT_FAIL:
        return f"a {entry.type} can't fail"
    if kind == "Triggers" and entry.type not in CAN_TRIGGER:
        return f"a {entry.type} can't trigger"
    if kind == "TriggeredBy" and other.type not in CAN_TRIGGER:
        return f"a {other.type} can't trigger"
    return ""


def resolve_template(unit: str, name: str) -> str | None:
    """Give a template the unit's instance, or else its prefix; None where that makes no name.

    Re-enacts resolve_template(), src/core/unit.c, v252.
    """
    if "@." not in name or not unitname.is_template(name):
        return name
    instance = unitname.instance_of(unit) or unitname.prefix_of(unit)
    try:
        return unitname.with_instance(name, instance)
    except ValueError:
        return None


_PULLING: tuple[Kind, ...] = ("Wants", "Requires", "BindsTo", "Requisite", "Upholds", "PartOf")


def _cause(graph: Graph, target: str, other: str) -> Origin:
    """Return the statement that made a target pull in a unit."""
    for kind in _PULLING:
        if graph.has(target, kind, other):
            return graph.origins(target, kind, other)[0][1]
    return Origin("default")
