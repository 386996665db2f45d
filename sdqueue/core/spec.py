"""What a person asked for: a job as its file says it, a lane as the configuration says it.

Values only, all frozen. What has become of a job since (attempts, reasons, units) is in
`core.model`; how a file becomes a JobSpec is in `jobfile`, how a configuration becomes Lanes is
in `config`. Kept apart from the model so that `sdqueue submit` starts fast; lanes are in a module
of their own for the same reason, the generator's.
"""

from dataclasses import dataclass
from typing import NamedTuple

from sdqueue.core.lane import DEFAULT_LANES, Config, Lane

__all__ = [
    "DEFAULT_LANES",
    "INFINITY_USEC",
    "Config",
    "DiskNeed",
    "JobSpec",
    "Lane",
    "MemoryNeed",
]

INFINITY_USEC = 2**64 - 1


class MemoryNeed(NamedTuple):
    """`MEMORY:` as `max(bytes, percent of the box) + size of a file and percent on top of it`."""

    bytes: int = 0
    percent: int = 0
    size_of_file: str = ""
    margin_percent: int = 0


class DiskNeed(NamedTuple):
    """`DISK:` free bytes, and the path whose file system must have them."""

    bytes: int
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One job file, understood.

    `name` is without `.job`. `attempts_max` counts attempts in all (`RETRIES:`). `uid` owns the
    file. `cwd` is absolute, or empty for the owner's home directory. `done_if` and `requires` are
    bash commands, empty where there is none. `interpreter` is the argv of the `#!` line.
    """

    name: str
    lane: str
    uid: int = 0
    description: str = ""
    done_if: str = ""
    requires: str = ""
    attempts_max: int = 3
    retry_delay_usec: int = 0
    timeout_usec: int = INFINITY_USEC
    memory: MemoryNeed | None = None
    disk: DiskNeed | None = None
    nice: int | None = None
    cpu_weight: int | None = None
    not_before_sec: float = 0.0
    after: tuple[str, ...] = ()
    after_any: tuple[str, ...] = ()
    priority: int = 0
    on_success: tuple[str, ...] = ()
    on_failure: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = ""
    on_calendar: str = ""
    interpreter: tuple[str, ...] = ("/bin/bash",)
