"""Keeping up with who uses a lane: real processes and devices of this box, or a tree that settles.

The recheck is an hour away: what is noticed was told by the kernel. Nobody can be asked whose a
process is here, so nobody is known to be in a unit.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sdqueue.controller import owner_watch
from sdqueue.controller.owner_watch import OwnerWatch
from sdqueue.controller.whose import Asker
from sdqueue.core import events as ev
from sdqueue.core.lane import Lane
from sdqueue.core.owner import Use
from sdqueue.owners import judge
from sdqueue.owners.sweep import FLOOR
from tests.harness.gpu_root import GIB, GPU, MIB, GpuRoot, amdgpu
from tests.harness.loop import run_watched
from tests.harness.terminal import lone_terminal

HOLD = """
import os, sys
for line in sys.stdin:
    if line == "open\\n":
        fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
    elif line == "close\\n":
        os.close(fd)
    elif line == "child\\n":
        os.set_inheritable(fd, True)
        os.fork() or os.execvp("sleep", ["sleep", "1000"])
    print("ok", flush=True)
"""


class Watch:
    """An OwnerWatch under test: what it told, and its tasks."""

    def __init__(self, tasks: asyncio.TaskGroup, root: str = "/") -> None:
        self._tasks = tasks
        self.told: asyncio.Queue[ev.OwnersSeen] = asyncio.Queue()
        self.is_current = True
        self.present: Lane | None = None
        self.watch = OwnerWatch(
            self._post, self._spawn, self._asker, recheck_sec=lambda: 3600.0, root=root
        )

    def _asker(self, lane: Lane) -> Asker | None:
        is_current = self.is_current and self.present in (None, lane)
        return Asker(None, system=False) if is_current else None

    def _post(self, event: ev.Event) -> None:
        assert isinstance(event, ev.OwnersSeen)
        self.told.put_nowait(event)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.create_task(work)

    async def until(self, pids: set[int]) -> ev.OwnersSeen:
        """Wait until these, and no others, are said to keep jobs waiting."""
        while True:
            event = await self.told.get()
            if {owner.pid for owner in event.owners if owner.counts} == pids:
                return event


@asynccontextmanager
async def watching(root: str = "/") -> AsyncIterator[Watch]:
    """Give a watch, and close it."""
    async with asyncio.TaskGroup() as tasks:
        made = Watch(tasks, root)
        try:
            yield made
        finally:
            made.watch.close()


@contextmanager
def holder(device: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a process that opens and closes the device as it is told."""
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", HOLD, device]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as one:
        try:
            yield one
        finally:
            os.killpg(one.pid, 9)


def tell(process: "subprocess.Popen[str]", *lines: str) -> None:
    """Have the process do something, and wait until it has."""
    assert process.stdin
    assert process.stdout
    for line in lines:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ok\n"


@pytest.fixture
def device() -> Iterator[str]:
    """Give a device that nobody has open."""
    with lone_terminal() as name:
        yield name


@pytest.mark.usefixtures("no_new_files")
def test_opening_closing_and_the_end_of_a_process_are_noticed(device: str) -> None:
    async def main(one: "subprocess.Popen[str]") -> None:
        async with watching() as seen:
            await seen.watch.look(Lane("gpu", devices=(device,)))
            await seen.until(set())
            await asyncio.to_thread(tell, one, "open")
            event = await seen.until({one.pid})
            assert event.owners[0].use is Use.UNKNOWN, "nothing tells what it does"
            await asyncio.to_thread(tell, one, "close")
            await seen.until(set())
            await asyncio.to_thread(tell, one, "open")
            await seen.until({one.pid})
            one.kill()
            await seen.until(set())

    with holder(device) as one:
        run_watched(main(one))


def test_when_a_routers_child_ends_the_router_is_who_is_waited_for(device: str) -> None:
    async def main(router: int) -> None:
        async with watching() as seen:
            await seen.watch.look(Lane("gpu", devices=(device,)))
            first = await seen.told.get()
            (child,) = {owner.pid for owner in first.owners} - {router}
            os.kill(child, 9)
            await seen.until({router})
            os.kill(router, 9)
            await seen.until(set())

    with holder(device) as router:
        tell(router, "open", "child")
        run_watched(main(router.pid))


def test_a_device_that_comes_later_is_watched_from_then_on() -> None:
    node = Path(f"/dev/sdqueue-{os.getpid()}")

    async def main(one: "subprocess.Popen[str]") -> None:
        async with watching() as seen:
            await seen.watch.look(Lane("gpu", devices=(str(node),)))
            await seen.until(set())
            try:
                os.mknod(node, os.stat("/dev/full").st_mode, os.stat("/dev/full").st_rdev)
            except OSError:
                pytest.skip("no device can be made here")
            await seen.until(set())
            await asyncio.to_thread(tell, one, "open")
            await seen.until({one.pid})

    try:
        with holder(str(node)) as one:
            run_watched(main(one))
    finally:
        node.unlink(missing_ok=True)


def test_a_burst_of_openings_is_few_looks(device: str) -> None:
    async def main(one: "subprocess.Popen[str]") -> None:
        async with watching() as seen:
            await seen.watch.look(Lane("gpu", devices=(device,)))
            await seen.until(set())
            await asyncio.to_thread(tell, one, *["open", "close"] * 200, "open")
            await seen.until({one.pid})
            (watched,) = seen.watch._lanes.values()
            assert watched.began < 40

    with holder(device) as one:
        run_watched(main(one))


