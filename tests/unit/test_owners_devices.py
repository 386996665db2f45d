"""Who uses a device, in trees laid out as the kernel's: KFD, DRM clients, memory, descriptors."""

import ctypes
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sdqueue.core.lane import Lane
from sdqueue.core.owner import Use
from sdqueue.owners.detectors import DETECTORS
from sdqueue.owners.sweep import FLOOR, HIDDEN
from tests.harness.gpu_root import GIB, GPU, MIB, GpuRoot, amdgpu, fdinfo

RENDER = "/dev/dri/renderD128"


@pytest.fixture
def root(tmp_path: Path) -> GpuRoot:
    """Give a box with one AMD device and nobody on it."""
    made = GpuRoot(tmp_path)
    made.amd()
    return made


def test_a_box_without_a_device_has_no_users_and_nothing_is_unknown(tmp_path: Path) -> None:
    bare = GpuRoot(tmp_path)
    bare.process(17)
    bare.opens(17, 3, "/dev/null")
    assert bare.seen().owners == ()
    assert bare.seen(is_privileged=False).owners == ()


def test_a_device_that_nobody_has_open_is_free(root: GpuRoot) -> None:
    root.process(17)
    root.opens(17, 3, "/dev/null")
    assert root.seen().owners == ()


# DRM ---------------------------------------------------------------------------------------------


def test_a_client_with_memory_is_resident_and_named(root: GpuRoot) -> None:
    root.process(17, "llama-server", cgroup="/system.slice/llm.service")
    root.opens(17, 5, RENDER, amdgpu(9, gfx_ns=5, vram=6 * GIB))
    (owner,) = root.seen().owners
    assert (owner.pid, owner.comm, owner.unit) == (17, "llama-server", "llm.service")
    assert (owner.use, owner.memory_bytes) == (Use.RESIDENT, 6 * GIB)
    assert owner.counts


def test_a_desktop_that_does_nothing_only_holds_the_device(root: GpuRoot) -> None:
    root.process(17, "gnome-shell")
    root.opens(17, 5, "/dev/dri/card0", amdgpu(9, gfx_ns=5, vram=46 * MIB))
    (owner,) = root.seen().owners
    assert owner.use is Use.HOLDER
    assert not owner.counts


def test_engine_time_that_moves_between_two_samples_is_work(root: GpuRoot) -> None:
    root.process(17)
    root.opens(17, 5, RENDER, amdgpu(9, gfx_ns=1000, vram=MIB))
    sweep = root.sweep()
    assert sweep.first(), "a second sample is needed"
    root.opens(17, 5, RENDER, amdgpu(9, gfx_ns=10**15, vram=MIB))
    sweep.again()
    assert sweep.seen().owners[0].use is Use.ACTIVE


def test_a_desktop_that_was_looked_at_before_and_did_nothing_costs_no_second_sample(
    root: GpuRoot,
) -> None:
    def first(client: int, gfx_ns: int) -> bool:
        root.opens(17, 5, RENDER, amdgpu(client, gfx_ns=gfx_ns, vram=MIB))
        return root.sweep().first()

    root.process(17, "gnome-shell")
    assert first(9, 1000), "nothing was known of it"
    assert not first(9, 1000)
    assert not first(9, 1000 + 19_000_000), "less than 2 % of a second"
    assert first(9, 40_000_000_000), "it may have been at work just now"
    assert not first(9, 40_000_000_000)
    assert first(9, 1), "a counter that goes down tells nothing"
    assert first(10, 1), "another client"


def test_memory_alone_needs_no_second_sample(root: GpuRoot) -> None:
    root.process(17)
    root.opens(17, 5, RENDER, amdgpu(9, gfx_ns=1000, vram=4 * GIB))
    assert not root.sweep().first()


def test_a_client_is_counted_once_however_many_descriptors_it_has(root: GpuRoot) -> None:
    client = amdgpu(9, vram=400 * MIB)
    root.process(17)
    root.process(18, ppid=17)
    for pid, fd in ((17, 5), (17, 6), (18, 5)):
        root.opens(pid, fd, RENDER, client)
    owners = root.owners()
    assert owners[17].memory_bytes == 400 * MIB
    assert (owners[18].use, owners[18].memory_bytes) == (Use.HOLDER, 0)


