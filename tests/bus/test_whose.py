"""Whose a process is to the queue of a private user manager: real units and faked directories."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import Systemd
from sdqueue.controller.whose import NO_ANSWER, NO_UNIT, Asker, Belonging, whose
from sdqueue.core.owner import Standing
from sdqueue.pidfd import has_ended
from tests.harness import manager as managers
from tests.harness import whose as asked
from tests.harness.manager import PrivateManager, systemd_program
from tests.harness.tools import require
from tests.harness.waiting import eventually

ROOT = Path(__file__).parents[2]
ENGINES = ["llm-engine-*"]
SLEEP = ["sleep", "infinity"]
# Makes a directory, with the way to it, above or below its own control group, and goes there.
MOVE = """
top=/sys/fs/cgroup; [ ! -d $top/unified ] || top=$top/unified
own=$(sed -n s/^0:://p /proc/self/cgroup)
cd $top$own; mkdir -p $1; echo $$ >$1/cgroup.procs; exec sleep infinity
"""


def ask(manager: PrivateManager, *pids: int, **options: Any) -> list[Belonging | None]:
    def run(argv: list[str]) -> "subprocess.CompletedProcess[str]":
        return manager.run([sys.executable, *argv], cwd=ROOT)

    return asked.ask(run, *pids, **options)


@contextmanager
def unit(
    manager: PrivateManager, name: str, *argv: str, more: tuple[str, ...] = ()
) -> Iterator[int]:
    """Run a service, and give its main process."""
    start = ["systemd-run", "--user", "--quiet", f"--unit={name}", *more]
    manager.run([*start, *(argv or SLEEP)])
    try:
        yield int(manager.show(name, "MainPID"))
    finally:
        manager.run(["systemctl", "--user", "stop", name])
        manager.run(["systemctl", "--user", "reset-failed", name], check=False)


def script(manager: PrivateManager, text: str) -> str:
    """Put a script where a unit can run it: in a command line systemd would read its `$`."""
    file = manager.home / "script"
    file.write_text(text)
    return str(file)


@contextmanager
def moved(manager: PrivateManager, to: str) -> Iterator[int]:
    """Run evil.service with a tree of its own, whose process goes where it likes."""
    argv = ("sh", "-e", script(manager, MOVE), to)
    with unit(manager, "evil.service", *argv, more=("-pDelegate=yes",)) as pid:
        path = Path(f"/proc/{pid}/cgroup")
        eventually(lambda: path.read_text().strip().endswith(to.removeprefix("..")), "its move")
        yield pid


def test_an_engine_yields_and_is_ours_where_it_is_a_job(shared_manager: PrivateManager) -> None:
    with unit(shared_manager, "llm-engine-real.service") as pid:
        engine = "llm-engine-real.service"
        uid = os.geteuid()
        assert ask(shared_manager, pid) == [Belonging(Standing.FOREIGN, engine, uid)]
        (found,) = ask(shared_manager, pid, yielding=ENGINES)
        assert found == Belonging(Standing.YIELDING, engine, uid)
        (found,) = ask(shared_manager, pid, yielding=ENGINES, ours=[engine])
        assert found == Belonging(Standing.OURS, engine, uid)


@pytest.mark.parametrize("to", ["llm-engine-x.service", "a.slice/llm-engine-x.service/b"])
def test_a_directory_in_a_delegated_tree_is_still_that_unit(
    shared_manager: PrivateManager, to: str
) -> None:
    with moved(shared_manager, to) as pid:
        (found,) = ask(shared_manager, pid, yielding=ENGINES, ours=["llm-engine-x.service"])
    assert found == Belonging(Standing.FOREIGN, "evil.service", os.geteuid())


def test_a_directory_that_is_no_units_is_no_engine(shared_manager: PrivateManager) -> None:
    with moved(shared_manager, "../llm-engine-fake.service") as pid:
        fake = ["llm-engine-*", "*"]
        (found,) = ask(shared_manager, pid, yielding=fake, ours=["llm-engine-fake.service"])
    assert found == Belonging(Standing.FOREIGN, "app.slice", os.geteuid(), NO_UNIT)


def test_what_an_engine_left_when_it_failed_is_foreign(shared_manager: PrivateManager) -> None:
    engine = "llm-engine-dead.service"
    leave = script(shared_manager, "sleep infinity & echo $! >$HOME/left; exit 3")
    with unit(shared_manager, engine, "sh", leave, more=("-pKillMode=none",)):
        eventually(lambda: shared_manager.show(engine, "ActiveState") == "failed", "its end")
        pid = int((shared_manager.home / "left").read_text())
        (found,) = ask(shared_manager, pid, yielding=ENGINES)
        os.kill(pid, signal.SIGKILL)
    assert found == Belonging(Standing.FOREIGN, engine, os.geteuid())


def test_what_is_beside_the_manager_is_foreign(shared_manager: PrivateManager) -> None:
    with shared_manager.popen(SLEEP) as process:
        (found,) = ask(shared_manager, process.pid, yielding=["*"])
        process.kill()
    assert found == Belonging(Standing.FOREIGN, "session-1.scope", os.geteuid())


def test_the_manager_itself_is_no_engine_of_its_own_tree(shared_manager: PrivateManager) -> None:
    (found,) = ask(shared_manager, shared_manager.pid, yielding=ENGINES)
    assert found == Belonging(Standing.FOREIGN, "init.scope", os.geteuid())


def test_a_unit_is_found_by_descriptor_and_not_by_a_pid_that_came_round(
    shared_manager: PrivateManager, run_async: Callable[..., Any]
) -> None:
    async def main(pids: list[int], pidfds: list[int]) -> list[str | None]:
        async with await Bus.connect(shared_manager.bus_address) as bus:
            systemd = Systemd(bus, lambda _event: None)
            return [await systemd.unit_of_pid(pidfd, pids[0]) for pidfd in pidfds]

    with unit(shared_manager, "round.service") as pid, subprocess.Popen(SLEEP) as other:
        pidfds = [os.pidfd_open(each) for each in (pid, other.pid)]
        other.kill()
        other.wait()
        assert run_async(main([pid, other.pid], pidfds)) == ["round.service", None]
        for pidfd in pidfds:
            os.close(pidfd)


@pytest.mark.usefixtures("no_new_files")
def test_a_process_that_ended_is_nobodys(
    shared_manager: PrivateManager, run_async: Callable[..., Any]
) -> None:
    async def main() -> Belonging | None:
        async with await Bus.connect(shared_manager.bus_address) as bus:
            asker = Asker(Systemd(bus, lambda _event: None), system=False)
            return await whose(asker, process.pid, pidfd)

    with subprocess.Popen(SLEEP) as process:
        pidfd = os.pidfd_open(process.pid)
        process.kill()
    assert run_async(main()) is None
    os.close(pidfd)


def test_a_process_that_ends_while_its_manager_is_asked_is_nobodys(
    shared_manager: PrivateManager, run_async: Callable[..., Any]
) -> None:
    async def main(pid: int) -> Belonging | None:
        pidfd = os.pidfd_open(pid)
        async with await Bus.connect(shared_manager.bus_address) as bus:
            asker = Asker(Systemd(bus, lambda _event: None), system=False, yielding=["*"])
            os.kill(shared_manager.pid, signal.SIGSTOP)
            asking = asyncio.create_task(whose(asker, pid, pidfd))
            while len(bus._pending) == 0:
                await asyncio.sleep(0)
            os.kill(pid, signal.SIGKILL)
            while not has_ended(pidfd):
                await asyncio.sleep(0.01)
            os.kill(shared_manager.pid, signal.SIGCONT)
            found = await asking
        os.close(pidfd)
        return found

    with unit(shared_manager, "llm-engine-ends.service") as pid:
        try:
            assert run_async(main(pid)) is None
        finally:
            os.kill(shared_manager.pid, signal.SIGCONT)


def test_where_the_manager_does_not_answer_nothing_yields_and_nothing_is_free(
    shared_manager: PrivateManager, run_async: Callable[..., Any]
) -> None:
    async def main(pid: int) -> list[Belonging | None]:
        pidfd = os.pidfd_open(pid)
        bus = await Bus.connect(shared_manager.bus_address)
        asker = Asker(Systemd(bus, lambda _event: None), False, yielding=["*"])
        bus.close()
        try:
            without = Asker(None, False, yielding=["*"])
            return [await whose(each, pid, pidfd) for each in (asker, without)]
        finally:
            os.close(pidfd)

    with unit(shared_manager, "llm-engine-real.service") as pid:
        found = run_async(main(pid))
    assert found == [Belonging(Standing.FOREIGN, "", os.geteuid(), NO_ANSWER)] * 2


@pytest.mark.usefixtures("no_new_files")
def test_asking_many_times_leaves_no_file_open(
    shared_manager: PrivateManager, run_async: Callable[..., Any]
) -> None:
    async def main(pid: int) -> None:
        pidfd = os.pidfd_open(pid)
        async with await Bus.connect(shared_manager.bus_address) as bus:
            asker = Asker(Systemd(bus, lambda _event: None), False)
            await asyncio.gather(*(whose(asker, pid, pidfd) for _ in range(50)))
        os.close(pidfd)

    with unit(shared_manager, "many.service") as pid:
        run_async(main(pid))


class ManagerOfAll(PrivateManager):
    """A user manager in a container that has nothing else: its control group is the root."""

    def _start_manager(self) -> None:
        self.pid = self._serve([systemd_program("systemd"), "--user", "--log-target=journal"], "")
        self._wait_for_bus()


def test_a_user_manager_that_has_the_root_of_all_has_not_all_that_is_there() -> None:
    require(managers.missing())
    with ManagerOfAll() as manager, unit(manager, "llm-engine-real.service") as pid:
        stranger = ["setpriv", "--reuid=65534", *SLEEP]
        with manager.popen(SLEEP) as beside, manager.popen(stranger) as other:
            status = Path(f"/proc/{other.pid}/status")
            eventually(lambda: "Uid:\t65534" in status.read_text(), "the other user")
            found = ask(manager, pid, beside.pid, other.pid, yielding=["*"])
            beside.kill()
            other.kill()
    assert found == [
        Belonging(Standing.YIELDING, "llm-engine-real.service", os.geteuid()),
        Belonging(Standing.FOREIGN, "", os.geteuid(), NO_UNIT),
        Belonging(Standing.FOREIGN, "", 65534, NO_UNIT),
    ]
