"""What specifiers and versions need to know of a machine, read from it or from a root."""

import os
import pwd
import re
from collections.abc import Iterator, Mapping
from grp import getgrgid

from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath.chase import Chaser
from sdqueue.unitpath.tree import read_regular

# Names of uname -m for which systemd has another word, src/basic/architecture.h.
ARCHITECTURES: Mapping[str, str] = {
    "x86_64": "x86-64",
    "i386": "x86",
    "i486": "x86",
    "i586": "x86",
    "i686": "x86",
    "aarch64": "arm64",
    "aarch64_be": "arm64-be",
    "armv6l": "arm",
    "armv7l": "arm",
    "armv8l": "arm",
    "ppc64le": "ppc64-le",
    "ppcle": "ppc-le",
}
_LIBRARY = re.compile(r"libsystemd-shared-(\d+).*\.so")
_DPKG = re.compile(r"^Package: systemd\n(?:.+\n)*?Version: (?:\d+:)?(\d+)", re.M)
_UNKNOWN_ID = "uninitialized"


def read_host(
    root: str = "", *, user: bool = False, environ: Mapping[str, str] | None = None
) -> Host:
    """Return what specifiers stand for: of this machine, or of the one whose files `root` holds.

    Of a root only what its files say is known; the rest is None.
    """
    here = not root.rstrip("/")
    env = os.environ if environ is None else environ
    machine_id = _text(root, "/etc/machine-id")
    hostname = os.uname().nodename if here else _text(root, "/etc/hostname")
    facts: dict[str, str | None] = {
        "machine_id": None if machine_id in ("", _UNKNOWN_ID) else machine_id,
        "boot_id": _boot_id() if here else None,
        "hostname": hostname or None,
        "pretty_hostname": _assignments(root, "/etc/machine-info").get("PRETTY_HOSTNAME"),
        "kernel": os.uname().release if here else None,
        "architecture": ARCHITECTURES.get(os.uname().machine, os.uname().machine),
    }
    release = _assignments(root, "/etc/os-release") or _assignments(root, "/usr/lib/os-release")
    who = _user(env) if user else {}
    return Host(**facts, os_release=release, **who)  # type: ignore[arg-type]


def systemd_version(root: str = "") -> int | None:
    """Return the major version of the systemd in a root, None where there is none to be seen."""
    base = root.rstrip("/")
    for directory in _library_directories(base):
        for name in _names(directory):
            found = _LIBRARY.match(name)
            if found:
                return int(found.group(1))
    packaged = _DPKG.search(_text(root, "/var/lib/dpkg/status", strip=False, limit=None))
    return int(packaged.group(1)) if packaged else None


def _library_directories(base: str) -> Iterator[str]:
    """Yield where distributions keep systemd's own library."""
    yield f"{base}/usr/lib/systemd"
    yield from (f"{base}/usr/lib/{name}/systemd" for name in _names(f"{base}/usr/lib"))
    yield from (f"{base}/usr/lib64/systemd", f"{base}/lib/systemd")


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _text(root: str, file: str, *, strip: bool = True, limit: int | None = 65536) -> str:
    base = root.rstrip("/")
    try:
        data = read_regular(Chaser(base).all(f"{base}{file}"), 64 << 20)
    except OSError:
        return ""
    text = data[:limit].decode("utf-8", "replace")
    return text.strip() if strip else text


def _assignments(root: str, file: str) -> dict[str, str]:
    """Read a file of shell-like assignments such as os-release(5)."""
    return dict(_pairs(_text(root, file)))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith("#"):
            quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
            yield key.rstrip(), value[1:-1] if quoted else value


def _boot_id() -> str | None:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip().replace("-", "")
    except OSError:
        return None


def _user(env: Mapping[str, str]) -> dict[str, str | int]:
    uid, gid = os.getuid(), os.getgid()
    entry = pwd.getpwuid(uid)
    home = env.get("HOME", entry.pw_dir)
    state = env.get("XDG_STATE_HOME") or f"{home}/.local/state"
    return {
        "user": entry.pw_name,
        "uid": uid,
        "group": getgrgid(gid).gr_name,
        "gid": gid,
        "home": home,
        "shell": env.get("SHELL") or entry.pw_shell,
        "runtime_dir": env.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}",
        "state_dir": state,
        "logs_dir": f"{state}/log",
        "cache_dir": env.get("XDG_CACHE_HOME") or f"{home}/.cache",
        "config_dir": env.get("XDG_CONFIG_HOME") or f"{home}/.config",
    }
