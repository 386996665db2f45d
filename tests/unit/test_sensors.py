"""What the box has to spare, read from files that say so."""

from pathlib import Path

import pytest

from sdqueue.core.lane import Lane
from sdqueue.core.spec import DiskNeed, JobSpec, MemoryNeed
from sdqueue.sensors import shortage, usable_memory_bytes

GIB = 2**30
CPU = Lane(name="cpu")


def meminfo(directory: Path, *, available_gib: float, cma_gib: float | None = None) -> str:
    """Write a /proc/meminfo."""
    lines = ["MemTotal:  134217728 kB", f"MemAvailable: {int(available_gib * 2**20)} kB"]
    if cma_gib is not None:
        lines.append(f"CmaFree:  {int(cma_gib * 2**20)} kB")
    file = directory / "meminfo"
    file.write_text("\n".join(["HugePages_Total:  0", *lines, ""]))
    return str(file)


def spec(size_bytes: int) -> JobSpec:
    return JobSpec(name="a", lane="cpu", memory=MemoryNeed(bytes=size_bytes))


def test_what_is_available_and_can_not_be_allocated_is_not_usable(tmp_path: Path) -> None:
    file = meminfo(tmp_path, available_gib=8.5, cma_gib=7.8)
    why = shortage(spec(4 * GIB), CPU, meminfo_file=file)
    assert why
    assert (why.code, why.detail) == ("memory", "needs 4.0G, 716M usable")
    assert shortage(spec(GIB // 2), CPU, meminfo_file=file) is None


def test_without_such_memory_all_that_is_available_is_usable(tmp_path: Path) -> None:
    assert usable_memory_bytes(meminfo(tmp_path, available_gib=8)) == 8 * GIB


def test_the_margin_of_the_lane_is_left_over(tmp_path: Path) -> None:
    file = meminfo(tmp_path, available_gib=8)
    lane = CPU._replace(memory_margin_bytes=GIB)
    assert shortage(spec(7 * GIB), lane, meminfo_file=file) is None
    assert shortage(spec(7 * GIB + 1), lane, meminfo_file=file)


def test_what_running_jobs_want_yet_is_not_given_away_twice(tmp_path: Path) -> None:
    file = meminfo(tmp_path, available_gib=8)
    assert shortage(spec(4 * GIB), CPU, 4 * GIB, meminfo_file=file) is None
    why = shortage(spec(4 * GIB), CPU, 5 * GIB, meminfo_file=file)
    assert why
    assert why.detail == "needs 4.0G, 8.0G usable, of which running jobs want 5.0G yet"


def test_a_file_that_memory_names_and_that_is_gone_is_said(tmp_path: Path) -> None:
    file = meminfo(tmp_path, available_gib=8)
    need = MemoryNeed(size_of_file=str(tmp_path / "gone"), margin_percent=12)
    why = shortage(JobSpec(name="a", lane="cpu", memory=need), CPU, meminfo_file=file)
    assert why
    assert "gone: No such file" in why.detail


@pytest.mark.parametrize("file", ["/", "/no/such/directory"])
def test_disk_is_asked_where_the_job_says(file: str) -> None:
    why = shortage(JobSpec(name="a", lane="cpu", disk=DiskNeed(2**62, file)), CPU)
    assert why
    assert why.code == "disk"
    assert file in why.detail
