"""What systemd-fstab-generator makes of an fstab: mount, automount and swap units, their links.

Knows fstab(5) and the options of systemd.mount(5). Text comes in, files and links come out, by
their path below the generator's directory; what must be known of the machine is a parameter. Not
done: initrd, kernel command line, credentials.

Re-enacts src/fstab-generator/fstab-generator.c, v252 to v256. Differs: comments and documentation
lines are left out.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sdqueue.unitfile.refusal import is_api_mount
from sdqueue.words import unitname
from sdqueue.words.problem import Problem
from sdqueue.words.spans import format_timespan, parse_timespan

LIB = "/usr/lib/systemd/system"
NETWORK_TYPES = frozenset(
    "afs ceph cifs davfs gfs gfs2 glusterfs lustre ncp ncpfs nfs nfs4 ocfs2 orangefs "  # noqa: SIM905
    "pvfs2 smb3 smbfs sshfs".split()
)
QUOTA_TYPES = frozenset(("ext2", "ext3", "ext4", "reiserfs", "jfs", "f2fs"))
QUOTA_OPTIONS = ("usrquota", "grpquota", "quota", "usrjquota", "grpjquota", "prjquota")
MANDATORY = ("noauto", "nofail", "x-systemd.automount")
TAGS: Mapping[str, str] = {
    "LABEL": "label",
    "UUID": "uuid",
    "PARTUUID": "partuuid",
    "PARTLABEL": "partlabel",
}
DEPENDENCIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("x-systemd.after", ("After",)),
    ("x-systemd.requires", ("After", "Requires")),
    ("x-systemd.before", ("Before",)),
)
MOUNTS_FOR: tuple[tuple[str, str, int], ...] = (
    ("x-systemd.requires-mounts-for", "RequiresMountsFor", 0),
    ("x-systemd.wants-mounts-for", "WantsMountsFor", 256),
)
_OCTAL = re.compile(r"\\(040|011|012|134|043)")
_NODE = re.compile(r"[0-9A-Za-z#+\-.:=@_\x80-\U0010ffff]")


def _any_type(_fstype: str) -> bool:
    return True


def _as_is(path: str) -> str:
    return path


@dataclass(frozen=True, slots=True)
class Machine:
    """What the generator looks at: its version, whether a checker for a type is there, links.

    `real` follows the links of a mount point's path.
    """

    version: int = 257
    container: bool = False
    fsck: Callable[[str], bool] = _any_type
    real: Callable[[str], str] = _as_is


@dataclass(frozen=True, slots=True)
class Row:
    """One line of fstab(5)."""

    what: str
    where: str
    fstype: str
    options: str
    passno: int
    line: int


@dataclass(slots=True)
class Generated:
    """Files with their text and links with what they say, by path below the directory."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def link(self, unit: str, kind: str, target: str, name: str = "") -> None:
        """Add `UNIT.KIND/NAME`; `target` is a path, or a name beside `unit`."""
        text = target if target.startswith("/") else f"../{target}"
        self.links.setdefault(f"{unit}.{kind}/{name or target.rpartition('/')[2]}", text)


def rows(text: str) -> Iterator[Row]:
    """Yield the lines of an fstab that getmntent(3) takes."""
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        fields = [_OCTAL.sub(lambda m: chr(int(m.group(1), 8)), each) for each in fields]
        fields += [""] * (6 - len(fields))
        passno = int(fields[5]) if fields[5].isascii() and fields[5].isdigit() else 0
        what, where, fstype, options = fields[:4]
        yield Row(what, where, fstype, options, passno, number)


def generate(text: str, machine: Machine, *, source: str = "/etc/fstab") -> Generated:
    """Return the units of an fstab, and the link that remounts the root file system.

    A line that can't be used, or that comes twice, is a problem at its place in `source`.
    """
    out = Generated()
    for row in rows(text):
        try:
            _Line(row, machine, out).generate()
        except ValueError as error:
            out.problems.append(Problem(source, row.line, str(error)))
    out.link("local-fs.target", "wants", f"{LIB}/systemd-remount-fs.service")
    return out


def options_of(text: str) -> list[str]:
    """Split options at commas that no backslash stands before; empty ones are left out."""
    return [each for each in re.findall(r"(?:\\.|[^,\\]|\\$)+", text) if each]


