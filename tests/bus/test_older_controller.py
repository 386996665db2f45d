"""A program that is newer than the controller does nothing rather than something else."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sdqueue.bus.connection import Bus
from sdqueue.bus.interface import Interface, Method, Property, args
from sdqueue.bus.service import Service
from sdqueue.bus.tree import ObjectTree
from sdqueue.controller.manager_service import INTERFACE
from sdqueue.controller.offering import FEATURES, row
from tests.bus.busdaemon import Daemon, private_bus

NAME, PATH, MANAGER = "org.sdqueue1", "/org/sdqueue1", "org.sdqueue1.Manager"
OLD = ("list", "why", "plan", "cancel", "pause", "events")
HAD = row({"name": "cpu", "state": "free", "slots": 1})
"""A lane as the first controllers told of it: nobody knew yet who waits for it."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with private_bus(tmp_path_factory.mktemp("bus")) as found:
        yield found


async def serve(bus: Bus, asked: list[str]) -> None:
    """Be an older controller, which has methods of these names that meant something else."""

    def note(name: str) -> Callable[..., object]:
        def run(*_rest: object) -> object:
            asked.append(name)
            return "/x" if name == "AdoptOwner" else []

        return run

    interface = Interface(
        MANAGER,
        (
            Method("ListLanes", lambda _request, _target: [HAD], gives=args("lanes:aa{sv}")),
            Method("ListOwners", note("ListOwners"), args("lane:s"), args("owners:aa{sv}")),
            Method(
                "AdoptOwner", note("AdoptOwner"), args("lane:s", "what:s", "name:s"), args("x:s")
            ),
            Method("AcquireLease", note("AcquireLease"), args("l:s", "w:s", "y:s", "o:a{sv}")),
        ),
        (Property("Features", "as", lambda _target: list(OLD)),),
    )
    tree = ObjectTree()
    tree.add(PATH, None, interface)
    Service(bus, tree).start()
    assert await bus.request_name(NAME)


def test_an_older_controller_is_not_asked_for_what_it_can_not(
    daemon: Daemon, tmp_path: Path, run_async: Callable[[Awaitable[Any]], Any]
) -> None:
    ran = tmp_path / "ran"
    socket = Path(daemon.address.removeprefix("unix:path=").partition(",")[0])
    env = {**os.environ, "HOME": str(tmp_path)}
    env |= {"XDG_STATE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(socket.parent)}
    verbs = {
        ("owners", "cpu"): 1,
        ("hold", "cpu", "--", "touch", str(ran)): 5,
        ("adopt", "cpu", str(os.getpid())): 1,
        ("is-free", "cpu"): 4,
    }

    async def call(*words: str) -> tuple[int | None, str]:
        argv = [sys.executable, "-m", "sdqueue", "--user", *words]
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        return process.returncode, said.decode()

    async def play() -> None:
        asked: list[str] = []
        async with await Bus.connect(daemon.address) as bus:
            await serve(bus, asked)
            for words, status in verbs.items():
                found, said = await call(*words)
                assert (found, "is older than" in said) == (status, True), (words, said)
        assert asked == []
        assert not ran.exists()

    run_async(play())


def test_each_feature_that_was_added_has_what_it_is_for() -> None:
    methods = {each.name for each in INTERFACE.methods}
    assert set(OLD) < set(FEATURES)
    assert {"ListOwners", "AcquireLease", "AdoptOwner", "GetJob", "GetLane"} <= methods
