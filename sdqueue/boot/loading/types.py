"""What each type of unit states besides what its lines say, and in which order that happens.

`read()` loads one unit whose files have been read; the parts that only one type has are functions
named after it. Re-enacts unit_load(), src/core/unit.c, and service_load() and its like,
src/core/*.c, v252 to v262.
"""

from collections.abc import Callable, Iterator

from sdqueue.boot.graph import Kind, Origin
from sdqueue.boot.loading import execcontext, values
from sdqueue.boot.loading.mounts import Parameters, automount_place, fragment, in_force
from sdqueue.boot.loading.queue import HAS_CGROUP, Entry, Loading
from sdqueue.boot.loading.settings import apply_links, apply_settings
from sdqueue.boot.loading.table import Trait, defaults
from sdqueue.unitfile.unit import LoadState, Setting
from sdqueue.words import unitname

PERPETUAL = frozenset({"-.mount", "-.slice", "init.scope"})
PERPETUAL_SYSTEM = PERPETUAL | {"system.slice"}
DEVICE_PATHS = ("/dev/", "/sys/")
NOT_DEVICES = frozenset({"/dev/root", "/dev/nfs"})
QUOTA_UNTIL = 256
QUOTA_UNITS = ("systemd-quotacheck.service", "quotaon.service")
OOM_RULES_SINCE = 261
MASKED_ALONE_SINCE = 257
"""Before this, links and drop-ins of masked units are read; fixed in v259, also in v257.9."""
MOUNT_WORDS = frozenset({"mountinfo", "mount-file"})
TIMER_STAMPS = "/var/lib/systemd/timers"

FROM_FILE = "file"
AFTER: tuple[Kind, ...] = ("After",)
TRIGGER: tuple[Kind, ...] = ("Before", "Triggers")
NEED: tuple[Kind, ...] = ("After", "Requires")

_PATHS_OF_PATH = (
    "PathExists",
    "PathExistsGlob",
    "PathChanged",
    "PathModified",
    "DirectoryNotEmpty",
)
_TIMES = (
    "OnCalendar",
    "OnActiveSec",
    "OnBootSec",
    "OnStartupSec",
    "OnUnitActiveSec",
    "OnUnitInactiveSec",
)
_PATH_SOCKETS = ("ListenFIFO", "ListenSpecial", "ListenUSBFunction")
_LISTEN = (
    "ListenStream",
    "ListenDatagram",
    "ListenSequentialPacket",
    "ListenNetlink",
    "ListenMessageQueue",
    *_PATH_SOCKETS,
)
_ACCEPTING = frozenset({"ListenStream", "ListenSequentialPacket"})
_SOCKET_COMMANDS = ("ExecStartPre", "ExecStartPost", "ExecStopPre", "ExecStopPost")


def read(loading: Loading, entry: Entry) -> None:
    """Load one unit: its lines, its links, its drop-ins, what its type adds, what comes last."""
    unit = entry.unit
    entry.perpetual = is_perpetual(entry.name, user=loading.manager.user)
    state = unit.load_state
    if state is LoadState.NOT_FOUND and entry.mounted is None:
        entry.load_state = "not-found"
        return
    entry.load_state = state.value
    entry.default_dependencies = unit.flag(
        "Unit", "DefaultDependencies", default=not entry.perpetual
    )
    if state is LoadState.MASKED and loading.manager.version >= MASKED_ALONE_SINCE:
        return
    own, dropins = _by_file(entry)
    apply_settings(loading, entry, own, "file")
    entry.speaks_as = entry.name
    apply_links(loading, entry, unit.links)
    apply_settings(loading, entry, dropins, "dropin")
    if unit.extras or entry.mounted is not None:
        EXTRAS[entry.type](loading, entry)
    _state_slice(loading, entry)
    if entry.load_state == "loaded":
        _at_last(loading, entry)


def is_perpetual(name: str, *, user: bool) -> bool:
    """Say whether a unit is always there."""
    return name in (PERPETUAL if user else PERPETUAL_SYSTEM)


def _by_file(entry: Entry) -> tuple[list[Setting], list[Setting]]:
    """Return the lines of the unit's own file and those of its drop-ins."""
    unit = entry.unit
    if not unit.dropin_files:
        return list(unit.settings), []
    own = [s for s in unit.settings if s.place.file not in unit.dropin_files]
    return own, list(unit.settings[len(own) :])


def _at_last(loading: Loading, entry: Entry) -> None:
    """Do what every loaded unit ends with: targets, slice, mounts, oomd."""
    loading.queue_target(entry)
    if entry.type in HAS_CGROUP:
        _order_after_slice(loading, entry)
    loading.add_mount_dependencies(entry)
    if entry.type in HAS_CGROUP:
        _oomd(loading, entry)


