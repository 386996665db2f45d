"""The start of a manager: what it has before any unit is asked for, then the units asked for.

Re-enacts manager_enumerate_perpetual() and manager_enumerate(), src/core/manager.c, and
mount_setup_unit(), src/core/mount.c, v252.
Differs: devices that udev announces are not loaded, but for `Manager.device_nodes`; of the targets
that v262 has built in, those without a file are not found here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sdqueue.boot.graph import Graph, Kind, Node
from sdqueue.boot.loading.manager import Manager, MountPoint
from sdqueue.boot.loading.mountneeds import mount_name
from sdqueue.boot.loading.queue import Entry, Load, Loading, Unsure
from sdqueue.boot.loading.storage import mount_dependencies
from sdqueue.boot.loading.types import is_perpetual, read
from sdqueue.unitfile.refusal import is_api_mount
from sdqueue.words import unitname
from sdqueue.words.problem import Problem

SYMMETRIC_SINCE = 254
ONE_WAY: frozenset[Kind] = frozenset({"JoinsNamespaceOf"})
IGNORED_ON_ISOLATE = frozenset({"automount", "device", "mount", "scope", "slice", "swap"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of it: the graph, warnings about what was dropped, and what hangs on chance."""

    graph: Graph
    problems: tuple[Problem, ...]
    unsure: tuple[Unsure, ...]


def build(
    load: Load,
    manager: Manager,
    wanted: Iterable[str],
    *,
    fragment_of: Callable[[str], str | None] | None = None,
) -> Loaded:
    """Load a manager's perpetual units and mounts, then each of `wanted` with all it names.

    `load` returns the unit of a valid name, the same for all its names; `fragment_of` the file a
    name is read from, without loading it.
    """
    one_way = ONE_WAY if manager.version < SYMMETRIC_SINCE else frozenset()
    fragment_of = fragment_of or (lambda name: load(name).fragment_file)
    loading = Loading(load, manager, read, fragment_of, Graph(one_way=one_way))
    _enumerate_perpetual(loading)
    for mount in manager.mounts:
        _enumerate_mount(loading, mount)
    for path in manager.device_nodes:
        _enumerate_device(loading, path)
    loading.dispatch()
    for name in wanted:
        loading.refer(name)
    for entry in loading.entries.values():
        loading.graph.put(_node(entry))
    return Loaded(loading.graph, tuple(loading.problems), tuple(loading.unsure))


def unit_of_mount(mount: MountPoint) -> str | None:
    """Return the mount unit that the kernel's mount has, None where it gets none."""
    where = unitname.simplify_path(mount.where)
    return None if is_api_mount(where) or mount.fstype == "autofs" else mount_name(where)


def _enumerate_perpetual(loading: Loading) -> None:
    names = ["-.mount", unitname.ROOT_SLICE, "system.slice", "init.scope"]
    for name in names:
        if is_perpetual(name, user=loading.manager.user):
            entry = loading.prepare(name)
            if entry is not None:
                entry.active_state = "active"


def _enumerate_mount(loading: Loading, mount: MountPoint) -> None:
    name = unit_of_mount(mount)
    if name is None:
        return
    where = unitname.simplify_path(mount.where)
    new = loading.known(name) is None
    entry = loading.stub(name)
    entry.mounted = MountPoint(where, mount.what, mount.fstype, mount.options)
    entry.active_state = "active"
    if entry.load_state == "not-found":
        entry.load_state = "loaded"
    mount_dependencies(loading, entry)
    if new:
        loading.enqueue(entry, name)


def _enumerate_device(loading: Loading, path: str) -> None:
    name = loading.name_from_path(path, "device")
    entry = loading.prepare(name) if name and loading.manager.devices else None
    if entry is not None:
        entry.active_state = "activating"


def _node(entry: Entry) -> Node:
    unit = entry.unit
    assert entry.load_state != "stub"
    return Node(
        name=entry.name,
        names=unit.names,
        load_state=entry.load_state,
        default_dependencies=entry.default_dependencies,
        perpetual=entry.perpetual,
        active_state=entry.active_state,
        allow_isolate=unit.flag("Unit", "AllowIsolate", default=False),
        ignore_on_isolate=unit.flag(
            "Unit", "IgnoreOnIsolate", default=entry.type in IGNORED_ON_ISOLATE
        ),
    )
