"""What the box has to spare: memory that can really be allocated, and free disk.

Reads and answers; whether it is enough is said in `shortage`, which is arithmetic only.
"""

import os

import psutil

from sdqueue.core.model import Code, Reason
from sdqueue.core.spec import DiskNeed, JobSpec, Lane, MemoryNeed
from sdqueue.words.spans import format_size


def usable_memory_bytes(meminfo_file: str = "/proc/meminfo") -> int:
    """Give MemAvailable less CmaFree: on unified-memory boxes the second can't be allocated."""
    available = psutil.virtual_memory().available
    with open(meminfo_file, encoding="ascii", errors="replace") as lines:
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
    cma = fields.get("CmaFree", "0 kB").split()
    return max(0, available - int(cma[0]) * 1024)


def memory_need_bytes(need: MemoryNeed, total_bytes: int) -> int:
    """Work out what `MEMORY:` asks for on a box of `total_bytes`; OSError where a file is gone."""
    file_bytes = os.stat(need.size_of_file).st_size if need.size_of_file else 0
    on_top = file_bytes * need.margin_percent // 100
    return max(need.bytes, total_bytes * need.percent // 100) + file_bytes + on_top


def shortage(spec: JobSpec, lane: Lane) -> Reason | None:
    """Say what the box lacks for this job now, None if nothing."""
    return _memory_shortage(spec.memory, lane) or _disk_shortage(spec.disk)


def _memory_shortage(need: MemoryNeed | None, lane: Lane) -> Reason | None:
    if need is None:
        return None
    try:
        wanted = memory_need_bytes(need, psutil.virtual_memory().total) + lane.memory_margin_bytes
    except OSError as error:
        return Reason(Code.MEMORY, f"MEMORY names {need.size_of_file}: {error.strerror}")
    usable = usable_memory_bytes()
    if usable >= wanted:
        return None
    detail = f"needs {format_size(wanted)}, {format_size(usable)} usable"
    return Reason(Code.MEMORY, detail)


def _disk_shortage(need: DiskNeed | None) -> Reason | None:
    if need is None:
        return None
    try:
        stat = os.statvfs(need.file)
    except OSError as error:
        return Reason(Code.DISK, f"DISK names {need.file}: {error.strerror}")
    free = stat.f_bavail * stat.f_frsize
    if free >= need.bytes:
        return None
    return Reason(
        Code.DISK, f"needs {format_size(need.bytes)} in {need.file}, {format_size(free)} free"
    )
