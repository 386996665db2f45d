"""What containers boot from: unpacked Debian releases, and the checkout's runtime dependencies.

Both are made once and kept in ${XDG_CACHE_HOME:-~/.cache}/sdqueue-tests under the hash of their
recipe; two processes that want the same one wait for each other. The package mirror is the
machine's own, read from its apt sources each time (or SDQUEUE_TEST_MIRROR).

    root_of("257") -> directory to use as the lower layer of an overlay; "/" when the machine's own
                      systemd is that version
    dependencies() -> directory for PYTHONPATH with what requirements.txt locks
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
REQUIREMENTS = CHECKOUT / "requirements.txt"
SUITES = {"252": "bookworm", "257": "trixie", "262": "testing"}
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "dbus-user-session",
    "libpam-systemd",
    "polkitd",
    "procps",
    "python3",
    "strace",
)


class ImageError(Exception):
    """The image can't be had here; str() says what is missing."""


def root_of(version: str) -> Path:
    """Return the root directory with that systemd, building it first where need be."""
    if version == machine_version():
        return Path("/")
    recipe = [SUITES[version], *PACKAGES]
    return cached(f"{SUITES[version]}-{version}", recipe, lambda at: _bootstrap(version, at))


def dependencies() -> Path:
    """Return a directory with the runtime dependencies, for any CPython from 3.11 on."""
    return cached("python", [REQUIREMENTS.read_text()], _install_dependencies)


def missing(version: str) -> str:
    """Return what this machine lacks to have that image, "" when it lacks nothing."""
    if version == machine_version():
        needed = ("/usr/bin/python3", "/usr/bin/dbus-daemon", "/sbin/init")
        lacking = [path for path in needed if not Path(path).exists()]
        return f"no {', '.join(lacking)}" if lacking else ""
    if not shutil.which("mmdebstrap"):
        return "no mmdebstrap (Debian: apt install mmdebstrap)"
    try:
        mirror()
    except ImageError as error:
        return str(error)
    return ""


def machine_version() -> str:
    """Return the major version of the machine's own systemd, "" when it has none."""
    if not shutil.which("systemctl"):
        return ""
    said = subprocess.run(["systemctl", "--version"], capture_output=True, text=True).stdout
    found = re.match(r"systemd (\d+)", said)
    return found[1] if found else ""


def mirror(etc: Path = Path("/etc")) -> str:
    """Return the address this machine takes its own Debian packages from."""
    if given := os.environ.get("SDQUEUE_TEST_MIRROR"):
        return given
    codename = _os_release(etc).get("VERSION_CODENAME", "")
    for uri, suites, components in _apt_sources(etc / "apt"):
        if codename in suites and "main" in components:
            return uri
    raise ImageError("no Debian mirror in the apt sources (set SDQUEUE_TEST_MIRROR)")


def _bootstrap(version: str, at: Path) -> None:
    """Unpack a minimal Debian with that systemd into `at`."""
    command = [
        "unshare",
        "--mount",
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        f"--include={','.join(PACKAGES)}",
        '--aptopt=Acquire::Check-Valid-Until "false"',
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        SUITES[version],
        str(at),
        mirror(),
    ]
    _run(command)


def _install_dependencies(at: Path) -> None:
    """Put what requirements.txt locks into `at`."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    how = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--root-user-action=ignore"]
    _run([*pip, *how, "--target", str(at), "--requirement", str(REQUIREMENTS)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ImageError(f"{' '.join(command)} failed:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def cached(name: str, recipe: list[str], build: Callable[[Path], None]) -> Path:
    """Return the directory of that recipe, built by the first who asks."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sdqueue-tests"
    cache.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256("\n".join(recipe).encode()).hexdigest()[:12]
    there, partial = cache / f"{name}-{digest}", cache / f"{name}-{digest}.partial"
    if not there.exists():
        with _locked(cache / f"{name}.lock"):
            if not there.exists():
                shutil.rmtree(partial, ignore_errors=True)
                build(partial)
                partial.rename(there)
    return there


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _os_release(etc: Path) -> dict[str, str]:
    lines = (etc / "os-release").read_text().splitlines()
    pairs = [line.partition("=") for line in lines if "=" in line]
    return {key: value.strip('"') for key, _, value in pairs}


def _apt_sources(apt: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (address, suites, components) of each binary source, in both formats of apt."""
    for file in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]:
        for line in file.read_text().splitlines() if file.exists() else []:
            if found := re.match(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)", line):
                yield found[1], [found[2]], found[3].split()
    for file in sorted((apt / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(re.findall(r"^([A-Za-z-]+):\s*(.*)$", stanza, re.MULTILINE))
            if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes") != "no":
                uri = fields.get("URIs", "").split()[0]
                yield uri, fields.get("Suites", "").split(), fields.get("Components", "").split()