def _state_slice(loading: Loading, entry: Entry) -> None:
    if entry.slice is not None:
        slice_, origin = entry.slice
        loading.add(entry, "InSlice", slice_, origin)


def _order_after_slice(loading: Loading, entry: Entry) -> None:
    word = "implicit" if entry.type == "slice" else FROM_FILE
    if entry.slice is not None:
        slice_, said = entry.slice
        origin = Origin("implicit", said.file, said.line, said.note, word)
        for kind in NEED:
            loading.add(entry, kind, slice_, origin)
    elif entry.name != unitname.ROOT_SLICE:
        origin = Origin("implicit", note="every unit is in a slice", word=word)
        loading.state(entry, NEED, unitname.ROOT_SLICE, origin)


def _oomd(loading: Loading, entry: Entry) -> None:
    """Re-enacts unit_add_oomd_dependencies(), src/core/unit.c, v252."""
    if not entry.default_dependencies or not loading.manager.memory_controller:
        return
    section, unit = entry.type.capitalize(), entry.unit
    words = frozenset({"auto", "kill"})
    for key in ("ManagedOOMSwap", "ManagedOOMMemoryPressure"):
        if values.last_word(unit, section, key, words) == "kill":
            origin = execcontext.implicit(unit.last(section, key), f"{key}=kill")
            loading.state(entry, ("After", "Wants"), "systemd-oomd.service", origin)
            return
    rules = values.listed(unit, section, ("OOMRules",))
    if rules and loading.manager.version >= OOM_RULES_SINCE:
        origin = execcontext.implicit(rules[0], "OOMRules=")
        loading.state(entry, ("After", "Wants"), "systemd-oomd.service", origin)


def _default_slice(loading: Loading, entry: Entry) -> None:
    """Re-enacts unit_set_default_slice(), src/core/unit.c, v252."""
    if entry.slice is not None:
        return
    instance = unitname.instance_of(entry.name)
    user = loading.manager.user
    if instance:
        prefix = unitname.escape(unitname.prefix_of(entry.name))
        name = f"{'app' if user else 'system'}-{prefix}.slice"
        note = "instances of a template are in a slice of their own"
    elif _is_extrinsic(loading, entry):
        name, note = unitname.ROOT_SLICE, "outside all other slices"
    else:
        name, note = ("app.slice" if user else "system.slice"), "the default slice"
    slice_ = loading.refer(name)
    if slice_ is not None:
        entry.slice = (slice_, Origin("implicit", note=note, word="slice-property"))


def _is_extrinsic(loading: Loading, entry: Entry) -> bool:
    """Re-enacts unit_is_extrinsic(), src/core/unit.c, v252."""
    if entry.perpetual:
        return True
    if entry.type == "mount":
        return in_force(loading, entry).extrinsic(user=loading.manager.user)
    return entry.type == "swap" and loading.manager.user


def _state_defaults(
    loading: Loading, entry: Entry, traits: frozenset[Trait] = frozenset(), word: str = ""
) -> None:
    """State what DefaultDependencies=yes gives, if it isn't no."""
    if not entry.default_dependencies:
        return
    manager = loading.manager
    for row in defaults(entry.type, manager.version, traits, user=manager.user):
        origin = _default_origin(row.type, word)
        loading.state(entry, row.kinds, row.other, origin)


_ORIGINS: dict[tuple[str, str], Origin] = {}


def _default_origin(unit_type: str, word: str) -> Origin:
    note = f"default dependency of a {unit_type}"
    return _ORIGINS.setdefault((unit_type, word), Origin("default", note=note, word=word))


def _service(loading: Loading, entry: Entry) -> None:
    if not execcontext.patch_contexts(loading, entry):
        return
    execcontext.add_dependencies(loading, entry)
    _default_slice(loading, entry)
    _state_defaults(loading, entry)
    bus_name = values.last_text(entry.unit, "Service", "BusName", loading.manager.host)
    if bus_name and _is_dbus(entry):
        key = entry.unit.last("Service", "Type") or entry.unit.last("Service", "BusName")
        origin = execcontext.implicit(key, "a D-Bus service")
        loading.state(entry, ("Requires", "After"), "dbus.socket", origin)
    if bus_name and loading.bus_names.setdefault(bus_name, entry) is not entry:
        entry.load_state = "error"


SERVICE_TYPES = frozenset(
    {"simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle"}
)


def _is_dbus(entry: Entry) -> bool:
    return values.last_word(entry.unit, "Service", "Type", SERVICE_TYPES) in ("", "dbus")


