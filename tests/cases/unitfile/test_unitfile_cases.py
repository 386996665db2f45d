"""Directories of unit files, and what is loaded from them: `tree/` in, `expected.txt` out.

`tree/` holds `etc/` and `lib/`, the search path. `ask.txt` names the units to load. Run with
SDQUEUE_WRITE_EXPECTED=1 to write the expectation anew, then read the difference.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import Unit
from sdqueue.unitpath import Tree

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/ask.txt"))


def shown(unit: Unit) -> Iterator[str]:
    """Yield everything there is about a unit."""
    yield f"{unit.name}: {unit.load_state}, {unit.fragment_file or 'no file'}"
    if len(unit.names) > 1:
        yield f"    names {' '.join(sorted(unit.names))}"
    yield from (f"    drop-in {file}" for file in unit.dropin_files)
    for setting in unit.settings:
        yield f"    [{setting.section}] {setting.key}={setting.value!r} {setting.place}"
    for link in unit.links:
        yield f"    {link.kind} {link.other} {link.file}{' masked' if link.masked else ''}"
    yield from (f"    {problem}" for problem in unit.problems)


def loaded(case: Path) -> str:
    """Load what the case asks for, and show it; paths are those in the case."""
    tree = case / "tree"
    files = Tree(str(tree), (f"{tree}/etc", f"{tree}/lib"))
    units = UnitSet(files, Host(), version=257)
    names = (case / "ask.txt").read_text().split()
    lines = [line for name in names for line in shown(units.get(name))]
    lines += [str(problem) for problem in (*units.names.problems, *files.problems)]
    return "".join(f"{line}\n" for line in lines).replace(f"{tree}/", "")


@pytest.mark.parametrize("name", CASES)
def test_a_tree_of_unit_files_is_loaded_as_expected(name: str) -> None:
    found = loaded(HERE / name)
    expected = HERE / name / "expected.txt"
    if os.environ.get("SDQUEUE_WRITE_EXPECTED"):
        expected.write_text(found)
    assert found == expected.read_text()


def test_there_are_cases() -> None:
    assert len(CASES) >= 6
