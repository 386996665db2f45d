"""Who uses NVIDIA devices, as the vendor's own library has it, where its Python module is there.

The module, pynvml of nvidia-ml-py, is no dependency. An answer that fails is no answer: after an
upgrade of the driver every call fails until the next boot, and then nobody is known to be away.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

from sdqueue.core.lane import Lane
from sdqueue.owners.box import Box
from sdqueue.owners.devices import sleeps
from sdqueue.owners.sighting import Report, Sighting

DRIVER = "/sys/bus/pci/drivers/nvidia"
MODULE = "pynvml"
LISTS = {
    "nvmlDeviceGetComputeRunningProcesses": False,
    "nvmlDeviceGetGraphicsRunningProcesses": True,
    "nvmlDeviceGetMPSComputeRunningProcesses": True,
}
"""Calls that list processes, and whether a device may lack it."""
SHARES = ("smUtil", "memUtil", "encUtil", "decUtil")
RECENT_USEC = 2_000_000


def look(box: Box, lane: Lane) -> Report:
    """Ask the library who uses the devices that do not sleep."""
    nodes = frozenset(node.path for node in box.nodes(lane) if node.path.startswith("/dev/nvidia"))
    if not nodes:
        return Report()
    try:
        nvml = importlib.import_module(MODULE)
    except ImportError:
        return Report(notes=(f"without {MODULE} only descriptors tell who has {min(nodes)}",))
    awake = [slot for slot in _slots(box) if not sleeps(box, f"{DRIVER}/{slot}")]
    try:
        found = _ask(nvml, awake) if awake else []
    except nvml.NVMLError as error:
        return Report(cannot_tell=f"NVML says: {error}")
    return Report(tuple(found), covers=nodes)


def _slots(box: Box) -> list[str]:
    """List the devices of the driver by their slot, 0000:01:00.0."""
    try:
        return sorted(name for name in box.names(DRIVER) if name.count(":") == 2)
    except OSError:
        return []


def _ask(nvml: Any, slots: list[str]) -> list[Sighting]:
    nvml.nvmlInit()
    try:
        found: list[Sighting] = []
        for slot in slots:
            found += _device(nvml, slot)
        return found
    finally:
        nvml.nvmlShutdown()


def _device(nvml: Any, slot: str) -> list[Sighting]:
    """See one device's processes; who is in two lists has the larger of the two sizes."""
    device = nvml.nvmlDeviceGetHandleByPciBusId(slot.encode())
    total = int(nvml.nvmlDeviceGetMemoryInfo(device).total)
    busy = _busy(nvml, device)
    used: dict[int, int | None] = {}
    for name, may_lack in LISTS.items():
        call = getattr(nvml, name)
        for process in _optional(nvml, call, device) if may_lack else call(device):
            size, before = process.usedGpuMemory, used.get(process.pid, 0)
            used[process.pid] = None if size is None or before is None else max(size, before)
    return [
        Sighting(pid, "nvml", f"is on {slot}", size, is_busy=pid in busy, of_bytes=total)
        for pid, size in used.items()
    ]


def _optional(nvml: Any, call: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Ask what not every device can be asked, and what says so where there is nothing."""
    try:
        return list(call(*arguments))
    except nvml.NVMLError as error:
        if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_NOT_FOUND):
            return []
        raise


def _busy(nvml: Any, device: Any) -> set[int]:
    """List the processes that worked a moment ago, by the device's own samples."""
    since_usec = time.time_ns() // 1000 - RECENT_USEC
    samples = _optional(nvml, nvml.nvmlDeviceGetProcessUtilization, device, since_usec)
    return {sample.pid for sample in samples if any(getattr(sample, each, 0) for each in SHARES)}
