"""The whole graph against systemd's own: nodes, load and active states, every edge with origins."""

import pytest
from graph_oracle import STOCK_PATH, STOCK_USER_PATH, Dump, Manager, Systemd, systemd_of
from ours import differences, facts, load

from tests.harness.tools import require_root

VERSIONS = ("252", "257", "262")
PATHS = {"system": STOCK_PATH, "user": STOCK_USER_PATH}


def ask(systemd: Systemd, manager: Manager) -> Dump:
    dump = systemd.run(PATHS[manager], manager=manager)
    assert dump.units, dump.log
    return dump


@pytest.mark.parametrize("manager", ["system", "user"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_stock_tree_gives_systemds_graph(version: str, manager: Manager) -> None:
    systemd = systemd_of(version)
    if manager == "user":
        require_root()
    dump = ask(systemd, manager)
    loaded = load(systemd, PATHS[manager], "default.target", facts(systemd, dump, manager))
    assert differences(dump, loaded.graph) == []