def test_two_clients_of_one_number_on_two_devices_are_two(root: GpuRoot) -> None:
    root.amd("renderD129", "0000:44:00.0")
    root.process(17)
    root.opens(17, 5, RENDER, amdgpu(9, vram=GIB))
    root.opens(17, 6, "/dev/dri/renderD129", amdgpu(9, vram=GIB, slot="0000:44:00.0"))
    assert root.owners()[17].memory_bytes == 2 * GIB


@pytest.mark.parametrize("keeper", ["systemd-logind", "systemd"])
def test_who_keeps_descriptors_for_others_never_gets_their_client(
    root: GpuRoot, keeper: str
) -> None:
    root.process(2, keeper)
    root.process(900, "gnome-shell")
    for pid in (2, 900):
        root.opens(pid, 5, "/dev/dri/card0", amdgpu(9, vram=GIB))
    owners = root.owners()
    assert owners[900].use is Use.RESIDENT
    assert owners[2].use is Use.HOLDER


def test_of_a_parent_and_the_child_that_inherited_the_parent_has_the_client(root: GpuRoot) -> None:
    root.process(30, "router", started=5)
    root.process(17, "child", ppid=30, started=9)
    for pid in (17, 30):
        root.opens(pid, 5, RENDER, amdgpu(9, vram=GIB))
    assert root.owners()[30].use is Use.RESIDENT
    root.ends(30)
    assert root.owners()[17].use is Use.RESIDENT, "the child has it now"


def test_a_node_of_another_name_with_the_number_of_the_device_is_the_device(root: GpuRoot) -> None:
    inside = root.directory / "container/dev/my-gpu"
    inside.parent.mkdir(parents=True)
    inside.symlink_to(os.readlink(root.directory / "dev/dri/renderD128"))
    root.process(17)
    root.opens(17, 5, "/container/dev/my-gpu", amdgpu(9, vram=GIB))
    assert root.owners()[17].use is Use.RESIDENT


def test_only_devices_that_the_lane_names_are_its_own(root: GpuRoot) -> None:
    root.process(17)
    root.opens(17, 5, RENDER, amdgpu(9, vram=GIB))
    assert root.seen(Lane("npu", devices=("/dev/accel/*",))).owners == ()
    assert root.seen(Lane("none")).owners == ()


def test_a_driver_that_tells_nothing_leaves_it_unknown(tmp_path: Path) -> None:
    root = GpuRoot(tmp_path)
    root.node(RENDER)
    root.process(17)
    root.opens(17, 5, RENDER, fdinfo("nvidia-drm", "", 4))
    assert root.owners()[17].use is Use.UNKNOWN
    assert root.owners()[17].counts


def test_an_npu_has_clients_too(tmp_path: Path) -> None:
    root = GpuRoot(tmp_path)
    root.node("/dev/accel/accel0")
    root.process(17)
    text = fdinfo("amdxdna_accel_driver", "", 4, drm_total_memory="900 MiB")
    root.opens(17, 5, "/dev/accel/accel0", text)
    assert root.owners()[17].use is Use.RESIDENT


def test_a_process_that_ends_between_listing_and_reading_is_nobody(root: GpuRoot) -> None:
    root.process(17)
    root.opens(17, 5, RENDER, amdgpu(9, vram=GIB))
    (root.directory / "proc/17/stat").unlink()
    assert root.seen().owners == ()


# KFD ---------------------------------------------------------------------------------------------


def test_a_monitor_that_opened_kfd_once_has_an_entry_and_is_in_nobodys_way(
    root: GpuRoot,
) -> None:
    root.process(17, "amd-smi")
    root.kfd(17)
    root.opens(17, 5, "/dev/kfd")
    (owner,) = root.seen().owners
    assert owner.use is Use.HOLDER


def test_compute_memory_counts_whoever_is_idle(root: GpuRoot) -> None:
    root.process(17, "python3")
    root.kfd(17, vram=3 * GIB, queues=2, occupancy=0)
    assert root.owners()[17].use is Use.RESIDENT


