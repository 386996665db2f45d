"""A booted container for each test, on every systemd and in every cgroup layout; or a shared one.

A boot takes half a second, so a fresh one is the rule.
"""

from collections.abc import Iterator

import pytest

from tests.harness import container as containers
from tests.harness.container import Container
from tests.harness.machine import MachineQueue
from tests.harness.tools import require

MACHINES = [
    pytest.param(("252", "unified"), id="252"),
    pytest.param(("252", "hybrid"), id="252-hybrid"),
    pytest.param(("257", "unified"), id="257"),
    pytest.param(("262", "unified"), id="262"),
]


@pytest.fixture(params=MACHINES)
def container(request: pytest.FixtureRequest) -> Iterator[Container]:
    """Give a container of this test's own; the test runs once on every kind of machine."""
    version, layout = request.param
    require(containers.missing(version))
    with Container(version, layout=layout) as fresh:
        yield fresh


@pytest.fixture(scope="module", params=MACHINES)
def shared_container(request: pytest.FixtureRequest) -> Iterator[Container]:
    """Give a container that a module's tests share which leave it as they found it."""
    version, layout = request.param
    require(containers.missing(version))
    with Container(version, layout=layout) as shared:
        yield shared


@pytest.fixture(scope="module", params=["252", "257", "262"])
def machine(request: pytest.FixtureRequest) -> Iterator[MachineQueue]:
    """Give a machine with two users, whose queue the tests of a module share."""
    require(containers.missing(request.param))
    with Container(request.param) as booted:
        for name in ("anna", "bert"):
            booted.add_user(name)
        queue = MachineQueue(booted)
        queue.install()
        yield queue
