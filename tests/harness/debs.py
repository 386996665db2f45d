"""Debian packages for a container without a network: what a package needs and its image lacks.

needed("257", ["python3-psutil"]) -> files to give dpkg, fetched once; [] where the image has all
missing("257")                    why there is none to be had, "" where there is
"""

import subprocess
from pathlib import Path

from tests.harness import images


def missing(version: str) -> str:
    """Say what this machine lacks to fetch packages for that version, "" when it lacks nothing."""
    try:
        images.mirror()
    except images.ImageError as error:
        return str(error)
    return images.missing(version)


def needed(version: str, packages: list[str]) -> list[Path]:
    """Return these packages and what they depend on, as far as the image has none of them."""
    status = images.root_of(version) / "var/lib/dpkg/status"
    recipe = [*packages, status.read_text()]
    name = f"debs-{images.SUITES[version]}"
    directory = images.cached(name, recipe, lambda at: _fetch(version, packages, status, at))
    return sorted((directory / "archives").glob("*.deb"))


def _fetch(version: str, packages: list[str], status: Path, at: Path) -> None:
    for each in ("lists/partial", "archives/partial"):
        (at / each).mkdir(parents=True)
    (at / "sources.list").write_text(f"deb {images.mirror()} {images.SUITES[version]} main\n")
    settings = {
        "Dir::Etc::sourcelist": at / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State::lists": at / "lists",
        "Dir::State::status": status,
        "Dir::Cache": at,
        "Acquire::Check-Valid-Until": "false",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
    }
    apt = ["apt-get", "-qq", *(f"--option={key}={value}" for key, value in settings.items())]
    for words in (["update"], ["--yes", "--download-only", "install", *packages]):
        done = subprocess.run([*apt, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise images.ImageError(f"{' '.join(words)}: {done.stderr[-2000:]}")
