"""83 units and the dependencies that systemd itself gave them, edge by edge, with origins.

`lint_graph/deps-VERSION.json` is what `systemd --test` printed; `base/` holds what the units need
of an operating system.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sdqueue.boot.graph import Graph
from sdqueue.boot.loading import Loaded, Manager, build
from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath.tree import Added, Tree

CASE = Path(__file__).parent / "lint_graph"
WISH = json.loads((CASE / "case.json").read_text())
CONTAINER = {252: True, 257: False, 262: False}
"""252 was asked in a container, where swap units get no default dependencies."""


def load(version: int) -> Loaded:
    """Load the case as that version does."""
    host = Host(hostname="vm")
    masks = tuple(Added(str(CASE / "units" / name), text="/dev/null") for name in WISH["mask"])
    tree = Tree("", (str(CASE / "units"), str(CASE / "base")), masks)
    units = UnitSet(tree, host=host, version=version)
    container = CONTAINER[version]
    manager = Manager(version=version, container=container, memory_controller=False, host=host)
    return build(units.get, manager, [WISH["target"]], fragment_of=units.fragment_file)


def dependencies(graph: Graph, unit: str) -> dict[str, Any]:
    """What the graph says of one unit, in the spelling of the file."""
    found: dict[str, Any] = {"load": graph.nodes[unit].load_state}
    for kind in graph.kinds(unit):
        found[kind] = {
            other: _said(graph, unit, kind, other) for other in graph.neighbours(unit, kind)
        }
    return found


def _said(graph: Graph, unit: str, kind: Any, other: str) -> list[str]:
    return sorted({f"{side}-{origin.mask}" for side, origin in graph.origins(unit, kind, other)})


def _expected(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        kind: others if kind == "load" else {o: sorted(said.split()) for o, said in others.items()}
        for kind, others in entry.items()
    }


@pytest.mark.parametrize("version", [252, 257, 262])
def test_every_dependency_of_the_83_units_is_systemds_with_its_origin(version: int) -> None:
    judged = json.loads((CASE / f"deps-{version}.json").read_text())
    graph = load(version).graph
    assert len(judged) == 83
    for unit, entry in judged.items():
        assert dependencies(graph, unit) == _expected(entry), unit


@pytest.mark.parametrize("version", [252, 257, 262])
def test_what_hangs_on_the_order_of_loading_is_told(version: int) -> None:
    assert [(u.unit, u.other) for u in load(version).unsure] == [("tg.target", "tgm6.service")]


def test_every_edge_that_a_line_states_or_causes_knows_the_line() -> None:
    graph = load(257).graph
    ((_, said),) = graph.origins("svc-rels.service", "Requisite", "r2.service")
    assert (said.kind, said.line) == ("file", 3)
    assert said.file == str(CASE / "units/svc-rels.service")
    ((_, said),) = graph.origins("svc-statedir.service", "After", "systemd-remount-fs.service")
    assert (said.kind, said.line, said.mask) == ("implicit", 4, "file")
    ((_, said),) = graph.origins("dash-er-foo.service", "After", "from-dash-er.service")
    assert (said.kind, said.line) == ("dropin", 2)
    ((_, said),) = graph.origins("tg.target", "After", "tgm5.service")
    assert (said.kind, said.line) == ("default", 6)
