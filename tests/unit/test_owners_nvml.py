"""Users of NVIDIA devices: by a stand-in for the vendor's module, written after its manual."""

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sdqueue.core.owner import Use
from tests.harness.gpu_root import GIB, MIB, GpuRoot

SLOT = "0000:01:00.0"


class FakeNvml(types.ModuleType):
    """pynvml, as far as it is asked: one device, its processes, and an error if that is wanted."""

    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NOT_FOUND = 6

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__({18: "Driver/library version mismatch"}.get(value, str(value)))
            self.value = value

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.compute: list[tuple[int, int | None]] = []
        self.graphics: list[tuple[int, int | None]] = []
        self.busy: dict[int, int] = {}
        self.broken = 0
        self.no_list = 0
        self.open = 0

    def nvmlInit(self) -> None:
        if self.broken:
            raise self.NVMLError(self.broken)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByPciBusId(self, slot: bytes) -> str:
        return slot.decode()

    def nvmlDeviceGetMemoryInfo(self, _device: str) -> SimpleNamespace:
        return SimpleNamespace(total=24 * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, _device: str) -> list[SimpleNamespace]:
        if self.no_list:
            raise self.NVMLError(self.no_list)
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.compute]

    def nvmlDeviceGetGraphicsRunningProcesses(self, _device: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.graphics]

    def nvmlDeviceGetMPSComputeRunningProcesses(self, _device: str) -> list[SimpleNamespace]:
        raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetProcessUtilization(self, _device: str, _since: int) -> list[SimpleNamespace]:
        if not self.busy:
            raise self.NVMLError(self.NVML_ERROR_NOT_FOUND)
        return [
            SimpleNamespace(pid=pid, timeStamp=_since + 1, smUtil=share)
            for pid, share in self.busy.items()
        ]


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    module = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", module)
    yield module
    assert module.open == 0, "the library was let go of each time"


@pytest.fixture
def root(tmp_path: Path) -> GpuRoot:
    made = GpuRoot(tmp_path)
    made.node("/dev/nvidia0")
    made.node("/dev/nvidiactl")
    made.write(f"/sys/bus/pci/drivers/nvidia/{SLOT}/power/runtime_status", "active\n")
    made.process(17, "python3")
    return made


def test_memory_makes_a_user_and_a_little_does_not(root: GpuRoot, nvml: FakeNvml) -> None:
    root.process(18, "Xorg")
    nvml.compute, nvml.graphics = [(17, 9 * GIB)], [(18, 28 * MIB)]
    owners = root.owners()
    assert (owners[17].use, owners[17].memory_bytes) == (Use.RESIDENT, 9 * GIB)
    assert owners[18].use is Use.HOLDER


def test_who_is_in_two_lists_has_the_larger_size_once(root: GpuRoot, nvml: FakeNvml) -> None:
    nvml.compute, nvml.graphics = [(17, 2 * GIB)], [(17, 3 * GIB)]
    assert root.owners()[17].memory_bytes == 3 * GIB


def test_memory_that_is_not_told_counts(root: GpuRoot, nvml: FakeNvml) -> None:
    nvml.compute = [(17, None)]
    assert root.owners()[17].use is Use.RESIDENT


def test_work_counts_whatever_the_memory(root: GpuRoot, nvml: FakeNvml) -> None:
    nvml.graphics, nvml.busy = [(17, MIB)], {17: 40}
    assert root.owners()[17].use is Use.ACTIVE


@pytest.mark.usefixtures("nvml")
def test_who_has_it_open_and_is_in_no_list_only_holds_it(root: GpuRoot) -> None:
    root.opens(17, 5, "/dev/nvidia0")
    assert root.owners()[17].use is Use.HOLDER


def test_an_error_is_unknown_and_descriptors_say_who(root: GpuRoot, nvml: FakeNvml) -> None:
    nvml.broken = 18
    root.opens(17, 5, "/dev/nvidia0")
    owners = root.owners()
    assert owners[0].use is Use.UNKNOWN
    assert "Driver/library version mismatch" in owners[0].note
    assert owners[17].use is Use.UNKNOWN
    assert all(owner.counts for owner in owners.values())


def test_an_error_is_never_free_where_nobody_has_it_open(root: GpuRoot, nvml: FakeNvml) -> None:
    nvml.broken = 18
    assert [owner.counts for owner in root.seen().owners] == [True]


def test_a_device_that_can_not_list_its_processes_is_unknown(root: GpuRoot, nvml: FakeNvml) -> None:
    nvml.no_list = FakeNvml.NVML_ERROR_NOT_SUPPORTED
    assert [owner.counts for owner in root.seen().owners] == [True]


def test_a_device_that_sleeps_is_not_woken(root: GpuRoot, nvml: FakeNvml) -> None:
    root.write(f"/sys/bus/pci/drivers/nvidia/{SLOT}/power/runtime_status", "suspended\n")
    nvml.broken = 18  # it would say so if it were asked
    assert root.seen().owners == ()


def test_without_the_module_descriptors_say_who_and_the_control_node_is_no_device(
    root: GpuRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    root.process(18, "nvidia-smi")
    root.opens(18, 5, "/dev/nvidiactl")
    assert root.seen().owners == ()
    root.opens(17, 5, "/dev/nvidia0")
    assert set(root.owners()) == {17}
    assert root.owners()[17].use is Use.UNKNOWN
    assert "pynvml" in root.seen().notes[0]
