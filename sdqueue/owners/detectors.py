"""The detectors: one row for each way of telling who uses a lane, the cheap ones first.

A detector reads and says what it saw; what that amounts to is for `judge`. To add one, write a
module with `look(box, lane)`, and a row here.
"""

from collections.abc import Callable
from typing import NamedTuple

from sdqueue.core.lane import Lane
from sdqueue.owners import descriptors, devices, kfd, locks, names, nvml, ports, units
from sdqueue.owners.box import Box
from sdqueue.owners.descriptors import Remembered
from sdqueue.owners.sighting import Report
from sdqueue.owners.units import ActiveUnit


class Asked(NamedTuple):
    """What a detector is given beside box and lane.

    `active` is what the manager said of the lane's units, None if it could not be asked; `covers`
    the device nodes of whose users a detector before it knows all; `only` the processes to look
    at, None for all; `memory` what is known from earlier looks.
    """

    active: tuple[ActiveUnit, ...] | None
    covers: frozenset[str]
    memory: Remembered
    only: frozenset[int] | None = None


class Detector(NamedTuple):
    """One row: it looks where the lane has its `setting`. `has_counters`: two samples differ.

    `remembers`: it is dear, and looks only where something may be new.
    """

    name: str
    setting: str
    look: Callable[[Box, Lane, Asked], Report]
    help: str
    has_counters: bool = False
    remembers: bool = False

    def applies(self, lane: Lane) -> bool:
        return bool(getattr(lane, self.setting))


def _plain(look: Callable[[Box, Lane], Report]) -> Callable[[Box, Lane, Asked], Report]:
    return lambda box, lane, _asked: look(box, lane)


def _units(_box: Box, lane: Lane, asked: Asked) -> Report:
    return units.report(lane, asked.active)


def _descriptors(box: Box, lane: Lane, asked: Asked) -> Report:
    return descriptors.look(box, lane, asked.covers, asked.memory, asked.only)


DETECTORS: tuple[Detector, ...] = (
    Detector(
        "kfd",
        "devices",
        _plain(kfd.look),
        "compute queues on AMD devices, of everybody's processes: /sys/class/kfd",
        has_counters=True,
    ),
    Detector(
        "memory",
        "devices",
        _plain(devices.look),
        "how much memory of the devices is in use, and how much of it nobody has who is seen",
    ),
    Detector(
        "nvml",
        "devices",
        _plain(nvml.look),
        "processes on NVIDIA devices, where nvidia-ml-py is installed",
    ),
    Detector("name", "foreign", _plain(names.look), "processes by the name that the kernel has"),
    Detector("unit", "units", _units, "units that the service manager says are active"),
    Detector("owner file", "owner_files", _plain(locks.look), "locks on files: /proc/locks"),
    Detector("port", "ports", _plain(ports.look), "listeners on TCP ports: /proc/1/net/tcp"),
    Detector(
        "descriptors",
        "devices",
        _descriptors,
        "open descriptors of the devices, and what the driver says of each: /proc/PID/fdinfo",
        has_counters=True,
        remembers=True,
    ),
)
