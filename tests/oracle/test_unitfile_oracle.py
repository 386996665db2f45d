"""Does the loader see what systemd sees? Random search paths, unit by unit."""

import os
import random
import shutil
from collections.abc import Iterator

import pytest
from unitfile_oracle import BINARY, KINDS, TOP, Maker, Seen, ask, open_directory

from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.refs import Ref, refs
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import LoadState, Unit
from sdqueue.unitpath import Tree

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


def comparable(seen: Seen, *, without_edges: bool) -> Seen:
    """Take out what can't be equal."""
    kept = {} if without_edges else seen.edges
    aliases = set() if seen.state == "masked" else seen.aliases
    return Seen(seen.name, seen.state, seen.fragment, seen.dropins, aliases, kept)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_search_path_is_loaded_as_systemd_loads_it(seed: int) -> None:
    with open_directory() as root:
        maker = Maker(random.Random(seed), root)
        wanted = maker.fill()
        theirs = ask(maker.path(), TOP)
        units = UnitSet(Tree("", maker.path()), HOST, version=252)
        for name in (TOP, *wanted):
            unit = units.get(name)
            if unit.load_state is LoadState.NOT_FOUND and unit.name not in theirs:
                continue
            assert unit.name in theirs, name
            without = depends_on_name(unit)
            mine = comparable(ours(unit, units), without_edges=without)
            assert mine == comparable(theirs[unit.name], without_edges=without)
