"""Does the simulated `enable` make the links that systemctl makes?"""

import os
import random
from pathlib import Path

import pytest
from install_oracle import ETC, SYSTEMCTL, Maker, enable, links

from sdqueue.unitfile.enable import enable as simulate
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath import Tree, search_path
from tests.harness.images import machine_version, missing, root_of

pytestmark = pytest.mark.skipif(SYSTEMCTL is None, reason="no systemctl to ask")


def simulated(root: Path, names: tuple[str, ...], version: int) -> dict[str, str]:
    """Return the links that would be there."""
    tree = Tree(str(root), search_path(str(root), version=version))
    config = f"{root}/{ETC}"
    made = simulate(names, tree, Host(), config_dir=config, root=str(root), version=version)
    return links(root) | {each.path: each.text for each in made.links}


def agree(seed: int, version: int, work: Path, image: Path | None) -> None:
    """Enable both ways."""
    names = Maker(random.Random(seed), work).fill()
    ours = simulated(work, names, version)
    theirs, said = enable(work, names, image)
    assert ours == theirs, said


@pytest.mark.parametrize("seed", range(60))
def test_enabling_random_units_makes_the_links_that_systemctl_makes(
    seed: int, tmp_path: Path
) -> None:
    agree(seed, int(machine_version()), tmp_path, None)


@pytest.mark.parametrize("version", ["257", "262"])
@pytest.mark.parametrize("seed", range(20))
def test_other_versions_make_the_same_links(seed: int, version: str, tmp_path: Path) -> None:
    why_not = missing(version)
    if why_not or os.geteuid() != 0:
        pytest.skip(why_not or "entering an image needs root")
    image = root_of(version)
    agree(seed, int(version), tmp_path, None if image == Path("/") else image)