def test_queues_at_work_are_work(root: GpuRoot) -> None:
    root.process(17)
    root.kfd(17, vram=MIB, queues=1, occupancy=12)
    assert root.owners()[17].use is Use.ACTIVE


def test_queues_that_can_not_be_seen_at_work_are_unknown(root: GpuRoot) -> None:
    root.process(17)
    root.kfd(17, vram=MIB, queues=1)
    assert root.owners()[17].use is Use.UNKNOWN


def test_queues_that_are_seen_to_rest_are_a_holders(root: GpuRoot) -> None:
    root.process(17)
    root.kfd(17, vram=MIB, queues=1, occupancy=0)
    assert root.owners()[17].use is Use.HOLDER


def test_copies_that_go_on_between_two_samples_are_work(root: GpuRoot) -> None:
    root.process(17)
    root.kfd(17, vram=MIB, queues=1, occupancy=0, sdma_usec=5)
    sweep = root.sweep()
    assert sweep.first()
    root.kfd(17, vram=MIB, queues=1, occupancy=0, sdma_usec=10**12)
    sweep.again()
    assert sweep.seen().owners[0].use is Use.ACTIVE


def test_memory_that_two_sources_tell_is_counted_once(root: GpuRoot) -> None:
    root.process(17)
    root.kfd(17, vram=3 * GIB, queues=1, occupancy=0)
    root.opens(17, 5, RENDER, amdgpu(9, vram=2 * GIB))
    (owner,) = root.seen().owners
    assert owner.memory_bytes == 3 * GIB
    assert {each.split(":")[0] for each in owner.seen} == {"kfd", "descriptors"}


def test_an_entry_whose_process_is_gone_is_nobody(root: GpuRoot) -> None:
    root.kfd(17, vram=3 * GIB, queues=1)
    assert root.seen().owners == ()


def test_contexts_below_an_entry_are_read_too(root: GpuRoot) -> None:
    root.process(17)
    root.kfd(17)
    root.write("/sys/class/kfd/kfd/proc/17/context_1/vram_51234", f"{GIB}\n")
    assert root.owners()[17].memory_bytes == GIB


def test_a_probe_that_fails_leaves_the_lane_unknown_and_never_free(root: GpuRoot) -> None:
    root.node("/dev/kfd")
    root.write("/sys/class/kfd/kfd/proc", "no directory")
    (owner,) = root.seen().owners
    assert (owner.pid, owner.use, owner.counts) == (0, Use.UNKNOWN, True)
    assert "can't be told" in owner.note
    assert owner.seen == ("kfd",)


# Memory of the device ----------------------------------------------------------------------------


def test_memory_that_the_driver_kept_and_nobody_has_is_a_note_and_no_reason_to_wait(
    root: GpuRoot,
) -> None:
    root.amd(vram_used=1100 * MIB)
    (floor,) = root.seen().owners
    assert (floor.note, floor.pid, floor.counts) == (FLOOR, 0, False)
    assert floor.memory_bytes == 1150 * MIB


def test_what_is_in_use_usually_is_not_even_a_note(root: GpuRoot) -> None:
    root.amd(vram_used=300 * MIB)
    assert root.seen().owners == ()


