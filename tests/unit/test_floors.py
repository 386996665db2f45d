"""The floors of ARCHITECTURE.md: imports go down, pure code touches nothing outside, all is small.

The table below is the architecture. A module that is not in it fails the test: decide its floor.
"""

import ast
import statistics
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "sdqueue"

FLOORS = {
    0: ("words",),
    1: (
        "cgroup",
        "config",
        "core",
        "generate",
        "jobfile",
        "jobkeys",
        "jobtext",
        "jobvalues",
        "settings",
        "slicekeys",
        "tomlplaces",
        "unitbase",
        "unitfile",
    ),
    2: ("boot",),
    3: ("lint",),
    4: (
        "bus",
        "config_files",
        "notify",
        "owners",
        "pidfd",
        "pipes",
        "sensors",
        "spool",
        "unitpath",
        "until_gone",
    ),
    5: ("controller", "generator"),
    6: ("__main__", "cli"),
}
PURE = 3  # the highest floor that touches nothing outside
# As they are imported; `random` is fine with a seed that is a parameter, `signal` for its names.
OUTSIDE = {
    "asyncio",
    "concurrent",
    "ctypes",
    "fcntl",
    "glob",
    "io.open",
    "logging",
    "multiprocessing",
    "os",
    "pathlib.Path",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib.request",
}
OUTSIDE_CALLS = {"open", "input", "print", "now", "utcnow", "today"}
BUS_LIBRARIES = {"dasbus", "dbus", "dbus_fast", "dbus_next", "jeepney", "pystemd", "sdbus"}
NOT_IN_THE_GENERATOR = {"asyncio", "jinja2", "sdqueue.bus", *BUS_LIBRARIES}
FILE_LINES, MEDIAN_LINES, MOST_LINES = 500, 8, 30

FLOOR_OF = {part: floor for floor, parts in FLOORS.items() for part in parts}


@cache
def modules() -> dict[str, ast.Module]:
    """Return every module of the product: dotted name to syntax tree."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(file.read_bytes(), str(file))
    return found


@cache
def imports(module: str, *, at_start: bool = False) -> frozenset[str]:
    """Return all that a module imports, as dotted names, the names after `from` appended.

    With `at_start` only what it imports when it is itself imported, not what a function does.
    """
    tree = modules()[module]
    found = set()
    for node in tree.body if at_start else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def product_imports(module: str, *, at_start: bool = False) -> set[str]:
    """Return the product's modules that `module` imports."""
    names = imports(module, at_start=at_start)
    named = {name if name in modules() else name.rpartition(".")[0] for name in names}
    return {name for name in named if name in modules()} - {module}


def uses(module: str, libraries: set[str]) -> set[str]:
    """Return which of `libraries` (or of their names) the module imports."""
    return {
        library
        for library in libraries
        for name in imports(module)
        if name == library or name.startswith(f"{library}.")
    }


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def floor(module: str) -> int:
    """Return the floor of a module; the package itself, which holds the version, is below all."""
    return FLOOR_OF.get(part(module), 0) if part(module) else -1


def pure_modules() -> list[str]:
    return [name for name in modules() if FLOOR_OF.get(part(name), 0) <= PURE]


def calls(module: str) -> set[str]:
    """Return the names of the functions and methods that a module calls; `x.open()` is a method."""
    called = [node.func for node in ast.walk(modules()[module]) if isinstance(node, ast.Call)]
    methods = {call.attr for call in called if isinstance(call, ast.Attribute)}
    return {call.id for call in called if isinstance(call, ast.Name)} | methods - {"open"}


def test_every_part_has_a_floor_and_no_floor_a_part_that_is_gone() -> None:
    parts = {part(name) for name in modules()} - {""}
    homeless, gone = parts - set(FLOOR_OF), set(FLOOR_OF) - parts
    assert not homeless, f"say in FLOORS on which floor they live: {homeless}"
    assert not gone, f"take them out of FLOORS: {gone}"


def test_imports_go_down() -> None:
    upward = {
        name: up
        for name in modules()
        if (up := {other for other in product_imports(name) if floor(other) > floor(name)})
    }
    assert upward == {}


def test_pure_floors_import_nothing_of_the_outside() -> None:
    outside = {name: used for name in pure_modules() if (used := uses(name, OUTSIDE))}
    assert outside == {}


def test_pure_floors_call_nothing_of_the_outside() -> None:
    outside = {name: called for name in pure_modules() if (called := calls(name) & OUTSIDE_CALLS)}
    assert outside == {}


def test_only_the_bus_knows_a_bus_library() -> None:
    others = [name for name in modules() if part(name) != "bus"]
    assert {name: used for name in others if (used := uses(name, BUS_LIBRARIES))} == {}


def test_no_import_goes_in_a_circle() -> None:
    done: set[str] = set()

    def walk(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join([*way[way.index(module) :], module])
        if module not in done:
            for name in sorted(product_imports(module, at_start=True)):
                walk(name, (*way, module))
            done.add(module)

    for module in modules():
        walk(module, ())


def test_the_generator_runs_in_early_boot() -> None:
    needed, left = set(), [name for name in modules() if part(name) == "generator"]
    while left:
        module = left.pop()
        needed.add(module)
        left += product_imports(module) - needed
    assert {name: used for name in needed if (used := uses(name, NOT_IN_THE_GENERATOR))} == {}


def test_no_file_is_long() -> None:
    lines = {file: file.read_bytes().count(b"\n") for file in PACKAGE.rglob("*.py")}
    assert {file: count for file, count in lines.items() if count > FILE_LINES} == {}


def test_functions_are_small() -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    sizes = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    )
    assert statistics.median(sizes) <= MEDIAN_LINES
    assert sizes[int(0.9 * len(sizes))] <= MOST_LINES
