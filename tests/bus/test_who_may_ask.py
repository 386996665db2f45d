"""Another user may look at a queue and change nothing, whatever the bus itself lets through."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sdqueue.bus.connection import Bus
from sdqueue.controller.controller import Controller, Options
from sdqueue.controller.journal import Journal
from sdqueue.controller.offering import NAME, PATH
from sdqueue.controller.places import Places
from sdqueue.controller.service import QueueService
from sdqueue.core import events as ev
from sdqueue.core.spec import Config
from sdqueue.spool.eventlog import EventLog
from sdqueue.spool.layout import Spool, open_spool
from tests.harness.tools import require_programs

OPEN_BUS = """
<busconfig>
  <type>session</type>
  <listen>unix:path={directory}/bus</listen>
  <policy context="default">
    <allow user="*"/> <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
"""
"""A bus that keeps nobody out: stricter ones do, and are not relied upon."""
NOBODY = 65534


@pytest.fixture
def bus_dir() -> Iterator[Path]:
    """Start a bus for all users, in a directory that all can enter."""
    require_programs("dbus-daemon", "busctl", "setpriv")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        config = directory / "bus.conf"
        config.write_text(OPEN_BUS.format(directory=directory))
        command = ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
            assert daemon.stdout is not None
            daemon.stdout.readline()
            yield directory
            daemon.kill()


def controller(directory: Path, address: str) -> Controller:
    """Make a controller that is not at work: what is asked of it stays in its inbox."""
    spool = open_spool(Spool(str(directory / "spool")))
    config = Config()
    options = Options(address=address, system=False, runtime_unit_dir=str(directory))
    places = Places(spool, config.lanes)
    return Controller(options, config, places, Journal(EventLog(spool)), lambda: (config, ()))


async def busctl(address: str, uid: int, *call: str) -> str:
    """Call a method of the queue as some user, and return what is said, good or bad."""
    command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    command += ["busctl", f"--address={address}", "call", NAME, PATH, f"{NAME}.Manager", *call]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said, _ = await process.communicate()
    return said.decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_another_user_may_look_and_change_nothing(
    bus_dir: Path, tmp_path: Path, run_async: Callable[[Awaitable[Any]], Any]
) -> None:
    async def ask() -> None:
        address = f"unix:path={bus_dir}/bus"
        queue = controller(tmp_path, address)
        async with await Bus.connect(address) as bus:
            await QueueService(queue, bus).open()
            for method, *words in (("PauseLane", "sb", "cpu", "true"), ("CancelJob", "s", "a")):
                assert "only root and uid 0" in await busctl(address, NOBODY, method, *words)
            assert "cpu" in await busctl(address, NOBODY, "ListLanes")
            assert queue._inbox == []
            assert "no job" in await busctl(address, 0, "CancelJob", "s", "a")
            await busctl(address, 0, "PauseLane", "sb", "cpu", "true")
            assert queue._inbox == [ev.LanePaused("cpu", True)]

    run_async(ask())
