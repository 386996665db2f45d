"""Whose a DRM client is, of all processes that have a descriptor of it. Pure.

A client belongs to a file, and files are handed on: logind opens devices for a compositor, and
children inherit what their parents had open. So each client is counted once, for one process.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sdqueue.owners.fdinfo import DrmClient
from sdqueue.owners.sighting import Sighting

MANAGERS = frozenset({"systemd", "systemd-logind"})
"""Processes that keep descriptors for others: PID 1 and user managers, and logind."""

BY = "descriptors"


class Process(NamedTuple):
    """A process as /proc/PID/stat has it. `started` is in clock ticks since boot."""

    pid: int
    ppid: int
    comm: str
    started: int


class Hold(NamedTuple):
    """A descriptor of a lane's device; `client` is None where its driver says nothing."""

    pid: int
    node: str
    client: DrmClient | None


def attribute(
    holds: Iterable[Hold],
    processes: Mapping[int, Process],
    covers: frozenset[str],
    sizes: Mapping[str, int],
) -> list[Sighting]:
    """Make a sighting of each client and its process, and one of everybody else who holds it.

    `covers` are nodes of whose users another source knows all, `sizes` those of the devices.
    """
    clients: dict[tuple[str, str], list[Hold]] = {}
    found: dict[tuple[int, str], Sighting] = {}
    for hold in holds:
        if hold.client is None or hold.client.is_mute:
            found[hold.pid, hold.node] = _bare(hold, covers)
        else:
            clients.setdefault(_identity(hold, hold.client), []).append(hold)
    sightings = list(found.values())
    for held in clients.values():
        sightings += _of_client(held, processes, sizes)
    return sightings


def _identity(hold: Hold, client: DrmClient) -> tuple[str, str]:
    """Name a client; one without a number is taken for its process's own."""
    return (client.device or hold.node, client.number or f"of pid {hold.pid}")


def _bare(hold: Hold, covers: frozenset[str]) -> Sighting:
    return Sighting(hold.pid, BY, f"has {hold.node} open", is_mute=hold.node not in covers)


def _of_client(
    held: list[Hold], processes: Mapping[int, Process], sizes: Mapping[str, int]
) -> list[Sighting]:
    """Give a client to the eldest of its holders that keeps it for itself; the others share it."""
    pids = sorted({hold.pid for hold in held}, key=lambda pid: _rank(processes.get(pid), pid))
    client, node = held[0].client, held[0].node
    assert client is not None
    what = f"is client {client.number or '-'} of {client.device or node} ({client.driver})"
    first = Sighting(
        pids[0],
        BY,
        what,
        0 if client.memory_bytes is None else client.memory_bytes,
        client.engines,
        of_bytes=sizes.get(client.device, 0),
    )
    return [first, *(Sighting(pid, BY, f"shares {what[3:]}") for pid in pids[1:])]


def _rank(process: Process | None, pid: int) -> tuple[bool, int, int]:
    if process is None:
        return True, 0, pid
    return process.pid == 1 or process.comm in MANAGERS, process.started, pid
