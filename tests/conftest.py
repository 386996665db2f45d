"""For every kind of test: its mark, what it needs, nothing left behind, coroutines under watch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.harness.leftovers import no_child_left, no_file_left_open, no_mount_left
from tests.harness.loop import run_watched
from tests.harness.tools import SOAK, require_programs

KINDS = {
    "unit": "nothing from outside: pure floors",
    "cases": "directories of input and expected output",
    "bus": "a private user manager and its bus",
    "oracle": "the systemd binary's own boot transaction",
    "booted": "real PID 1 in a container",
}


def pytest_configure(config: pytest.Config) -> None:
    """Make the kinds of tests known, as marks for `-m`."""
    for kind, against in KINDS.items():
        config.addinivalue_line("markers", f"{kind}: runs against {against}")
    config.addinivalue_line("markers", "needs(*programs): requires programs in PATH")
    settings.register_profile("test", derandomize=True, deadline=None)
    settings.register_profile("soak", max_examples=20_000, deadline=None)
    settings.load_profile("soak" if SOAK else "test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with its kind, which is the name of its directory."""
    here = Path(__file__).parent
    for item in items:
        kind = item.path.relative_to(here).parts[0]
        if kind in KINDS:
            item.add_marker(kind)


@pytest.fixture(autouse=True)
def _needed(request: pytest.FixtureRequest) -> None:
    for mark in request.node.iter_markers("needs"):
        require_programs(*mark.args)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with no_mount_left(), no_child_left():
        yield


@pytest.fixture
def no_new_files() -> Iterator[None]:
    """Fail the test when it leaves a file descriptor open."""
    with no_file_left_open():
        yield


@pytest.fixture
def run_async() -> Callable[..., Any]:
    """Return the function that runs a coroutine under watch: `run_async(main())`."""
    return run_watched