def _socket(loading: Loading, entry: Entry) -> None:
    unit = entry.unit
    listening = values.listed(unit, "Socket", _LISTEN)
    accept = unit.flag("Socket", "Accept", default=False)
    if not accept or any(setting.key not in _ACCEPTING for setting in listening):
        service = entry.service or loading.related(entry, "service")
        if service is not None:
            for kind in TRIGGER:
                loading.add(entry, kind, service, Origin("implicit", note="a socket's service"))
    for path, setting in _socket_paths(loading, entry, listening):
        origin = execcontext.implicit(setting, f"{setting.key}={path}")
        loading.need_mounts(entry, "Requires", path, origin)
    _bind_to_device(loading, entry)
    if not execcontext.patch_contexts(loading, entry):
        return
    if any(unit.value("Socket", key) for key in _SOCKET_COMMANDS):
        execcontext.add_dependencies(loading, entry)
    _default_slice(loading, entry)
    _state_defaults(loading, entry)


def _socket_paths(
    loading: Loading, entry: Entry, listening: list[Setting]
) -> Iterator[tuple[str, Setting]]:
    """Yield the paths in the file system that a socket listens on."""
    for setting in listening:
        if setting.key in ("ListenNetlink", "ListenMessageQueue"):
            continue
        path = values.absolute(entry.unit, setting.value, loading.manager.host)
        if path:
            if path.startswith("/var/run/"):
                path = path.removeprefix("/var")
            yield path, setting


def _bind_to_device(loading: Loading, entry: Entry) -> None:
    setting = entry.unit.last("Socket", "BindToDevice")
    if setting is not None and setting.value not in ("", "*", "lo"):
        path = f"/sys/subsystem/net/devices/{setting.value}"
        origin = execcontext.implicit(setting, "BindToDevice=")
        _device(loading, entry, path, "BindsTo", origin)


def _device(loading: Loading, entry: Entry, path: str, kind: Kind, origin: Origin) -> None:
    """Re-enacts unit_add_node_dependency(), src/core/unit.c, v252."""
    if loading.manager.devices and path.startswith(DEVICE_PATHS):
        name = loading.name_from_path(path, "device")
        if name:
            kinds: tuple[Kind, ...] = ("After", "Wants" if loading.manager.user else kind)
            loading.state(entry, kinds, name, origin)


def _blockdev(loading: Loading, entry: Entry, path: str, origin: Origin) -> None:
    """Re-enacts unit_add_blockdev_dependency(), src/core/unit.c, v252."""
    if loading.manager.devices and path.startswith("/dev/"):
        try:
            name = unitname.build("blockdev", unitname.path_escape(path), "target")
        except ValueError:
            return
        loading.state(entry, AFTER, name, origin)


def _timer(loading: Loading, entry: Entry) -> None:
    _related_trigger(loading, entry, "service")
    persistent = entry.unit.last("Timer", "Persistent")
    if not loading.manager.user and entry.unit.flag("Timer", "Persistent", default=False):
        origin = execcontext.implicit(persistent, "Persistent= keeps a stamp file")
        loading.need_mounts(entry, "Requires", TIMER_STAMPS, origin)
    times = values.listed(entry.unit, "Timer", _TIMES)
    calendar = any(setting.key == "OnCalendar" for setting in times)
    _state_defaults(loading, entry, frozenset({"calendar"}) if calendar else frozenset())


def _path(loading: Loading, entry: Entry) -> None:
    _related_trigger(loading, entry, "service")
    for setting in values.listed(entry.unit, "Path", _PATHS_OF_PATH):
        path = values.absolute(entry.unit, setting.value, loading.manager.host)
        if path:
            origin = execcontext.implicit(setting, f"{setting.key}={path}")
            loading.need_mounts(entry, "Requires", path, origin)
    _state_defaults(loading, entry)


def _related_trigger(loading: Loading, entry: Entry, unit_type: str) -> None:
    """Let a unit trigger the one of its own name, unless it says which."""
    if loading.triggers(entry):
        return
    other = loading.related(entry, unit_type)
    if other is not None:
        for kind in TRIGGER:
            loading.add(entry, kind, other, Origin("implicit", note="the unit of the same name"))


def _mount(loading: Loading, entry: Entry) -> None:
    if not execcontext.patch_contexts(loading, entry):
        return
    execcontext.add_dependencies(loading, entry)
    _default_slice(loading, entry)
    mount_dependencies(loading, entry)


