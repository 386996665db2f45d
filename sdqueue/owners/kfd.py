"""Who computes on AMD devices: /sys/class/kfd/kfd/proc, which tells of everybody's processes.

An entry there is not yet a use: whoever opened /dev/kfd once, a monitor say, has one until it ends.
"""

from contextlib import suppress

from sdqueue.core.lane import Lane
from sdqueue.owners.box import Box
from sdqueue.owners.devices import amd_bytes
from sdqueue.owners.sighting import Engine, Report, Sighting

DIR = "/sys/class/kfd/kfd/proc"
NODE = "/dev/kfd"


def look(box: Box, lane: Lane) -> Report:
    """See who has compute queues or memory of them."""
    if NODE not in {node.path for node in box.nodes(lane)}:
        return Report()
    try:
        names = box.names(DIR)
    except FileNotFoundError:
        return Report(notes=(f"no {DIR}: only descriptors tell who has {NODE}",))
    of_bytes = amd_bytes(box)
    pids = [int(name) for name in names if name.isascii() and name.isdecimal()]
    found = filter(None, (_entry(box, pid, of_bytes) for pid in pids))
    return Report(tuple(found), covers=frozenset({NODE}))


def _entry(box: Box, pid: int, of_bytes: int) -> Sighting | None:
    """Read a process's entry; None where it is gone. Newer kernels have contexts below it."""
    try:
        files = _files(box, f"{DIR}/{pid}")
    except FileNotFoundError:
        return None
    memory = sum(box.number(file) or 0 for file in _named(files, "vram_"))
    queues = [file for file in files if "/queues/" in file]
    occupancy = [box.number(file) for file in _named(files, "cu_occupancy")]
    engines = {file.rpartition("_")[2]: _copies(box, file) for file in _named(files, "sdma_")}
    return Sighting(
        pid,
        "kfd",
        f"has {_queues(len(queues))} on {NODE}",
        memory,
        engines if queues else {},
        is_busy=any(occupancy),
        is_mute=bool(queues) and not occupancy,
        of_bytes=of_bytes,
    )


def _queues(count: int) -> str:
    return "compute queues" if count else "no queue"


def _copies(box: Box, file: str) -> Engine:
    """Read how long copies took; it is told in microseconds."""
    return Engine((box.number(file) or 0) * 1000)


def _named(files: list[str], name: str) -> list[str]:
    return [file for file in files if file.rpartition("/")[2].startswith(name)]


def _files(box: Box, directory: str, depth: int = 3) -> list[str]:
    """List what is in an entry; each queue is one directory."""
    found = []
    for name in box.names(directory):
        inside = f"{directory}/{name}"
        found.append(inside)
        if depth and not directory.endswith("/queues"):
            with suppress(NotADirectoryError, FileNotFoundError):
                found += _files(box, inside, depth - 1)
    return found
