"""What detectors see, as values: a process and a source's evidence of what it does. Pure.

A `Sighting` is of one process by one source. What it amounts to is for `judge` to say; some need a
second sample, since a counter by itself says nothing of now.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

GIB = 1 << 30
MIB = 1 << 20


class Engine(NamedTuple):
    """How long an engine worked for a client: in ns, or where `total` is not 0 in cycles of it.

    `capacity` is how many engines of the kind there are.
    """

    busy: int
    total: int = 0
    capacity: int = 1


@dataclass(frozen=True, slots=True)
class Sighting:
    """One process, as one source sees it.

    `by` is the source, `what` says in words what was seen and stays the same while it is so.
    `memory_bytes` is None where a source that should know it does not. `engines` are counters,
    `is_busy` says that work was seen at that instant. `is_named`: it counts because the
    configuration says so, whatever it does. `is_mute`: the source tells that it has the device
    open and could not tell more. `of_bytes` is the size of the device, 0 where that is unknown.
    """

    pid: int
    by: str
    what: str
    memory_bytes: int | None = 0
    engines: Mapping[str, Engine] = field(default_factory=dict)
    is_busy: bool = False
    is_named: bool = False
    is_mute: bool = False
    of_bytes: int = 0


class Gauge(NamedTuple):
    """How much memory of a device is in use, whoever has it."""

    device: str
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """What one detector says.

    `cannot_tell` are the words why it failed, empty where it did not: then nobody is free of
    suspicion. `covers` are device nodes of whose users it knows all, so that whoever merely has one
    open is no user; `measured` those whose device's memory it tells. `notes` are for people,
    `strangers` counts the processes that it may not look at.
    """

    sightings: tuple[Sighting, ...] = ()
    cannot_tell: str = ""
    covers: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset()
    gauges: tuple[Gauge, ...] = ()
    notes: tuple[str, ...] = ()
    strangers: int = 0