@pytest.fixture
def shut() -> Iterator[GpuRoot]:
    """Give a box that everybody may look at, but for the descriptors of its one process."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        made = GpuRoot(Path(directory))
        made.amd()
        made.process(17)
        os.chmod(made.directory / "proc/17/fd", 0o000)
        yield made


def as_a_user(root: GpuRoot, *, is_privileged: bool = False) -> list[str]:
    """Look as somebody whom the kernel refuses, and return the notes of who counts.

    `is_privileged`: as one who should not have been refused.
    """

    def look() -> list[str]:
        ctypes.CDLL(None).setfsuid(65534)  # of this thread alone; root's privilege goes with it
        seen = root.seen(is_privileged=is_privileged)
        return [owner.note for owner in seen.owners if owner.counts]

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(look).result()


def test_memory_of_somebody_who_can_not_be_seen_keeps_the_lane(shut: GpuRoot) -> None:
    shut.amd(vram_used=1900 * MIB)
    assert as_a_user(shut) == []
    shut.amd(vram_used=9 * GIB)
    assert as_a_user(shut) == [HIDDEN]


def test_descriptors_that_a_user_may_not_see_are_a_note_and_no_failure(shut: GpuRoot) -> None:
    assert as_a_user(shut) == []


@pytest.mark.parametrize(("pid", "is_free"), [(17, False), (1, True)])
def test_descriptors_that_root_may_not_see_are_a_failure_but_those_of_pid_1(
    shut: GpuRoot, pid: int, is_free: bool
) -> None:
    shut.ends(17)
    shut.process(pid)
    os.chmod(shut.directory / f"proc/{pid}/fd", 0o000)
    for file in (shut.directory / "sys/bus/pci/devices").glob("*/mem_info_*"):
        file.unlink()
    assert (as_a_user(shut, is_privileged=True) == []) is is_free


def test_an_engine_that_sleeps_with_600_mib_blocks_and_with_370_does_not(root: GpuRoot) -> None:
    root.process(17, "llama-server")
    root.opens(17, 5, RENDER, amdgpu(9, gfx_ns=5, vram=600 * MIB))
    assert root.owners()[17].use is Use.RESIDENT
    root.opens(17, 5, RENDER, amdgpu(9, gfx_ns=5, vram=370 * MIB))
    assert root.owners()[17].use is Use.HOLDER


def test_memory_of_the_box_counts_on_a_device_that_has_none_of_its_own(root: GpuRoot) -> None:
    root.amd(vram_total=512 * MIB, gtt_total=100 * GIB, gtt_used=60 * GIB)
    root.process(17)
    root.opens(17, 5, RENDER, amdgpu(9, gtt=60 * GIB))
    (owner,) = root.seen().owners
    assert (owner.use, owner.memory_bytes) == (Use.RESIDENT, 60 * GIB)


def test_a_device_that_sleeps_is_not_read_and_nothing_is_missed(root: GpuRoot) -> None:
    root.amd(status="suspended", vram_used=9 * GIB)
    seen = root.seen()
    assert (seen.owners, seen.gauges) == ((), ())


def test_how_busy_a_device_is_is_never_read() -> None:
    package = Path(__file__).parents[2] / "sdqueue/owners"
    assert not [file for file in package.glob("*.py") if "busy_percent" in file.read_text()]


# What is remembered ------------------------------------------------------------------------------


def test_a_full_look_finds_who_exchanged_a_file_for_the_device(root: GpuRoot) -> None:
    root.process(17)
    root.opens(17, 5, "/dev/null")
    root.write("/proc/self/fd/0", "")
    assert root.seen().owners == ()
    before = os.stat(root.directory / "proc/17/fd")
    root.opens(17, 5, RENDER, amdgpu(9, vram=GIB))
    after = os.stat(root.directory / "proc/17/fd")
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    assert root.seen(is_full=True).owners != ()


def test_while_memory_is_explained_only_known_processes_are_looked_at(root: GpuRoot) -> None:
    root.process(17)
    root.opens(17, 5, RENDER, amdgpu(9, vram=100 * MIB))
    assert set(root.owners()) == {17}
    root.process(18)
    root.opens(18, 5, RENDER, amdgpu(10, vram=GIB))
    assert set(root.owners()) == {17}, "no memory is in use that was not before"
    root.amd(vram_used=GIB + 200 * MIB)
    assert set(root.owners()) == {17, 18}


def test_when_one_who_is_known_goes_everybody_is_looked_at(root: GpuRoot) -> None:
    root.process(17)
    root.opens(17, 5, RENDER, amdgpu(9, vram=GIB))
    root.amd(vram_used=GIB + 200 * MIB)
    assert set(root.owners()) == {17}
    root.ends(17)
    root.process(18)
    root.opens(18, 5, RENDER, amdgpu(10, vram=GIB))
    assert set(root.owners()) == {18}


def test_every_detector_has_a_setting_of_a_lane() -> None:
    assert {detector.setting for detector in DETECTORS} <= set(GPU._fields)
    assert not any(detector.applies(Lane("none")) for detector in DETECTORS)
