"""What each type of unit states besides what its lines say, and in which order that happens.

`read()` loads one unit whose files have been read; the parts that only one type has are functions
named after it. Re-enacts unit_load(), src/core/unit.c, and service_load() and its like,
src/core/*.c, v252 to v262.
"""

from collections.abc import Callable, Iterator

import sdqueue.boot.loading.storage as storage
import sdqueue.boot.loading.values as values
from sdqueue.boot.graph import Origin
from sdqueue.boot.loading.bydefault import TRIGGER, state_defaults, trigger_related
from sdqueue.boot.loading.execcontext import add_dependencies, patch_contexts
from sdqueue.boot.loading.mountneeds import add_mount_dependencies, need_mounts
from sdqueue.boot.loading.queue import HAS_CGROUP, Entry, Loading
from sdqueue.boot.loading.settings import apply_links, apply_settings
from sdqueue.boot.loading.slices import (
    need_oomd,
    order_after_slice,
    set_default_slice,
    state_slice,
)
from sdqueue.boot.loading.values import implicit
from sdqueue.unitfile.load import MASKED_IS_BARE_SINCE, PERPETUAL, PERPETUAL_SYSTEM
from sdqueue.unitfile.refusal import LISTENS, PATHS, SERVICE_TYPES, TIMERS
from sdqueue.unitfile.unit import LoadState, Setting
from sdqueue.words import unitname

TIMER_STAMPS = "/var/lib/systemd/timers"
_PATH_SOCKETS = ("ListenFIFO", "ListenSpecial", "ListenUSBFunction")
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
    if state is LoadState.MASKED and loading.manager.version >= MASKED_IS_BARE_SINCE:
        return
    own, dropins = _by_file(entry)
    apply_settings(loading, entry, own, "file")
    entry.speaks_as = entry.name
    apply_links(loading, entry, unit.links)
    apply_settings(loading, entry, dropins, "dropin")
    if unit.extras or entry.mounted is not None:
        EXTRAS[entry.type](loading, entry)
    state_slice(loading, entry)
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
        order_after_slice(loading, entry)
    add_mount_dependencies(loading, entry)
    if entry.type in HAS_CGROUP:
        need_oomd(loading, entry)


def _service(loading: Loading, entry: Entry) -> None:
    if not patch_contexts(loading, entry):
        return
    add_dependencies(loading, entry)
    set_default_slice(loading, entry)
    state_defaults(loading, entry)
    bus_name = values.last_text(entry.unit, "Service", "BusName", loading.manager.host)
    if bus_name and _is_dbus(entry):
        key = entry.unit.last("Service", "Type") or entry.unit.last("Service", "BusName")
        origin = implicit(key, "a D-Bus service")
        loading.state(entry, ("Requires", "After"), "dbus.socket", origin)
    if bus_name and loading.bus_names.setdefault(bus_name, entry) is not entry:
        entry.load_state = "error"


def _is_dbus(entry: Entry) -> bool:
    return values.last_word(entry.unit, "Service", "Type", frozenset(SERVICE_TYPES)) in ("", "dbus")


def _socket(loading: Loading, entry: Entry) -> None:
    unit = entry.unit
    listening = values.listed(unit, "Socket", LISTENS)
    accept = unit.flag("Socket", "Accept", default=False)
    if not accept or any(setting.key not in _ACCEPTING for setting in listening):
        service = entry.service or loading.related(entry, "service")
        if service is not None:
            for kind in TRIGGER:
                loading.add(entry, kind, service, Origin("implicit", note="a socket's service"))
    for path, setting in _socket_paths(loading, entry, listening):
        origin = implicit(setting, f"{setting.key}={path}")
        need_mounts(loading, entry, "Requires", path, origin)
    _bind_to_device(loading, entry)
    if not patch_contexts(loading, entry):
        return
    if any(unit.value("Socket", key) for key in _SOCKET_COMMANDS):
        add_dependencies(loading, entry)
    set_default_slice(loading, entry)
    state_defaults(loading, entry)


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
        origin = implicit(setting, "BindToDevice=")
        storage.need_device(loading, entry, path, "BindsTo", origin)


def _timer(loading: Loading, entry: Entry) -> None:
    trigger_related(loading, entry, "service")
    persistent = entry.unit.last("Timer", "Persistent")
    if not loading.manager.user and entry.unit.flag("Timer", "Persistent", default=False):
        origin = implicit(persistent, "Persistent= keeps a stamp file")
        need_mounts(loading, entry, "Requires", TIMER_STAMPS, origin)
    times = values.listed(entry.unit, "Timer", TIMERS)
    calendar = any(setting.key == "OnCalendar" for setting in times)
    state_defaults(loading, entry, frozenset({"calendar"}) if calendar else frozenset())


def _path(loading: Loading, entry: Entry) -> None:
    trigger_related(loading, entry, "service")
    for setting in values.listed(entry.unit, "Path", PATHS):
        path = values.absolute(entry.unit, setting.value, loading.manager.host)
        if path:
            origin = implicit(setting, f"{setting.key}={path}")
            need_mounts(loading, entry, "Requires", path, origin)
    state_defaults(loading, entry)


def _slice(loading: Loading, entry: Entry) -> None:
    if unitname.slice_is_valid(entry.name):
        above = unitname.parent_slice(entry.name)
        parent = loading.refer(above) if above else None
        if parent is not None:
            entry.slice = (parent, Origin("implicit", note="the slice above"))
    state_defaults(loading, entry)


def _scope(loading: Loading, entry: Entry) -> None:
    set_default_slice(loading, entry)
    state_defaults(loading, entry)


def _target(loading: Loading, entry: Entry) -> None:
    """Re-enacts target_add_default_dependencies(), src/core/target.c, v252."""
    if entry.default_dependencies:
        loading.order_now(entry)
    shutdown = "shutdown.target" in entry.unit.names or entry.name == "shutdown.target"
    state_defaults(loading, entry, frozenset({"shutdown"}) if shutdown else frozenset())


def _nothing(loading: Loading, entry: Entry) -> None:
    del loading, entry


EXTRAS: dict[str, Callable[[Loading, Entry], None]] = {
    "service": _service,
    "mount": storage.mount,
    "swap": storage.swap,
    "socket": _socket,
    "target": _target,
    "device": _nothing,
    "automount": storage.automount,
    "timer": _timer,
    "path": _path,
    "slice": _slice,
    "scope": _scope,
}
