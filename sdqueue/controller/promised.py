"""Memory that is spoken for: what jobs of ours asked for and do not use yet.

A run that has just begun shows nothing of its need in what the box has available. What a unit uses
is its MemoryCurrent=; where the manager does not know that, what its processes have resident.
"""

import asyncio
from collections.abc import Iterable

from sdqueue.bus.systemd import Systemd
from sdqueue.core.model import Job, Phase
from sdqueue.sensors import memory_need_bytes, resident_bytes, total_memory_bytes
from sdqueue.words.errors import BusError

UNKNOWN = 2**64 - 1
RUNS = frozenset({Phase.CLAIMING, Phase.ACTIVE, Phase.UNKNOWN})


async def promised_bytes(systemd: Systemd | None, jobs: Iterable[Job], *, without: str) -> int:
    """Add up what running jobs but the one of that name asked for and do not use yet."""
    needy = [job for job in jobs if job.phase in RUNS and job.spec and job.spec.memory]
    return sum([await _unused(systemd, job) for job in needy if job.name != without])


async def _unused(systemd: Systemd | None, job: Job) -> int:
    assert job.spec is not None
    assert job.spec.memory is not None
    try:
        need = memory_need_bytes(job.spec.memory, total_memory_bytes())
    except OSError:
        return 0
    return max(0, need - await _used(systemd, job, need))


async def _used(systemd: Systemd | None, job: Job, need: int) -> int:
    """Say how much of its need a job has in use; all of it, where that is not known."""
    try:
        found = await systemd.unit_properties(job.unit) if systemd else None
    except BusError:
        return need
    if found is None:
        return 0 if job.phase is Phase.CLAIMING else need
    used = found.get("MemoryCurrent", UNKNOWN)
    if isinstance(used, int) and used != UNKNOWN:
        return used
    try:
        pids = await systemd.unit_pids(job.unit) if systemd else []
    except BusError:
        return need
    return await asyncio.to_thread(resident_bytes, pids)