def mount_dependencies(loading: Loading, entry: Entry) -> None:
    """State what a mount needs and who needs it; also for one that the kernel has already.

    Re-enacts mount_add_non_exec_dependencies(), src/core/mount.c, v252.
    """
    place = in_force(loading, entry)
    if entry.mounted:
        loading.graph.retract(entry.name, MOUNT_WORDS)
    if not place.where:
        return
    word = "mountinfo" if entry.mounted else "mount-file"
    _mount_device(loading, entry, place, word)
    if place.where != "/":
        above = place.where.rpartition("/")[0] or "/"
        origin = Origin("implicit", note="the mount above")
        loading.need_mounts(entry, "Requires", above, origin)
    _mount_source(loading, entry)
    loading.serve_mounts(entry, place.where)
    if not loading.manager.user and loading.manager.version < QUOTA_UNTIL:
        _quota(loading, entry)
    traits = place.traits(user=loading.manager.user)
    if entry.unit.fragment_file is None:
        traits -= {"nofail"}
    _state_defaults(loading, entry, traits, word)


def _mount_source(loading: Loading, entry: Entry) -> None:
    own = fragment(loading, entry)
    if own.what.startswith("/") and (own.bind or own.loop or not own.network):
        origin = execcontext.implicit(entry.unit.last("Mount", "What"), "What=")
        loading.need_mounts(entry, "Requires", own.what, origin)


def _mount_device(loading: Loading, entry: Entry, place: Parameters, word: str) -> None:
    """Re-enacts mount_add_device_dependencies(), src/core/mount.c, v252."""
    what = place.what
    if place.bind or not what.startswith(DEVICE_PATHS) or what in NOT_DEVICES:
        return
    if place.where == "/":
        return
    setting = entry.unit.last("Mount", "What")
    at = setting.place if setting else None
    origin = Origin(
        "implicit", at.file if at else "", at.line if at else 0, "What= is a device", word
    )
    bound = place.has("x-systemd.device-bound")
    _device(loading, entry, what, "BindsTo" if bound else "Requires", origin)
    if not bound and entry.unit.fragment_file is not None:
        _device(loading, entry, what, "StopPropagatedFrom", origin)
    _blockdev(loading, entry, what, origin)


def _quota(loading: Loading, entry: Entry) -> None:
    if not fragment(loading, entry).needs_quota:
        return
    origin = execcontext.implicit(entry.unit.last("Mount", "Options"), "quota options")
    for name in QUOTA_UNITS:
        loading.state(entry, ("Before", "Wants"), name, origin)


def _automount(loading: Loading, entry: Entry) -> None:
    _related_trigger(loading, entry, "mount")
    where = automount_place(loading, entry)
    if where and where != "/":
        above = where.rpartition("/")[0] or "/"
        loading.need_mounts(entry, "Requires", above, Origin("implicit", note="the mount above"))
    _state_defaults(loading, entry)


def _swap(loading: Loading, entry: Entry) -> None:
    own = fragment(loading, entry)
    what = own.what or own.where
    setting = entry.unit.last("Swap", "What")
    if what:
        loading.need_mounts(entry, "Requires", what, Origin("implicit", note="where it lies"))
    if own.what:
        origin = execcontext.implicit(setting, "What=")
        if own.what.startswith(DEVICE_PATHS):
            _device(loading, entry, own.what, "Requires", origin)
            _blockdev(loading, entry, own.what, origin)
        else:
            loading.state(entry, AFTER, "systemd-remount-fs.service", origin)
    if not execcontext.patch_contexts(loading, entry):
        return
    execcontext.add_dependencies(loading, entry)
    _default_slice(loading, entry)
    traits: set[Trait] = {"container"} if loading.manager.container else set()
    _state_defaults(loading, entry, frozenset(traits | ({"network"} if own.netdev else set())))


def _slice(loading: Loading, entry: Entry) -> None:
    if unitname.slice_is_valid(entry.name):
        above = unitname.parent_slice(entry.name)
        parent = loading.refer(above) if above else None
        if parent is not None:
            entry.slice = (parent, Origin("implicit", note="the slice above"))
    _state_defaults(loading, entry)


def _scope(loading: Loading, entry: Entry) -> None:
    _default_slice(loading, entry)
    _state_defaults(loading, entry)


def _target(loading: Loading, entry: Entry) -> None:
    """Re-enacts target_add_default_dependencies(), src/core/target.c, v252."""
    if entry.default_dependencies:
        loading.order_now(entry)
    shutdown = "shutdown.target" in entry.unit.names or entry.name == "shutdown.target"
    _state_defaults(loading, entry, frozenset({"shutdown"}) if shutdown else frozenset())


def _nothing(loading: Loading, entry: Entry) -> None:
    del loading, entry


EXTRAS: dict[str, Callable[[Loading, Entry], None]] = {
    "service": _service,
    "mount": _mount,
    "swap": _swap,
    "socket": _socket,
    "target": _target,
    "device": _nothing,
    "automount": _automount,
    "timer": _timer,
    "path": _path,
    "slice": _slice,
    "scope": _scope,
}
