"""What the box has to spare: memory that can really be allocated, and free disk.

Reads and answers; whether it is enough is said in `shortage`, which is arithmetic only.
"""

import os
from collections.abc import Iterable
from contextlib import suppress

import psutil

from sdqueue.core.model import Code, Reason
from sdqueue.core.spec import DiskNeed, JobSpec, Lane, MemoryNeed

MEMINFO = "/proc/meminfo"


def usable_memory_bytes(meminfo_file: str = MEMINFO) -> int:
    """Give MemAvailable less CmaFree: on unified-memory boxes the second can't be allocated."""
    with open(meminfo_file, encoding="ascii", errors="replace") as lines:
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return max(0, _field(fields, "MemAvailable") - _field(fields, "CmaFree"))


def _field(fields: dict[str, str], name: str) -> int:
    return int(fields.get(name, "0 kB").split()[0]) * 1024


def total_memory_bytes() -> int:
    """Give the memory that the box has."""
    return int(psutil.virtual_memory().total)


def resident_bytes(pids: Iterable[int]) -> int:
    """Add up what processes have resident; those that have ended have nothing."""
    found = 0
    for pid in pids:
        with suppress(psutil.Error):
            found += psutil.Process(pid).memory_info().rss
    return found


def _shown(size_bytes: int) -> str:
    """Return a size as a person reads it: `4.0G`, `712M`."""
    gib = size_bytes / 2**30
    return f"{gib:.1f}G" if gib >= 1 else f"{size_bytes >> 20}M"


def memory_need_bytes(need: MemoryNeed, total_bytes: int) -> int:
    """Work out what `MEMORY:` asks for on a box of `total_bytes`; OSError where a file is gone."""
    file_bytes = os.stat(need.size_of_file).st_size if need.size_of_file else 0
    on_top = file_bytes * need.margin_percent // 100
    return max(need.bytes, total_bytes * need.percent // 100) + file_bytes + on_top


def shortage(
    spec: JobSpec, lane: Lane, promised_bytes: int = 0, *, meminfo_file: str = MEMINFO
) -> Reason | None:
    """Say what the box lacks for this job now, None if nothing.

    `promised_bytes` are usable yet, and other jobs asked for them.
    """
    usable = usable_memory_bytes(meminfo_file) if spec.memory else 0
    return _memory_shortage(spec.memory, lane, usable, promised_bytes) or _disk_shortage(spec.disk)


def _memory_shortage(
    need: MemoryNeed | None, lane: Lane, usable: int, promised: int
) -> Reason | None:
    if need is None:
        return None
    try:
        wanted = memory_need_bytes(need, total_memory_bytes()) + lane.memory_margin_bytes
    except OSError as error:
        return Reason(Code.MEMORY, f"MEMORY names {need.size_of_file}: {error.strerror}")
    if usable - promised >= wanted:
        return None
    detail = f"needs {_shown(wanted)}, {_shown(usable)} usable"
    others = f", of which running jobs want {_shown(promised)} yet" if promised else ""
    return Reason(Code.MEMORY, detail + others)


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
    return Reason(Code.DISK, f"needs {_shown(need.bytes)} in {need.file}, {_shown(free)} free")
