"""What the configuration says: lanes and the settings of the queue, as values.

Named tuples and not dataclasses: those take longer to load than the interpreter does to start, and
the generator runs at every boot and daemon-reload.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Lane(NamedTuple):
    """An ordered line of jobs with `slots`. `excludes` is symmetric once the configuration is read.

    `before` names lanes whose jobs wait while this one has a runnable job. `slice_properties` are
    unit-file assignments of the lane's slice. `job_defaults` are job header keys and values.
    `devices`, `foreign`, `ports`, `owner_files` and `units` say who uses the lane without being the
    queue's; `yielding` are those of them who give way.
    """

    name: str
    slots: int = 1
    excludes: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    yielding: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    owner_files: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    slice_properties: tuple[tuple[str, str], ...] = ()
    memory_margin_bytes: int = 0
    job_defaults: tuple[tuple[str, str], ...] = ()
    on_success: tuple[str, ...] = ()
    on_failure: tuple[str, ...] = ()
    inhibit_sleep: bool = True

    @property
    def is_watched(self) -> bool:
        """Say whether anything tells who uses the lane without being the queue's."""
        sources = (self.devices, self.foreign, self.ports, self.owner_files, self.units)
        return any(sources)


DEFAULT_LANES: tuple[Lane, ...] = (
    Lane(name="cpu"),
    Lane(
        name="gpu",
        excludes=frozenset({"net"}),
        devices=("/dev/dri/renderD*", "/dev/kfd", "/dev/nvidia*", "/dev/accel/*"),
    ),
    Lane(name="net", excludes=frozenset({"gpu"}), before=("gpu",)),
)
_DEFAULT = MappingProxyType({lane.name: lane for lane in DEFAULT_LANES})


class Config(NamedTuple):
    """`sdqueue.toml` and its drop-ins, understood. Lanes are in the order in which to show them."""

    lanes: Mapping[str, Lane] = _DEFAULT
    default_lane: str = "cpu"
    recheck_usec: int = 60_000_000
    check_timeout_usec: int = 60_000_000
    startup_wait_usec: int = 600_000_000
    interrupted_max: int = 3
    log_max_bytes: int = 16 * 1024 * 1024
