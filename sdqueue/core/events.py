"""What can happen to the queue: the inputs of `apply`, each a fact that the shell observed."""

from dataclasses import dataclass

from sdqueue.core.actions import Park, Settle, Skip
from sdqueue.core.lease import Lease
from sdqueue.core.model import FORGET, JobState, Memory, Reason
from sdqueue.core.owner import Owner
from sdqueue.core.results import RunEnd
from sdqueue.core.spec import Config, JobSpec


@dataclass(frozen=True, slots=True)
class FileQueued:
    """A file is in queue/, new or changed; `spec` is None and `problem` says why if it is bad."""

    name: str
    spec: JobSpec | None
    problem: str = ""
    memory: Memory = FORGET


@dataclass(frozen=True, slots=True)
class FileRunning:
    """A file is in running/, and this controller does not know yet what became of it.

    `started_sec` is the start of its run, 0 if unknown; `cancel_uid` is who had asked for its end.
    """

    name: str
    spec: JobSpec | None
    run: int
    memory: Memory = FORGET
    started_sec: float = 0.0
    cancel_uid: int | None = None


@dataclass(frozen=True, slots=True)
class FileGone:
    """The file of a queued job is no longer in queue/."""

    name: str


@dataclass(frozen=True, slots=True)
class FileEnded:
    """A file is in done/, failed/ or parked/; `state` None: it is in none of them any more."""

    name: str
    state: JobState | None


@dataclass(frozen=True, slots=True)
class Checked:
    """DONE_IF and REQUIRES were asked. `gate` is None if the job may run."""

    name: str
    done: bool = False
    gate: Reason | None = None


@dataclass(frozen=True, slots=True)
class NotChecked:
    """The checks of a job were not reached; it is as it was."""

    name: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Memory and disk were looked at; `shortage` is None if they suffice."""

    name: str
    shortage: Reason | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """The job's file is in running/ and its run directory is made."""

    name: str
    run: int


@dataclass(frozen=True, slots=True)
class NotClaimed:
    """The file could not be moved to running/: it is still in queue/, or gone."""

    name: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """PID 1 took the start: the unit job is queued, and PID 1 holds the lane."""

    name: str
    unit_job: int
    invocation: str = ""
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """PID 1 did not take the start; the file is back in queue/."""

    name: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Reattached:
    """A unit that was started before this controller still runs."""

    name: str
    unit_job: int
    invocation: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """A job in running/ has neither unit nor result. `reboot`: its manager or boot was another."""

    name: str
    note: str
    reboot: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """A run is over."""

    name: str
    end: RunEnd


@dataclass(frozen=True, slots=True)
class Verified:
    """DONE_IF was asked after a failure; `holds` is None if it could not be."""

    name: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Settled:
    """What `action` asked for is on disk. `superseded`: the name was queued anew meanwhile, and the
    new file stands. `vanished`: the file was gone before it could be moved."""

    name: str
    action: Settle | Skip | Park
    superseded: bool = False
    vanished: bool = False


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Somebody asks for a job not to run, or not to run on."""

    name: str
    uid: int


@dataclass(frozen=True, slots=True)
class UnitSeen:
    """A unit occupies a lane: one of checks, or one found at reconciliation."""

    lane: str
    unit: str
    job: str = ""


@dataclass(frozen=True, slots=True)
class UnitGone:
    """PID 1 has forgotten a unit: its name is free, and its lane's slot once its run has ended."""

    unit: str


@dataclass(frozen=True, slots=True)
class ChecksRefused:
    """PID 1 did not take the start of a unit of checks."""

    lane: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class LanePaused:
    """A lane is paused, or goes on."""

    lane: str
    paused: bool


@dataclass(frozen=True, slots=True)
class Halted:
    """Nothing may start, for this reason; None: everything may again."""

    reason: Reason | None


@dataclass(frozen=True, slots=True)
class OwnersSeen:
    """Who uses a lane without being the queue's. `settling`: somebody was, and the device has not
    given all memory back yet."""

    lane: str
    owners: tuple[Owner, ...]
    settling: bool = False


@dataclass(frozen=True, slots=True)
class LeaseAsked:
    """Somebody asks for a lane; `wait`: in line, instead of being refused."""

    lease: Lease
    wait: bool = False


@dataclass(frozen=True, slots=True)
class LeaseWithdrawn:
    """Nobody waits for this lease any more."""

    id: str


@dataclass(frozen=True, slots=True)
class LeaseStarted:
    """PID 1 took the start of a lease's unit."""

    unit: str


@dataclass(frozen=True, slots=True)
class LeaseRefused:
    """PID 1 did not take the start of a lease's unit; `wait` as it was asked for."""

    lease: Lease
    reason: Reason
    wait: bool = False


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A lease is held since before this controller."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class LeasePassed:
    """A lease is held by another process than before."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class LeaseParked:
    """A holder says that it keeps memory on the device when it lets go."""

    unit: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class LeaseRevoked:
    """Somebody stopped a lease's unit while its holder had it."""

    unit: str


@dataclass(frozen=True, slots=True)
class HookFailed:
    """A unit that was to start when a job ended failed, or could not be started."""

    unit: str
    job: str
    what: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something of `source` is not as it should be and stops nothing; None: it is again.

    `is_error`: somebody has to mend it.
    """

    source: str
    what: str | None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ConfigRead:
    """The configuration is new."""

    config: Config


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


JobEvent = (
    FileQueued
    | FileRunning
    | FileGone
    | Checked
    | NotChecked
    | Measured
    | Claimed
    | NotClaimed
    | Started
    | Refused
    | Reattached
    | Lost
    | Ended
    | Verified
    | Settled
    | CancelAsked
)
QueueEvent = (
    FileEnded
    | UnitSeen
    | UnitGone
    | ChecksRefused
    | LanePaused
    | Halted
    | OwnersSeen
    | LeaseAsked
    | LeaseWithdrawn
    | LeaseStarted
    | LeaseRefused
    | LeaseSeen
    | LeasePassed
    | LeaseParked
    | LeaseRevoked
    | HookFailed
    | Noticed
    | ConfigRead
    | Tick
)
Event = JobEvent | QueueEvent
