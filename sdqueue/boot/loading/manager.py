"""The manager that loads: its version, whether it is a user's, and what it sees of the machine.

A value only. `sdqueue.unitpath` and the tests fill it in; nothing here looks.
"""

from dataclasses import dataclass, field

from sdqueue.unitfile.directives_data import VERSIONS
from sdqueue.unitfile.specifier import Host

NEWEST = VERSIONS[-1]


@dataclass(frozen=True, slots=True)
class MountPoint:
    """A file system that is mounted before any unit is loaded: a line of /proc/self/mountinfo."""

    where: str
    what: str = ""
    fstype: str = ""
    options: str = ""


@dataclass(frozen=True, slots=True)
class Manager:
    """One manager. The defaults are a normal boot of a machine that has its root file system.

    `container`: swap units get no default dependencies there. `devices`: udev is there, so that
    .device units exist. `memory_controller`: cgroup v2 with the memory controller, without which
    ManagedOOM…= has no effect. `mounts`: what is mounted besides / and the API file systems.
    `device_nodes`: devices that back what is mounted; they have units though nothing names them.
    """

    version: int = NEWEST
    user: bool = False
    container: bool = False
    devices: bool = True
    memory_controller: bool = True
    mounts: tuple[MountPoint, ...] = ()
    device_nodes: tuple[str, ...] = ()
    default_output: str = "journal"
    default_error: str = "inherit"
    host: Host = field(default_factory=Host)
