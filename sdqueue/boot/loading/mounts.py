"""What is mounted or swapped where: the settings of a unit, or what the kernel already has.

Re-enacts the small predicates of src/core/mount.c, fstab_is_extrinsic() and fstab_test_option(),
src/shared/fstab-util.c, and fstype_is_network(), src/basic/mountpoint-util.c, v252.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import sdqueue.boot.loading.values as values
from sdqueue.boot.loading.queue import Entry, Loading
from sdqueue.boot.loading.table import Trait
from sdqueue.unitfile.fstab import QUOTA_TYPES
from sdqueue.words import unitname

NETWORK_FILE_SYSTEMS = frozenset(
    (
        "afs", "ceph", "cifs", "gfs", "gfs2", "ncp", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs",
        "pvfs2", "smb3", "smbfs", "davfs", "glusterfs", "lustre", "sshfs",
    )
)  # fmt: skip
QUOTA_OPTIONS = ("usrquota", "grpquota", "quota", "usrjquota", "grpjquota")
OF_THE_SYSTEM = frozenset({"/", "/usr", "/etc"})
BELOW_THE_SYSTEM = ("/run/initramfs", "/proc", "/sys", "/dev")
_COMMA = re.compile(r"(?<!\\)((?:\\\\)*),")


@dataclass(frozen=True, slots=True)
class Parameters:
    """What, where and how; "" for what isn't said."""

    where: str = ""
    what: str = ""
    fstype: str = ""
    options: str = ""

    def has(self, *names: str) -> bool:
        """Say whether one of these options is given, with a value or without."""
        return bool(_last_option(self.options, names))

    @property
    def netdev(self) -> bool:
        """Whether the options say that a network is needed."""
        return self.has("_netdev")

    @property
    def network(self) -> bool:
        """Whether this needs a network."""
        return self.netdev or self.fstype.removeprefix("fuse.") in NETWORK_FILE_SYSTEMS

    @property
    def bind(self) -> bool:
        """Whether this shows a directory at another place."""
        return self.has("bind", "rbind") or self.fstype in ("bind", "rbind")

    @property
    def loop(self) -> bool:
        """Whether the source is a file that needs a loop device."""
        return self.has("loop")

    @property
    def needs_quota(self) -> bool:
        """Whether quotas are to be checked."""
        known = not self.fstype or self.fstype in QUOTA_TYPES
        return known and not self.bind and self.has(*QUOTA_OPTIONS)

    def extrinsic(self, *, user: bool) -> bool:
        """Say whether this is mounted outside of what units order."""
        return (
            user
            or self.where in OF_THE_SYSTEM
            or any(_at_or_below(self.where, top) for top in BELOW_THE_SYSTEM)
            or self.has("x-initrd.mount")
        )

    def traits(self, *, user: bool) -> frozenset[Trait]:
        """Return what decides about the default dependencies of a mount."""
        found: list[Trait] = []
        if self.extrinsic(user=user):
            found.append("extrinsic")
        if self.network:
            found.append("network")
        if _last_option(self.options, ("nofail", "fail")) == "nofail":
            found.append("nofail")
        if self.fstype == "tmpfs":
            found.append("tmpfs")
        return frozenset(found)


def fragment(loading: Loading, entry: Entry) -> Parameters:
    """Return what a mount or swap unit's own settings say."""
    unit, host, section = entry.unit, loading.manager.host, entry.type.capitalize()
    if unit.fragment_file is None:
        return Parameters(where=_path_of(entry))
    if entry.type == "swap":
        found = values.last_path(unit, section, "What", host)
        what = found[0] if found else ""
    else:
        what = values.last_text(unit, section, "What", host)
    said = values.last_path(unit, section, "Where", host)
    return Parameters(
        said[0] if said else _path_of(entry),
        what,
        values.last_text(unit, section, "Type", host),
        values.last_text(unit, section, "Options", host),
    )


def in_force(loading: Loading, entry: Entry) -> Parameters:
    """Return what the kernel has, or else what the unit says."""
    mounted = entry.mounted
    if mounted is not None:
        return Parameters(mounted.where, mounted.what, mounted.fstype, mounted.options)
    return fragment(loading, entry)


def automount_place(loading: Loading, entry: Entry) -> str:
    """Return where an automount unit waits."""
    said = values.last_path(entry.unit, "Automount", "Where", loading.manager.host)
    return said[0] if said else _path_of(entry)


def _path_of(entry: Entry) -> str:
    try:
        return unitname.to_path(entry.name)
    except ValueError:
        return ""


def _at_or_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _last_option(options: str, names: Iterable[str]) -> str:
    """Return the last of the options that is one of `names`, "" where none is."""
    found = ""
    for option in _COMMA.sub(r"\1\0", options).split("\0"):
        name = option.partition("=")[0]
        found = name if name in names else found
    return found
