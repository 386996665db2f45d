"""A private user manager for each test, or one for all that do not mind."""

from collections.abc import Iterator

import pytest

from tests.harness import manager as managers
from tests.harness.manager import PrivateManager
from tests.harness.tools import require


@pytest.fixture
def manager() -> Iterator[PrivateManager]:
    """Give a user manager of this test's own."""
    require(managers.missing())
    with PrivateManager() as fresh:
        yield fresh


@pytest.fixture(scope="session")
def shared_manager() -> Iterator[PrivateManager]:
    """Give the user manager that tests share which leave it as they found it."""
    require(managers.missing())
    with PrivateManager() as shared:
        yield shared