@pytest.mark.usefixtures("no_new_files")
def test_a_lane_that_is_configured_no_more_is_let_go_of(device: str) -> None:
    async def main() -> None:
        async with watching() as seen:
            lane = Lane("gpu", devices=(device,))
            await seen.watch.look(lane)
            seen.is_current = False
            await seen.watch.look(lane)
            assert not seen.watch._lanes

    run_watched(main())


@pytest.mark.usefixtures("no_new_files")
def test_a_look_at_what_a_lane_was_tells_nothing_and_lets_go_of_nothing_of_what_it_is(
    device: str,
) -> None:
    async def main() -> None:
        async with watching() as seen:
            old, new = Lane("gpu", devices=(device,)), Lane("gpu", devices=(device, "/dev/null"))
            looks = [asyncio.create_task(seen.watch.look(old)) for _ in range(2)]
            await asyncio.sleep(0)
            seen.present = new
            looks.append(asyncio.create_task(seen.watch.look(new)))
            await asyncio.gather(*looks)
            assert seen.told.qsize() == 1
            assert seen.watch._lanes["gpu"].lane == new
            await seen.watch.look(old)
            assert seen.watch._lanes["gpu"].lane == new

    run_watched(main())


@pytest.mark.usefixtures("no_new_files")
def test_a_lane_that_becomes_another_under_the_look_is_not_told_of(device: str) -> None:
    async def main() -> None:
        async with watching() as seen:
            looking = asyncio.create_task(seen.watch.look(Lane("gpu", devices=(device,))))
            await asyncio.sleep(0)
            seen.present = Lane("gpu")
            await looking
            assert seen.told.empty()
            assert not seen.watch._lanes

    run_watched(main())


def test_where_nobody_could_be_nothing_is_due() -> None:
    async def main() -> None:
        async with watching() as seen:
            await seen.watch.look(Lane("gpu", devices=("/dev/sdqueue-none*",)))
            (watched,) = seen.watch._lanes.values()
            assert watched.timer is None
            await seen.watch.look(Lane("gpu", foreign=("sdq-nobody",)))
            (watched,) = seen.watch._lanes.values()
            assert watched.timer

    run_watched(main())


# Settling ----------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuRoot:
    """Give a box with a device that an engine has 9 GiB of."""
    monkeypatch.setattr(owner_watch, "READING_SEC", 0.01)
    made = GpuRoot(tmp_path)
    made.amd(vram_used=9 * GIB)
    made.process(17, "engine")
    made.opens(17, 5, "/dev/dri/renderD128", amdgpu(1, vram=9 * GIB))
    return made


async def used(seen: Watch) -> None:
    """See the engine, which ends then."""
    await seen.watch.look(GPU)
    assert [owner.pid for owner in (await seen.told.get()).owners] == [17]


def test_a_lane_settles_until_two_readings_of_memory_agree(root: GpuRoot) -> None:
    async def main() -> None:
        async with watching(str(root.directory)) as seen:
            await used(seen)
            root.ends(17)
            await seen.watch.look(GPU)
            first = await seen.told.get()
            assert (first.settling, [o for o in first.owners if o.counts]) == (True, [])
            root.amd(vram_used=5 * GIB)
            assert (await seen.told.get()).settling, "it still falls"
            root.amd(vram_used=200 * MIB)
            while (event := await seen.told.get()).settling:
                pass
            assert event.owners == ()

    run_watched(main())


def test_memory_that_never_comes_back_does_not_keep_jobs_for_ever(
    root: GpuRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_watch, "SETTLE_SEC", 0.05)
    monkeypatch.setattr(judge, "agree", lambda _one, _other: False)

    async def main() -> None:
        async with watching(str(root.directory)) as seen:
            await used(seen)
            root.ends(17)
            await seen.watch.look(GPU)
            while (event := await seen.told.get()).settling:
                pass
            (floor,) = event.owners
            assert (floor.note, floor.counts) == (FLOOR, False)

    run_watched(main())


def test_while_he_who_has_the_memory_is_there_nothing_settles(root: GpuRoot) -> None:
    async def main() -> None:
        async with watching(str(root.directory)) as seen:
            await used(seen)
            root.opens(17, 5, "/dev/dri/renderD128", amdgpu(1, vram=10 * MIB))
            await seen.watch.look(GPU)
            event = await seen.told.get()
            assert (event.settling, event.owners[0].use) == (False, Use.HOLDER)

    run_watched(main())


def test_another_who_takes_over_ends_the_settling(root: GpuRoot) -> None:
    async def main() -> None:
        async with watching(str(root.directory)) as seen:
            await used(seen)
            root.ends(17)
            root.process(18, "other")
            root.opens(18, 5, "/dev/dri/renderD128", amdgpu(2, vram=9 * GIB))
            await seen.watch.look(GPU)
            event = await seen.told.get()
            assert (event.settling, [owner.pid for owner in event.owners]) == (False, [18])

    run_watched(main())


def test_a_look_that_hangs_is_told_and_what_it_finds_in_the_end_is_too(
    root: GpuRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_watch, "LATE_SEC", 0.05)
    used_file = root.directory / "sys/bus/pci/devices/0000:03:00.0/mem_info_vram_used"
    used_file.unlink()
    os.mkfifo(used_file)

    async def main() -> None:
        async with watching(str(root.directory)) as seen:
            looking = asyncio.create_task(seen.watch.look(GPU))
            (late,) = (await seen.told.get()).owners
            assert (late.pid, late.counts, late.use) == (0, True, Use.UNKNOWN)
            assert "not over" in late.note
            with used_file.open("w") as hanging:
                used_file.unlink()
                used_file.write_text(f"{9 * GIB}\n")
                hanging.write(f"{9 * GIB}\n")
            await looking
            assert [owner.pid for owner in (await seen.told.get()).owners] == [17]

    run_watched(main())
