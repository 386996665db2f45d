"""Does the loader see what systemd sees? Random search paths, unit by unit."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from unitfile_oracle import BINARY, KINDS, TOP, Maker, Seen, ask, open_directory

from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.refs import Ref, refs
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import LoadState, Unit
from sdqueue.unitpath import Tree
from sdqueue.words.unitname import slice_is_valid
from tests.harness.images import machine_version, missing, root_of

pytestmark = pytest.mark.skipif(
    not BINARY.exists() or (os.geteuid() == 0 and not shutil.which("setpriv")),
    reason="no systemd to ask",
)
SEEDS = range(40)
HOST = Host()


def edges(unit: Unit, units: UnitSet) -> Iterator[tuple[str, str]]:
    """Yield what the unit's files list, by the ids of the others."""
    for kind in KINDS:
        for ref in refs(unit, kind, HOST, fragment_of=units.fragment_file):
            if isinstance(ref, Ref):
                yield kind, units.get(ref.name).name
    for link in unit.links:
        if link.kind == "wants" and not link.masked:
            yield "Wants", units.get(link.other).name


def ours(unit: Unit, units: UnitSet) -> Seen:
    """Return a unit of ours in the words of the dump."""
    seen = Seen(unit.name, str(unit.load_state), unit.fragment_file or "", [*unit.dropin_files])
    if unit.load_state is not LoadState.MASKED:
        seen.aliases = set(unit.names - {unit.name})
    for kind, other in edges(unit, units):
        if other != unit.name:
            seen.edges.setdefault(kind, set()).add(other)
    return seen


def depends_on_name(unit: Unit) -> bool:
    """Say whether the lists of a unit read differently under another of its names.

    systemd reads the file once for every name that it is asked for; we read it for the id.
    """
    texts = (setting.value for setting in unit.settings)
    return len(unit.names) > 1 and any("%" in text or "@." in text for text in texts)


def _real(names: set[str], units: UnitSet) -> set[str]:
    """Return ids, without names that no slice can have: v262 makes no edge to those.

    Whether an alias of a masked unit becomes that unit or one of its own depends on which of the
    two systemd loads first.
    """
    real = (name for name in names if not name.endswith(".slice") or slice_is_valid(name))
    return {units.get(name).name for name in real}


def comparable(seen: Seen, units: UnitSet, *, without_edges: bool) -> Seen:
    """Take out what can't be equal."""
    kept = {kind: real for kind, all_ in seen.edges.items() if (real := _real(all_, units))}
    kept = {} if without_edges else kept
    aliases = set() if seen.state == "masked" else seen.aliases
    return Seen(seen.name, seen.state, seen.fragment, seen.dropins, aliases, kept)


def agree(seed: int, version: int, image: Path | None) -> None:
    """Load a random search path both ways."""
    with open_directory() as root:
        maker = Maker(random.Random(seed), root)
        wanted = maker.fill()
        theirs = ask(maker.path(), image)
        units = UnitSet(Tree("", maker.path()), HOST, version=version)
        for name in (TOP, *wanted):
            unit = units.get(name)
            if unit.load_state is LoadState.NOT_FOUND and unit.name not in theirs:
                continue
            if unit.load_state is LoadState.MASKED and len(unit.names) > 1:
                continue  # one unit or two: as systemd happens to load them
            assert unit.name in theirs, name
            without = depends_on_name(unit)
            mine = comparable(ours(unit, units), units, without_edges=without)
            assert mine == comparable(theirs[unit.name], units, without_edges=without)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_search_path_is_loaded_as_systemd_loads_it(seed: int) -> None:
    agree(seed, int(machine_version()), None)


@pytest.mark.parametrize("version", ["257", "262"])
@pytest.mark.parametrize("seed", range(15))
def test_it_is_loaded_as_other_versions_load_it(seed: int, version: str) -> None:
    why_not = missing(version)
    if why_not or os.geteuid() != 0:
        pytest.skip(why_not or "entering an image needs root")
    image = root_of(version)
    agree(seed, int(version), None if image == Path("/") else image)
