"""What README.md, ARCHITECTURE.md, CONTRIBUTING.md and docstrings name is there, and said once."""

import ast
import re
from collections import Counter

import pytest

from sdqueue.spool.layout import DIRECTORIES
from tests.unit.test_floors import FLOORS, PACKAGE, ROOT, modules

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")


def words_of(page: str) -> set[str]:
    """Return all that stands in backticks or between parentheses and asterisks, word by word."""
    text = (ROOT / page).read_text(encoding="utf-8")
    quoted = re.findall(r"`([^`\n]+)`", text) + re.findall(r"\*\(([^)]+)\)\*", text)
    return {word.strip(",:;") for each in quoted for word in each.split()}


def rows_of(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading of ARCHITECTURE.md, without its head."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def is_there(path: str) -> bool:
    in_a_spool = path.rstrip("/") in DIRECTORIES
    return in_a_spool or any((base / path).exists() for base in (ROOT, PACKAGE))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    files = {
        word
        for word in words_of(page)
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)*(/|\.(py|md|[158]))", word) and "NAME" not in word
    }
    assert files
    assert {file for file in files if not is_there(file)} == set()


def test_the_floors_of_the_page_are_those_of_the_test() -> None:
    told = {
        int(floor.split()[0]): set(re.findall(r"`(\w+)/?`", parts))
        for floor, parts, *_ in rows_of("Floors")
    }
    assert told == {floor: set(parts) - {"__main__"} for floor, parts in FLOORS.items()}


def test_no_place_stands_twice_in_the_code_map() -> None:
    places = [tuple(re.findall(r"`([^`]+)`", where)) for _, where in rows_of("Code map")]
    assert len(set(places)) == len(places) > 20


def test_every_table_of_the_code_map_is_in_its_file() -> None:
    named = [
        found
        for _, where in rows_of("Code map")
        for found in re.findall(r"`([\w/.]+)` \(([A-Z][\w, ]+)\)", where)
        if found[1].split(", ")[0].isidentifier()
    ]
    assert named
    for file, names in named:
        place = PACKAGE / file
        source = (place / "__init__.py" if place.is_dir() else place).read_text(encoding="utf-8")
        for name in names.split(", "):
            assert re.search(rf"^(class )?{name}\b", source, re.MULTILINE), f"{file}: {name}"


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_of_a_page_is_one(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    text = (ROOT / page).read_text(encoding="utf-8")
    told = set(re.findall(r"(?:^ {4}|`)make ([a-z]+)(?=`| {2}|\n)", text, re.MULTILINE))
    assert told <= targets


def _named_in_docstrings() -> set[tuple[str, str]]:
    """Return (module, name) of what docstrings name with its package, as `core.plan`."""
    # systemd has directories called generator.early and so on.
    parts = "|".join({part for parts in FLOORS.values() for part in parts} - {"generator"})
    wanted = re.compile(rf"`((?:sdqueue\.)?(?:{parts})(?:\.\w+)+)(?:\(\))?`")
    return {
        (name, found)
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in wanted.findall(node.value)
    }


def _is_defined(dotted: str) -> bool:
    package, _, name = dotted.rpartition(".")
    return dotted in modules() or (package in modules() and name in _names_in(package))


def _names_in(module: str) -> set[str]:
    """Return the names that a module defines, uses or hands on."""
    nodes = list(ast.walk(modules()[module]))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    defined = {node.name for node in nodes if isinstance(node, DEFINITIONS | ast.alias)}
    return used | defined


def test_what_docstrings_name_with_its_package_is_there() -> None:
    named = _named_in_docstrings()
    assert len(named) > 20
    gone = {
        (module, name)
        for module, name in named
        if not _is_defined(f"sdqueue.{name.removeprefix('sdqueue.')}")
    }
    assert gone == set()


def test_no_two_test_modules_have_one_name() -> None:
    # pytest can't import the second: its directories are no packages.
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
