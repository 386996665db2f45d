"""Does the simulated `enable` make the links that systemctl makes?"""

import random
from pathlib import Path

import pytest
from install_oracle import ETC, SYSTEMCTL, Maker, enable, links

from sdqueue.unitfile.enable import enable as simulate
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath import Tree, search_path

pytestmark = pytest.mark.skipif(SYSTEMCTL is None, reason="no systemctl to ask")


def simulated(root: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Return the links that would be there."""
    tree = Tree(str(root), search_path(str(root)))
    config = f"{root}/{ETC}"
    made = simulate(names, tree, Host(), config_dir=config, root=str(root), version=252)
    return links(root) | {each.path: each.text for each in made.links}


@pytest.mark.parametrize("seed", range(60))
def test_enabling_random_units_makes_the_links_that_systemctl_makes(
    seed: int, tmp_path: Path
) -> None:
    names = Maker(random.Random(seed), tmp_path).fill()
    ours = simulated(tmp_path, names)
    theirs, said = enable(tmp_path, names)
    assert ours == theirs, said
