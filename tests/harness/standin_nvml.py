"""A stand-in for the driver's library, put in its place as pynvml.

Who uses the one device is read from a file: {PID: [BYTES, WORKS]}.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FILE = Path("/run/standin-gpu.json")
NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_NOT_FOUND = 3, 6


class NVMLError(Exception):
    value = NVML_ERROR_NOT_FOUND


def _users() -> dict[str, list[int]]:
    found = json.loads(FILE.read_text())
    assert isinstance(found, dict)
    return found


def nvmlInit() -> None:
    """Nothing."""


def nvmlShutdown() -> None:
    """Nothing."""


def nvmlDeviceGetHandleByPciBusId(_slot: bytes) -> int:
    return 0


def nvmlDeviceGetMemoryInfo(_device: int) -> Any:
    return SimpleNamespace(total=8 << 30)


def nvmlDeviceGetComputeRunningProcesses(_device: int) -> list[Any]:
    return [
        SimpleNamespace(pid=int(pid), usedGpuMemory=size) for pid, (size, _) in _users().items()
    ]


def nvmlDeviceGetGraphicsRunningProcesses(_device: int) -> list[Any]:
    return []


def nvmlDeviceGetMPSComputeRunningProcesses(_device: int) -> list[Any]:
    return []


def nvmlDeviceGetProcessUtilization(_device: int, _since_usec: int) -> list[Any]:
    return [
        SimpleNamespace(pid=int(pid), smUtil=50) for pid, (_, works) in _users().items() if works
    ]
