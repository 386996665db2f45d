"""What the core wants done: the outputs of `step`. The shell does it and reports back."""

from dataclasses import dataclass, field

from sdqueue.core.lease import Lease
from sdqueue.core.model import JobState, Memory, Reason
from sdqueue.core.results import Outcome, RunEnd


@dataclass(frozen=True, slots=True)
class Start:
    """Claim the job (run directory, file to running/) and start its unit: Claimed, then Started or
    Refused; NotClaimed if the spool did not let us."""

    name: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Check:
    """Ask DONE_IF and REQUIRES of these jobs in one unit of the lane, up to the first runnable."""

    lane: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """Look at memory and disk for this job: Measured."""

    name: str


@dataclass(frozen=True, slots=True)
class Look:
    """Look who uses a lane without being the queue's: OwnersSeen, and again when that changes."""

    lane: str


@dataclass(frozen=True, slots=True)
class Grant:
    """Start the unit of a lease: LeaseStarted or LeaseRefused, and the holder gets its end."""

    lease: Lease
    wait: bool


@dataclass(frozen=True, slots=True)
class Deny:
    """Tell who asked for a lease that it can't be had, and why."""

    lease: Lease
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Verify:
    """Ask DONE_IF after a failed run: Verified."""

    name: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Move a queued job, whose DONE_IF holds, to done/."""

    name: str


@dataclass(frozen=True, slots=True)
class Park:
    """Move a queued job to parked/, because user `uid` said so."""

    name: str
    uid: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Write the run's end down, remember `memory` (or forget, where it is empty), move the file
    from running/ to the directory of `to`: Settled. Each step durable, in this order. `word` is the
    event to log then."""

    name: str
    run: int
    to: JobState
    word: str
    attempt: int
    memory: Memory
    note: str = ""
    by: int | None = None
    outcome: Outcome | None = None
    end: RunEnd | None = None


@dataclass(frozen=True, slots=True)
class StopUnit:
    """Stop a unit, as `systemctl stop` does."""

    unit: str


@dataclass(frozen=True, slots=True)
class Relook:
    """Look at what lies in queue/ under this name: FileQueued, if anything does."""

    name: str


@dataclass(frozen=True, slots=True)
class KeepAwake:
    """Keep the box from going to sleep from now on, or no more."""

    awake: bool


@dataclass(frozen=True, slots=True)
class Hook:
    """Start a unit because a job has ended: HookFailed, if it fails or can't be started."""

    unit: str
    job: str


@dataclass(frozen=True, slots=True)
class LaneChanged:
    """Tell who listens that a lane's verdict, or who waits for its leases, is another now."""

    lane: str


@dataclass(frozen=True, slots=True)
class Log:
    """Write one event: a line of events.jsonl, and a signal on the bus."""

    event: str
    job: str = "-"
    fields: dict[str, object] = field(default_factory=dict)


Action = (
    Start
    | Check
    | Measure
    | Look
    | Grant
    | Deny
    | Verify
    | Skip
    | Park
    | Settle
    | StopUnit
    | Relook
    | KeepAwake
    | Hook
    | LaneChanged
    | Log
)