def node(what: str) -> str:
    """Return the device node that a tag such as LABEL=x means, anything else as it is.

    Re-enacts fstab_node_to_udev_node(), src/shared/fstab-util.c, v252.
    """
    tag, equals, value = what.partition("=")
    if not equals or tag not in TAGS:
        return what
    if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
        value = value[1:-1]
    encoded = "".join(
        char if _NODE.match(char) else "".join(f"\\x{byte:02x}" for byte in char.encode())
        for char in value
    )
    return f"/dev/disk/by-{TAGS[tag]}/{encoded}"


@dataclass(slots=True)
class _Line:
    """One row on its way to units; `options` are what counts of the row's."""

    row: Row
    machine: Machine
    out: Generated
    options: list[str] = field(init=False)
    what: str = field(init=False)

    def __post_init__(self) -> None:
        self.options = options_of(self.row.options)
        self.what = node(self.row.what)

    def generate(self) -> None:
        if self.row.fstype == "swap":
            if not self.machine.container:
                self._swap()
            return
        where = unitname.simplify_path(self.row.where)
        if "/" not in where or self.row.fstype == "autofs":
            return
        where = self.machine.real(where)
        if not is_api_mount(where):
            self._mount(where)

    def has(self, *names: str) -> bool:
        """Say whether an option is set, with or without a value."""
        return any(option.partition("=")[0] in names or option in names for option in self.options)

    def yes(self, yes: str, no: str) -> bool:
        """Say which of two opposite options comes last."""
        found = [o.partition("=")[0] for o in self.options if o.partition("=")[0] in (yes, no)]
        return bool(found) and found[-1] == yes

    def values(self, name: str) -> list[str]:
        """Return the values of all `name=VALUE`, separators unescaped."""
        start = f"{name}="
        found = (each[len(start) :] for each in self.options if each.startswith(start))
        return [re.sub(r"\\([,\\])", r"\1", each) for each in found]

    def _open(self, name: str) -> None:
        if name in self.out.files:
            raise ValueError(f"{name} is there already: a duplicate entry, ignored")
        self.out.files[name] = ""

    def _blockdev(self) -> list[str]:
        if not self.what.startswith("/dev/"):
            return []
        return [f"After=blockdev@{unitname.path_escape(self.what)}.target"]

    def _swap(self) -> None:
        name = unitname.from_path(self.what, "swap")
        self._open(name)
        lines = ["[Unit]", *self._blockdev(), "[Swap]", f"What={_escaped(self.what)}"]
        self._write(name, [*lines, *_options_line(self.row.options)])
        self._device_timeout()
        if self.machine.version >= 261:
            self._device_network("")
        if self.has("x-systemd.makefs"):
            self._makefs(name, "swap", ())
        if not self.yes("noauto", "auto"):
            network = self.has("_netdev") and self.machine.version >= 261
            strength = "wants" if self.yes("nofail", "fail") else "requires"
            self.out.link("remote-fs.target" if network else "swap.target", strength, name)

    def _write(self, name: str, lines: list[str]) -> None:
        self.out.files[name] = "".join(f"{line}\n" for line in lines)

    def _target(self) -> str:
        fstype = self.row.fstype.removeprefix("fuse.")
        network = self.has("_netdev") or fstype in NETWORK_TYPES
        return "remote-fs.target" if network else "local-fs.target"

    def _mount(self, where: str) -> None:
        version = self.machine.version
        mandatory = where == "/" or (where == "/usr" and version >= 256)
        if mandatory and version >= 256:
            self.options = [o for o in self.options if o.partition("=")[0] not in MANDATORY]
        name = unitname.from_path(where, "mount")
        wanted = [] if mandatory else self.values("x-systemd.wanted-by")
        required = [] if mandatory else self.values("x-systemd.required-by")
        auto = not mandatory and self.has("comment=systemd.automount", "x-systemd.automount")
        target = "" if version >= 256 and (wanted or required) else self._target()
        self._open(name)
        background = self._in_background() and not auto
        if background:
            start = ["x-systemd.mount-timeout=infinity", "retry=10000", "nofail"]
            self.options = [*start, *self.options, "fg"]
        nofail = background or (self.yes("nofail", "fail") and not mandatory)
        self._write(name, [*self._unit_lines(where, target, nofail=nofail), *self._lines(where)])
        self._device_timeout()
        self._device_network(where)
        self._extras(where, name, target)
        strength = "wants" if nofail else "requires"
        pulled = self._automount(where) if auto else name
        asked = [(unit, "wants") for unit in wanted] + [(unit, "requires") for unit in required]
        if auto and version < 256:
            asked = []
        skipped = self.yes("noauto", "auto") and not mandatory and not auto
        for unit, kind in asked or ([] if skipped else [(target, strength)]):
            self.out.link(unit, kind, pulled)

    def _in_background(self) -> bool:
        return self.row.fstype in ("nfs", "nfs4") and self.yes("bg", "fg")

    def _unit_lines(self, where: str, target: str, *, nofail: bool) -> Iterator[str]:
        yield "[Unit]"
        if not target:
            yield from ("DefaultDependencies=no", "Conflicts=umount.target", "Before=umount.target")
        for option, keys in DEPENDENCIES:
            names = " ".join(unitname.mangle(each, "mount") for each in self.values(option))
            yield from (f"{key}={names}" for key in keys if names)
        for option, key, since in MOUNTS_FOR:
            paths = [_escaped(each) for each in self.values(option)]
            if paths and self.machine.version >= since:
                yield f"{key}={' '.join(paths)}"
        if target and not nofail:
            yield f"Before={target}"
        if self.row.passno:
            yield from self._fsck(where)
        yield from self._blockdev()

    def _fsck(self, where: str) -> Iterator[str]:
        """Re-enacts generator_write_fsck_deps(), src/shared/generator.c, v252."""
        if not self.what.startswith(("/dev/", "/sys/")) or not self.machine.fsck(self.row.fstype):
            return
        if where == "/":
            self.out.link("local-fs.target", "wants", f"{LIB}/systemd-fsck-root.service")
            return
        unit = f"systemd-fsck@{unitname.path_escape(self.what)}.service"
        yield f"{'Wants' if where == '/usr' else 'Requires'}={unit}"
        yield f"After={unit}"

    def _lines(self, where: str) -> Iterator[str]:
        yield from ("[Mount]", f"What={_escaped(self.what)}", f"Where={_escaped(where)}")
        if self.row.fstype not in ("", "auto"):
            yield f"Type={_escaped(self.row.fstype)}"
        yield from self._timeout("x-systemd.mount-timeout", "TimeoutSec")
        kept = [o for o in self.options if o.partition("=")[0] != "x-systemd.device-timeout"]
        kept = [o for o in kept if not o.startswith("comment=systemd.device-timeout")]
        yield from _options_line(",".join(kept))
        if self.has("x-systemd.rw-only"):
            yield "ReadWriteOnly=yes"

    def _timeout(self, option: str, key: str) -> Iterator[str]:
        values = self.values(option)
        try:
            usec = parse_timespan(values[-1]) if values else -1
        except ValueError:
            return
        if usec >= 0:
            yield f"{key}={format_timespan(usec) if usec else 'infinity'}"

    def _device(self) -> str:
        """Return the unit of the device, "" where there is none."""
        if not self.what.startswith(("/dev/", "/sys/")):
            return ""
        return unitname.from_path(self.what, "device")

    def _device_timeout(self) -> None:
        values = self.values("x-systemd.device-timeout")
        if values and self._device():
            path = f"{self._device()}.d/50-device-timeout.conf"
            self._write(path, ["[Unit]", f"JobRunningTimeoutSec={values[-1]}"])

    def _device_network(self, where: str) -> None:
        """Re-enacts generator_write_device_deps(), src/shared/generator.c, v252."""
        extrinsic = where in ("/", "/usr", "/etc") or self.has("x-initrd.mount")
        extrinsic |= where.startswith(("/run/initramfs/", "/proc/", "/sys/", "/dev/"))
        if not extrinsic and self.has("_netdev") and self._device():
            lines = ["[Unit]", "After=network-online.target network.target"]
            path = f"{self._device()}.d/50-netdev-dependencies.conf"
            self._write(path, [*lines, "Wants=network-online.target"])

    def _automount(self, where: str) -> str:
        name = unitname.from_path(where, "automount")
        self._open(name)
        idle = self._timeout("x-systemd.idle-timeout", "TimeoutIdleSec")
        self._write(name, ["[Unit]", "[Automount]", f"Where={_escaped(where)}", *idle])
        return name

    def _extras(self, where: str, name: str, target: str) -> None:
        if self.has("x-systemd.makefs"):
            self._makefs(name, self.row.fstype, ("systemd-fsck@%i.service",))
        if self.has("x-systemd.growfs"):
            self._growfs(where, name, target)
        quota = self.row.fstype in QUOTA_TYPES and self.has(*QUOTA_OPTIONS)
        if quota and self.machine.version >= 256:
            self._quota(where, name, target)

    def _makefs(self, before: str, fstype: str, also: tuple[str, ...]) -> None:
        """Re-enacts generator_hook_up_mkfs() and …_mkswap(), src/shared/generator.c, v252."""
        if not self._device():
            raise ValueError(f"{self.what} is no device node, it can't be formatted")
        if fstype in ("", "auto"):
            raise ValueError(f"{self.what} can't be formatted without a type")
        verb = "mkswap" if fstype == "swap" else "makefs"
        unit = f"systemd-{verb}@{unitname.path_escape(self.what)}.service"
        self._open(unit)
        lines = ["[Unit]", "DefaultDependencies=no", "BindsTo=%i.device", "After=%i.device"]
        lines += [f"Before={' '.join((*also, before))}", "Conflicts=shutdown.target"]
        lines += ["Before=shutdown.target", "[Service]", "Type=oneshot", "RemainAfterExit=yes"]
        command = f"ExecStart=/usr/lib/systemd/systemd-makefs {fstype} {_c_escaped(self.what)}"
        self._write(unit, [*lines, command])
        self.out.link(before, "requires", unit)

    def _growfs(self, where: str, name: str, target: str) -> None:
        """Re-enacts generator_hook_up_growfs(), src/shared/generator.c, v252 and v253."""
        instance = unitname.path_escape(where)
        if self.machine.version >= 253:
            template = "systemd-growfs-root" if where == "/" else "systemd-growfs@"
            unit = f"{template}{'' if where == '/' else instance}.service"
            self._ordering(target, unit)
            self.out.link(name, "wants", f"{LIB}/{template}.service", unit)
            return
        unit = f"systemd-growfs@{instance}.service"
        self._open(unit)
        lines = ["[Unit]", "DefaultDependencies=no", "BindsTo=%i.mount"]
        lines += ["After=systemd-repart.service %i.mount", f"Before=shutdown.target {target}"]
        lines += ["Conflicts=shutdown.target"]
        lines += ["After=systemd-remount-fs.service"] if where == "/" else []
        lines += ["[Service]", "Type=oneshot", "RemainAfterExit=yes"]
        lines += [f"ExecStart=/usr/lib/systemd/systemd-growfs {_c_escaped(where)}"]
        self._write(unit, lines)
        self.out.link(name, "wants", unit)

    def _quota(self, where: str, name: str, target: str) -> None:
        """Re-enacts generator_hook_up_quotacheck() and …_quotaon(), v256."""
        for word in ("systemd-quotacheck", "quotaon"):
            if where == "/":
                self.out.link("local-fs.target", "wants", f"{LIB}/{word}-root.service")
                continue
            unit = f"{word}@{unitname.path_escape(where)}.service"
            self._ordering(target, unit)
            self.out.link(name, "wants", f"{LIB}/{word}@.service", unit)

    def _ordering(self, target: str, unit: str) -> None:
        if target:
            self._write(f"{target}.d/50-order-{unit}.conf", ["[Unit]", f"After={unit}"])


def _escaped(text: str) -> str:
    """Double what would be a specifier."""
    return text.replace("%", "%%")


def _c_escaped(text: str) -> str:
    """Re-enacts cescape() for what a path can hold, src/basic/escape.c, v252."""
    return "".join(
        f"\\{chr(byte)}"
        if chr(byte) in "\\\"'"
        else chr(byte)
        if 32 <= byte < 127
        else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def _options_line(options: str) -> list[str]:
    return [] if options in ("", "defaults") else [f"Options={_escaped(options)}"]
