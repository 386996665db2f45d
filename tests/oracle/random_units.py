"""Random sets of unit files: all types, all dependency keys, drop-ins, aliases, templates, links.

A set is a mapping from path (below a unit directory) to text; a text that begins with "->" is a
link. The same seed gives the same set. `TARGET` pulls in a part of it.
`PROBE` only names `TARGET`: it can always be started, so that the graph is always printed.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TARGET = "zz-boot.target"
PROBE = "zzprobe.slice"
LINK = "->"
Files = dict[str, str]

ORDERING = ("After", "Before")
REQUIREMENTS = ("Wants", "Requires", "BindsTo", "Requisite", "Upholds", "PartOf", "Conflicts")
OTHERS = (
    "OnFailure", "OnSuccess", "PropagatesReloadTo", "ReloadPropagatedFrom", "PropagatesStopTo",
    "StopPropagatedFrom", "JoinsNamespaceOf", "BindTo", "RequiresOverridable",
)  # fmt: skip
BASE: Files = {
    "sysinit.target": "[Unit]\nWants=local-fs.target swap.target\n"
    "After=local-fs.target swap.target\n",
    "basic.target": "[Unit]\nRequires=sysinit.target\nAfter=sysinit.target sockets.target\n"
    "Wants=sockets.target timers.target paths.target\n",
    "local-fs.target": "[Unit]\nDefaultDependencies=no\nConflicts=shutdown.target\n",
    "swap.target": "[Unit]\n",
    "sockets.target": "[Unit]\n",
    "timers.target": "[Unit]\nDefaultDependencies=no\nConflicts=shutdown.target\n",
    "paths.target": "[Unit]\n",
    "shutdown.target": "[Unit]\nDefaultDependencies=no\nRefuseManualStart=yes\n",
    "umount.target": "[Unit]\nDefaultDependencies=no\nRefuseManualStart=yes\n",
    "network.target": "[Unit]\nAfter=network-pre.target\nRefuseManualStart=yes\n",
    "network-online.target": "[Unit]\nAfter=network.target\n",
    "local-fs-pre.target": "[Unit]\nRefuseManualStart=yes\n",
    "tmp.mount": "[Unit]\nDefaultDependencies=no\nConflicts=umount.target\n"
    "Before=local-fs.target umount.target\n[Mount]\nWhat=tmpfs\nWhere=/tmp\nType=tmpfs\n",
    "systemd-journald.socket": "[Unit]\nDefaultDependencies=no\nBefore=sockets.target\n"
    "[Socket]\nListenDatagram=/run/systemd/journal/socket\nService=systemd-journald.service\n",
    "systemd-journald.service": "[Unit]\nDefaultDependencies=no\nRequires=systemd-journald.socket\n"
    "After=systemd-journald.socket\n[Service]\nExecStart=/bin/true\n",
}
"""An operating system in small, so that one question takes milliseconds."""

SPECIAL = (*BASE, "nowhere.service", "nowhere.target", "dbus.socket")
PATHS = ("/srv", "/srv/a", "/srv/a/b", "/srv/c", "/var", "/var/tmp", "/var/lib", "/opt", "/tmp")
ALREADY_ACTIVE = ("slice", "mount")
"""Types without drop-ins for all of them: what active units require has jobs before boot does."""
LISTENING = (
    "ListenStream=7777", "ListenStream=/srv/a/sock", "ListenFIFO=/srv/c/fifo",
    "ListenDatagram=@abstract", "ListenStream=/run/x", "ListenNetlink=audit",
)  # fmt: skip
DEVICES = ("/dev/vdx", "/dev/disk/by-label/x", "/sys/devices/y")


@dataclass(slots=True)
class Maker:
    """One set in the making."""

    rng: random.Random
    names: list[str] = field(default_factory=list)
    files: Files = field(default_factory=dict)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def other(self, *, special: float = 0.2) -> str:
        """A unit to name: one of the set, or now and then one of the system or of nobody."""
        if self.chance(special):
            return self.rng.choice(SPECIAL)
        name = self.rng.choice(self.names)
        if "@." in name and self.chance(0.8):
            return name.replace("@.", f"@{self.rng.choice('ij')}.")
        return name

    def others(self, most: int = 3) -> str:
        return " ".join(self.other() for _ in range(self.rng.randint(1, most)))

    def unit_section(self, density: float) -> list[str]:
        lines = []
        if self.chance(0.18):
            lines.append(f"DefaultDependencies={self.rng.choice(('no', 'no', 'yes', 'nonsense'))}")
        lines += [
            f"{self.rng.choice(ORDERING)}={self.others()}"
            for _ in range(self.rng.randint(0, 3))
            if self.chance(density)
        ]
        lines += [
            f"{self.rng.choice(REQUIREMENTS)}={self.others(2)}"
            for _ in range(self.rng.randint(0, 2))
            if self.chance(density)
        ]
        if self.chance(0.15):
            lines.append(f"{self.rng.choice(OTHERS)}={self.others(2)}")
        if self.chance(0.08):
            key = self.rng.choice(("RequiresMountsFor", "WantsMountsFor"))
            lines.append(f"{key}={self.rng.choice(PATHS)}")
        if self.chance(0.05):
            lines.append(self.rng.choice(("After=", "Requires=", "After=%p.service x-%N.service",
                                          'Wants="quoted.service"', "Before=dev-vdx.device",
                                          "IgnoreOnIsolate=yes")))  # fmt: skip
        self.rng.shuffle(lines)
        return ["[Unit]", *lines]

    def text(self, name: str, density: float) -> str:
        unit_type = name.rpartition(".")[2]
        own = list(SECTIONS[unit_type](self, name))
        lines = [*self.unit_section(density), f"[{unit_type.capitalize()}]", *own]
        return "\n".join(lines) + "\n"


def _exec(m: Maker) -> Iterator[str]:
    r = m.rng
    lines = (
        f"StandardOutput={r.choice(('null', 'journal', 'kmsg', 'tty', 'file:/x', 'inherit'))}",
        f"StandardError={r.choice(('null', 'journal', 'inherit', 'syslog', 'nonsense'))}",
        f"StandardInput={r.choice(('null', 'tty', 'socket', 'data', 'fd:x'))}",
        f"WorkingDirectory={r.choice(('~', '-/srv/a', '/srv/c', '/var/lib'))}",
        f"RootDirectory={r.choice(('/srv/a', '/', '/opt'))}",
        "RootImage=/srv/a/image",
        "PrivateDevices=yes",
        f"PrivateTmp={r.choice(('yes', 'no', 'disconnected'))}",
        "DynamicUser=yes",
        "LogNamespace=ns",
        f"{r.choice(('State', 'Cache', 'Logs', 'Runtime', 'Configuration'))}Directory=d1 d2/e",
        "StateDirectory=",
        f"Slice={r.choice(('app.slice', 'a-b.slice', 'system.slice', '-.slice'))}",
    )
    for line in lines:
        if m.chance(0.06):
            yield line


def _service(m: Maker, name: str) -> Iterator[str]:
    if not m.chance(0.03):
        yield "ExecStart=/bin/true"
    if m.chance(0.3):
        yield f"Type={m.rng.choice(('oneshot', 'notify', 'forking', 'exec', 'simple', 'bogus'))}"
    if m.chance(0.06):
        yield f"BusName=org.example.{name.partition('.')[0].partition('@')[0]}"
    if m.chance(0.05):
        yield f"Sockets={m.other(special=0.5)}"
    yield from _exec(m)


def _socket(m: Maker, _name: str) -> Iterator[str]:
    yield m.rng.choice(LISTENING)
    if m.chance(0.2):
        yield "Accept=yes"
    elif m.chance(0.3):
        yield f"Service={m.other()}"
    if m.chance(0.1):
        yield f"BindToDevice={m.rng.choice(('eth9', 'lo'))}"
    if m.chance(0.1):
        yield "ExecStartPre=/bin/true"
    yield from _exec(m)


def _timer(m: Maker, _name: str) -> Iterator[str]:
    yield m.rng.choice(
        ("OnBootSec=1", "OnCalendar=daily", "OnUnitActiveSec=5", "OnClockChange=yes")
    )
    if m.chance(0.4):
        yield f"Unit={m.other()}"
    if m.chance(0.1):
        yield "Persistent=yes"


def _path(m: Maker, _name: str) -> Iterator[str]:
    key = m.rng.choice(("PathExists", "PathChanged", "DirectoryNotEmpty"))
    yield f"{key}={m.rng.choice(PATHS)}"
    if m.chance(0.4):
        yield f"Unit={m.other()}"


def _mount(m: Maker, name: str) -> Iterator[str]:
    where = "/" + name.rpartition(".")[0].replace("-", "/")
    what, fstype = m.rng.choice(
        ((m.rng.choice(DEVICES), "ext4"), ("tmpfs", "tmpfs"), ("h:/x", "nfs"), ("/srv/a/i", "none"))
    )
    yield f"What={what}"
    yield f"Where={where}"
    yield f"Type={fstype}"
    options = [
        option
        for option in ("nofail", "_netdev", "bind", "loop", "usrquota", "x-systemd.device-bound",
                       "x-initrd.mount", "fail")
        if m.chance(0.12)
    ]  # fmt: skip
    if options:
        yield f"Options={','.join(options)}"
    yield from _exec(m)


def _automount(m: Maker, name: str) -> Iterator[str]:
    if m.chance(0.9):
        yield "Where=/" + name.rpartition(".")[0].replace("-", "/")


def _swap(m: Maker, name: str) -> Iterator[str]:
    yield "What=/" + name.rpartition(".")[0].replace("-", "/")
    if m.chance(0.2):
        yield "Options=_netdev"


def _slice(m: Maker, _name: str) -> Iterator[str]:
    if m.chance(0.1):
        yield "ManagedOOMSwap=kill"


def _target(_m: Maker, _name: str) -> Iterator[str]:
    yield from ()


SECTIONS = {
    "service": _service, "socket": _socket, "timer": _timer, "path": _path, "mount": _mount,
    "automount": _automount, "swap": _swap, "slice": _slice, "target": _target,
    "device": _target,
}  # fmt: skip
POOL = (
    *["service"] * 10, *["target"] * 4, *["socket"] * 3, *["timer"] * 2, *["path"] * 2,
    *["mount"] * 3, "automount", "swap", "slice", *["template"] * 2,
)  # fmt: skip


def _name(m: Maker, kind: str, i: int) -> str:
    r = m.rng
    if kind == "template":
        return f"tp{i}@.{r.choice(('service', 'service', 'target', 'socket'))}"
    if kind in ("mount", "automount"):
        return f"{r.choice(('srv', 'srv-a', 'srv-a-b', 'srv-c', 'var', 'var-tmp', 'opt'))}.{kind}"
    if kind == "swap":
        return r.choice(("dev-vdx.swap", "srv-a-swapfile.swap"))
    if kind == "slice":
        return r.choice(("app.slice", "a-b.slice", "a.slice"))
    dash = r.choice(("", "", "", "ab-", "ab-cd-"))
    return f"{dash}{kind[0]}{i}.{kind}"


def _dropin(m: Maker, density: float) -> None:
    name = m.rng.choice(m.names)
    prefix, _, unit_type = name.rpartition(".")
    places = [f"{name}.d", f"{name if unit_type in ALREADY_ACTIVE else unit_type}.d"]
    if "@" in name:
        places.append(f"{prefix}i.{unit_type}.d")
    if "-" in prefix and "@" not in name:
        places.append(f"{prefix.partition('-')[0]}-.{unit_type}.d")
    place = m.rng.choice(places)
    m.files[f"{place}/{m.rng.choice('abc')}.conf"] = "\n".join(m.unit_section(density)) + "\n"


def _link(m: Maker) -> None:
    name, other = m.rng.choice([*m.names, TARGET]), m.other()
    kinds = ["wants", "wants", "requires", "upholds"]
    target = "/dev/null" if m.chance(0.05) else f"../{other}"
    m.files[f"{name}.{m.rng.choice(kinds)}/{other}"] = f"{LINK}{target}"


def _alias(m: Maker) -> None:
    name = m.rng.choice(m.names)
    unit_type = name.rpartition(".")[2]
    if unit_type in ("service", "socket", "target", "timer", "path"):
        at = "@" if "@" in name else ""
        alias = f"alias{m.rng.randint(0, 3)}{at}.{unit_type}"
        if alias not in m.files:
            m.files[alias] = f"{LINK}{name}"
            m.names.append(alias)


def make(seed: int, *, size: int | None = None) -> Files:
    """Return the set of this seed: 3 to 40 units besides `BASE`."""
    m = Maker(random.Random(seed))
    count = size or m.rng.randint(3, 40)
    density = m.rng.choice((0.15, 0.3, 0.3, 0.6))
    kinds = [m.rng.choice(POOL) for _ in range(count)]
    m.names = list(dict.fromkeys(_name(m, kind, i) for i, kind in enumerate(kinds)))
    units = list(m.names)
    for _ in range(m.rng.randint(0, 2)):
        _alias(m)
    for name in units:
        # An alias of a mask is another unit, or the same, by the order of loading.
        masked = m.chance(0.02) and f"{LINK}{name}" not in m.files.values()
        m.files[name] = f"{LINK}/dev/null" if masked else m.text(name, density)
    for _ in range(m.rng.randint(0, count // 5)):
        _dropin(m, density)
    for _ in range(m.rng.randint(0, count // 4)):
        _link(m)
    pulled = [name for name in m.names if "@." not in name and m.chance(0.6)]
    pulled += [name.replace("@.", "@i.") for name in m.names if "@." in name]
    isolate = "AllowIsolate=yes\n" if m.chance(0.5) else ""
    named = " ".join(m.rng.sample(pulled, len(pulled)))
    m.files[TARGET] = f"[Unit]\n{isolate}Requires=basic.target\nWants={named}\n"
    m.files[PROBE] = f"[Unit]\nDefaultDependencies=no\nAfter={TARGET}\n"
    return BASE | m.files


def write(files: Files, directory: Path) -> None:
    """Write a set into a directory, for everyone to read."""
    for path, text in files.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith(LINK):
            place.symlink_to(text.removeprefix(LINK))
        else:
            place.write_text(text)
    for place in (directory, *directory.rglob("*")):
        if not place.is_symlink():
            place.chmod(0o755 if place.is_dir() else 0o644)
