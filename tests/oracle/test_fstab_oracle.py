"""Does the emulated fstab generator write what the real ones write?"""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from fstab_oracle import GENERATOR, ask, random_fstab

from sdqueue.unitfile.fstab import Machine, generate
from sdqueue.unitfile.parse import parse
from sdqueue.words import unitname
from tests.harness.images import ImageError, machine_version, missing, root_of

UNTOLD = frozenset(("Documentation", "SourcePath", "Description"))
Settings = Counter[tuple[str, str, str]]


def settings(text: str) -> Settings:
    """Return what a file says that matters for the order of things, however it is arranged."""
    found: Settings = Counter()
    for each in parse(text.encode(), "f").settings:
        words = each.value.split() if each.key in ("After", "Before", "Requires") else [each.value]
        if each.key not in UNTOLD and (each.section, each.key) != ("Service", "TimeoutSec"):
            found.update((each.section, each.key, word) for word in words)
    return Counter({(s, k, _program(v)): n for (s, k, v), n in found.items()})


def _program(value: str) -> str:
    return value.removeprefix("/usr").replace("/lib/systemd/", "", 1)


def comparable(files: dict[str, str], links: dict[str, str]) -> tuple[object, object]:
    targets = {at: text.rpartition("/")[2] for at, text in links.items()}
    return {name: settings(text) for name, text in files.items()}, targets


def checkers(root: Path) -> set[str]:
    """Return the types of file systems for which a root has a checker; "" for any at all."""
    places = [root / "usr/sbin", root / "sbin", root / "usr/bin"]
    return {path.name.removeprefix("fsck").lstrip(".") for p in places for path in p.glob("fsck*")}


def machine(version: int, root: Path, *, container: bool) -> Machine:
    there = checkers(root)
    return Machine(
        version=version,
        container=container,
        fsck=lambda fstype: ("" if fstype in ("", "auto") else fstype) in there,
        real=os.path.realpath,
    )


def agree(seed: int, version: int, root: Path, work: Path, *, container: bool) -> None:
    fstab = random_fstab(seed)
    said = ask(fstab, work, None if root == Path("/") else root)
    ours = generate(fstab, machine(version, root, container=container))
    theirs = comparable(said.files, said.links)
    assert comparable(ours.files, ours.links) == theirs, f"{fstab}\n{said.log}"


@pytest.mark.skipif(not Path(f"/{GENERATOR}").exists(), reason="no systemd-fstab-generator here")
@pytest.mark.parametrize("seed", range(60))
def test_this_machines_generator_writes_the_same(seed: int, tmp_path: Path) -> None:
    detect = ["systemd-detect-virt", "--container", "--quiet"]
    container = subprocess.run(detect, check=False).returncode == 0
    agree(seed, int(machine_version()), Path("/"), tmp_path, container=container)


@pytest.mark.parametrize("version", ["257", "262"])
@pytest.mark.parametrize("seed", range(20))
def test_the_generators_of_other_releases_write_the_same(
    seed: int, version: str, tmp_path: Path
) -> None:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("entering an image needs root")
    why_not = missing(version)
    if why_not:
        pytest.skip(why_not)
    try:
        root = root_of(version)
    except ImageError as error:
        pytest.skip(str(error))
    agree(seed, int(version), root, tmp_path, container=False)


@pytest.mark.parametrize("tag", ["LABEL=x", "UUID=1", "/dev/x"])
def test_every_device_in_a_mount_has_a_unit_name(tag: str) -> None:
    made = generate(f"{tag} /x ext4 _netdev 0 2\n", Machine())
    for name in made.files:
        assert unitname.is_valid(name.partition("/")[0].removesuffix(".d"))
