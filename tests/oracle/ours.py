"""Our own answer in the judge's words, for the manager that the judge was."""

import re
from pathlib import Path

from graph_oracle import GUEST_UNITS, Dump, Manager, Systemd

from sdqueue.boot.graph import Graph
from sdqueue.boot.loading import Loaded, MountPoint, build, unit_of_mount
from sdqueue.boot.loading import Manager as ManagerFacts
from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath.tree import Tree

CONTAINERS = frozenset(
    {"docker", "podman", "lxc", "lxc-libvirt", "systemd-nspawn", "openvz", "rkt", "wsl", "proot"}
)
IGNORED_KINDS = frozenset({"References", "ReferencedBy"})
_VIRTUALIZATION = re.compile(r"Detected virtualization (\S+)\.")
_OCTAL = re.compile(r"\\([0-7]{3})")

Edges = dict[str, dict[str, dict[str, str]]]


def facts(systemd: Systemd, dump: Dump, manager: Manager = "system") -> ManagerFacts:
    """Return what the judge's manager saw of the machine."""
    virtualization = _VIRTUALIZATION.search(dump.log)
    mounts = mount_points(systemd.seen("/proc/self/mountinfo", manager=manager))
    controllers = systemd.seen("/sys/fs/cgroup/cgroup.controllers", manager=manager).split()
    devices = [m.what for m in mounts if m.what.startswith("/dev/")]
    return ManagerFacts(
        version=systemd.version(),
        user=manager == "user",
        container=bool(virtualization and virtualization.group(1) in CONTAINERS),
        memory_controller="memory" in controllers,
        mounts=tuple(mounts),
        device_nodes=tuple(dict.fromkeys(devices)),
        host=_host(systemd, manager),
    )


def _host(systemd: Systemd, manager: Manager) -> Host:
    hostname = systemd.seen("/proc/sys/kernel/hostname").strip()
    if manager == "system":
        return Host(hostname=hostname)
    home, runtime = "/nonexistent", "/tmp"
    state = f"{home}/.local/state" if systemd.version() >= 254 else f"{home}/.config"
    logs = f"{state}/log" if systemd.version() >= 254 else f"{home}/.config/log"
    return Host(
        hostname=hostname, home=home, runtime_dir=runtime, state_dir=state,
        cache_dir=f"{home}/.cache", logs_dir=logs, config_dir=f"{home}/.config",
    )  # fmt: skip


def mount_points(mountinfo: str) -> list[MountPoint]:
    """Read the lines of a mountinfo file."""
    found = []
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        rest = fields[fields.index("-") + 1 :]
        where, what = _unescape(fields[4]), _unescape(rest[1])
        found.append(MountPoint(where, what, rest[0], f"{fields[5]},{rest[2]}"))
    return found


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found.group(1), 8)), text)


def load(
    systemd: Systemd,
    unit_path: tuple[str, ...],
    target: str,
    manager: ManagerFacts,
    units: Path | None = None,
) -> Loaded:
    """Load `target` as the judge does; `units` stands for GUEST_UNITS in a tree's search path."""
    guest = units is not None and all(place.startswith(GUEST_UNITS) for place in unit_path)
    root = "" if guest else str(systemd.tree or "")
    places = [
        place.replace(GUEST_UNITS, str(units)) if guest else f"{root}{place}" for place in unit_path
    ]
    present = frozenset(name for m in manager.mounts if (name := unit_of_mount(m)))
    found = UnitSet(
        Tree(root, tuple(places)),
        host=manager.host,
        version=manager.version,
        user=manager.user,
        present=present,
    )
    return build(found.get, manager, [target], fragment_of=found.fragment_file)


def edges(graph: Graph) -> Edges:
    """Return unit → kind → other → origins, in the judge's spelling, sorted."""
    found: Edges = {}
    for name in graph.nodes:
        of_unit = found.setdefault(name, {})
        for kind in graph.kinds(name):
            if kind not in IGNORED_KINDS:
                of_unit[kind] = {
                    other: _origins(graph, name, kind, other)
                    for other in graph.neighbours(name, kind)
                }
    return found


def _origins(graph: Graph, unit: str, kind: object, other: str) -> str:
    said = graph.origins(unit, kind, other)  # type: ignore[arg-type]
    return " ".join(sorted({f"{side}-{origin.mask}" for side, origin in said}))


def differences(dump: Dump, graph: Graph) -> list[str]:
    """Return how the judge's graph and ours differ, one line each; [] is agreement."""
    ours, out = edges(graph), []
    out += [f"{unit}: only the judge has it" for unit in sorted(dump.units.keys() - ours.keys())]
    out += [f"{unit}: only we have it" for unit in sorted(ours.keys() - dump.units.keys())]
    for name in sorted(dump.units.keys() & ours.keys()):
        theirs = dump.units[name]
        node = graph.nodes[name]
        if theirs.load != node.load_state:
            out.append(f"{name}: {theirs.load}, not {node.load_state}")
        if theirs.active != node.active_state:
            out.append(f"{name}: {theirs.active}, not {node.active_state}")
        if {name, *theirs.aliases} != {name, *node.names} and theirs.load != "not-found":
            out.append(f"{name}: also {sorted(theirs.aliases)}, not {sorted(node.names)}")
        out += _edge_differences(name, theirs.edges, ours[name])
    return out


def _edge_differences(
    name: str, theirs: dict[str, dict[str, str]], ours: dict[str, dict[str, str]]
) -> list[str]:
    out = []
    for kind in sorted((theirs.keys() | ours.keys()) - IGNORED_KINDS):
        judged, made = theirs.get(kind, {}), ours.get(kind, {})
        for other in sorted(judged.keys() | made.keys()):
            if judged.get(other) != made.get(other):
                want, have = judged.get(other), made.get(other)
                out.append(f"{name}: {kind}={other}: judge {want}, we {have}")
    return out
