"""Mounts, automounts and swaps, and the devices that they and sockets need.

Re-enacts mount_add_extras(), src/core/mount.c, automount_add_extras(), src/core/automount.c,
swap_add_extras(), src/core/swap.c, and unit_add_node_dependency(), src/core/unit.c, v252 to v262.
"""

from sdqueue.boot.graph import Kind, Origin
from sdqueue.boot.loading.bydefault import state_defaults, trigger_related
from sdqueue.boot.loading.execcontext import add_dependencies, patch_contexts
from sdqueue.boot.loading.mountneeds import need_mounts, serve_mounts
from sdqueue.boot.loading.mounts import Parameters, automount_place, fragment, in_force
from sdqueue.boot.loading.queue import Entry, Loading
from sdqueue.boot.loading.slices import set_default_slice
from sdqueue.boot.loading.table import Trait
from sdqueue.boot.loading.values import implicit
from sdqueue.words import unitname

DEVICE_PATHS = ("/dev/", "/sys/")
NOT_DEVICES = frozenset({"/dev/root", "/dev/nfs"})
QUOTA_UNTIL = 256
QUOTA_UNITS = ("systemd-quotacheck.service", "quotaon.service")
MOUNT_WORDS = frozenset({"mountinfo", "mount-file"})
AFTER: tuple[Kind, ...] = ("After",)


def need_device(loading: Loading, entry: Entry, path: str, kind: Kind, origin: Origin) -> None:
    """Re-enacts unit_add_node_dependency(), src/core/unit.c, v252."""
    if loading.manager.devices and path.startswith(DEVICE_PATHS):
        name = loading.name_from_path(path, "device")
        if name:
            kinds: tuple[Kind, ...] = ("After", "Wants" if loading.manager.user else kind)
            loading.state(entry, kinds, name, origin)


def _after_blockdev(loading: Loading, entry: Entry, path: str, origin: Origin) -> None:
    """Re-enacts unit_add_blockdev_dependency(), src/core/unit.c, v252."""
    if loading.manager.devices and path.startswith("/dev/"):
        try:
            name = unitname.build("blockdev", unitname.path_escape(path), "target")
        except ValueError:
            return
        loading.state(entry, AFTER, name, origin)


def mount(loading: Loading, entry: Entry) -> None:
    if not patch_contexts(loading, entry):
        return
    add_dependencies(loading, entry)
    set_default_slice(loading, entry)
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
        need_mounts(loading, entry, "Requires", above, origin)
    _mount_source(loading, entry)
    serve_mounts(loading, entry, place.where)
    if not loading.manager.user and loading.manager.version < QUOTA_UNTIL:
        _quota(loading, entry)
    traits = place.traits(user=loading.manager.user)
    if entry.unit.fragment_file is None:
        traits -= {"nofail"}
    state_defaults(loading, entry, traits, word)


def _mount_source(loading: Loading, entry: Entry) -> None:
    own = fragment(loading, entry)
    if own.what.startswith("/") and (own.bind or own.loop or not own.network):
        origin = implicit(entry.unit.last("Mount", "What"), "What=")
        need_mounts(loading, entry, "Requires", own.what, origin)


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
    need_device(loading, entry, what, "BindsTo" if bound else "Requires", origin)
    if not bound and entry.unit.fragment_file is not None:
        need_device(loading, entry, what, "StopPropagatedFrom", origin)
    _after_blockdev(loading, entry, what, origin)


def _quota(loading: Loading, entry: Entry) -> None:
    if not fragment(loading, entry).needs_quota:
        return
    origin = implicit(entry.unit.last("Mount", "Options"), "quota options")
    for name in QUOTA_UNITS:
        loading.state(entry, ("Before", "Wants"), name, origin)


def automount(loading: Loading, entry: Entry) -> None:
    trigger_related(loading, entry, "mount")
    where = automount_place(loading, entry)
    if where and where != "/":
        above = where.rpartition("/")[0] or "/"
        need_mounts(loading, entry, "Requires", above, Origin("implicit", note="the mount above"))
    state_defaults(loading, entry)


def swap(loading: Loading, entry: Entry) -> None:
    own = fragment(loading, entry)
    what = own.what or own.where
    setting = entry.unit.last("Swap", "What")
    if what:
        need_mounts(loading, entry, "Requires", what, Origin("implicit", note="where it lies"))
    if own.what:
        origin = implicit(setting, "What=")
        if own.what.startswith(DEVICE_PATHS):
            need_device(loading, entry, own.what, "Requires", origin)
            _after_blockdev(loading, entry, own.what, origin)
        else:
            loading.state(entry, AFTER, "systemd-remount-fs.service", origin)
    if not patch_contexts(loading, entry):
        return
    add_dependencies(loading, entry)
    set_default_slice(loading, entry)
    traits: set[Trait] = {"container"} if loading.manager.container else set()
    state_defaults(loading, entry, frozenset(traits | ({"network"} if own.netdev else set())))
