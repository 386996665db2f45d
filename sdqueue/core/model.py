"""What the queue is: jobs in phases, lanes with their occupants, and why a job waits.

It knows no file and no bus. Only `core.apply` changes these values, in place: at 100,000 jobs a
copy for each event would be a pause. Jobs that ended are kept by name only; the rest of them is
in their files.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sdqueue.core.lease import Lease, LeaseRequest, Parked
from sdqueue.core.line import Line, Rank
from sdqueue.core.owner import Identity, Owner
from sdqueue.core.results import Outcome, RunEnd
from sdqueue.core.spec import Config, JobSpec, Lane
from sdqueue.core.verdict import UNJUDGED, Verdict
from sdqueue.words import names

if TYPE_CHECKING:
    from sdqueue.core.events import FileEnded

STARTS_MAX = 64
"""Open start jobs of all lanes: each costs PID 1 one of its 512 match rules on a system bus."""


class JobState(StrEnum):
    """What people see; also the name of the spool directory, but for `queued` (`queue`)."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    PARKED = "parked"


class Phase(StrEnum):
    """Where a job is on its way; each belongs to one state. `apply.TRANSITIONS` joins them."""

    IN_LINE = "in-line"
    ASIDE = "aside"
    CHECKING = "checking"
    MEASURING = "measuring"
    LEAVING = "leaving"
    CLAIMING = "claiming"
    UNKNOWN = "unknown"
    ACTIVE = "active"
    VERIFYING = "verifying"
    SETTLING = "settling"


RUNNING_PHASES = frozenset(
    {Phase.CLAIMING, Phase.UNKNOWN, Phase.ACTIVE, Phase.VERIFYING, Phase.SETTLING}
)


class Code(StrEnum):
    """Why a queued job does not run. The one list of reason codes; the manual is made from it."""

    STARTING = "starting"
    TROUBLE = "trouble"
    PAUSED = "paused"
    LANE_TAKEN = "lane-taken"
    LEASED = "leased"
    EXCLUDED_LANE = "excluded-lane"
    BEFORE_LANE = "before-lane"
    FOREIGN = "foreign"
    REFUSED = "refused"
    START_LIMIT = "start-limit"
    EARLIER_JOB = "earlier-job"
    CHECKING = "checking"
    STARTS_NOW = "starts-now"
    BAD_FILE = "bad-file"
    REQUIRES_FALSE = "requires-false"
    CHECK_FAILED = "check-failed"
    AFTER_NOT_DONE = "after-not-done"
    RETRY_DELAY = "retry-delay"
    NOT_BEFORE = "not-before"
    MEMORY = "memory"
    DISK = "disk"


CODE_HELP: dict[Code, str] = {
    Code.STARTING: "the controller, the box or its user manager has not finished starting",
    Code.TROUBLE: "the spool cannot be written; nothing starts until it can",
    Code.PAUSED: "the lane is paused",
    Code.LANE_TAKEN: "all slots of the lane are in use",
    Code.LEASED: "somebody holds a lease on the lane, or asked for one before",
    Code.EXCLUDED_LANE: "a lane that excludes this one is in use",
    Code.BEFORE_LANE: "a lane that goes before this one has a job to run",
    Code.FOREIGN: "somebody whom the queue did not start uses what the lane is for",
    Code.REFUSED: "the service manager refused the start, because of the unit that is named",
    Code.START_LIMIT: f"{STARTS_MAX} starts are open, over all lanes",
    Code.EARLIER_JOB: "another job of the lane is before it",
    Code.CHECKING: "its DONE_IF or REQUIRES is being asked",
    Code.STARTS_NOW: "nothing: it is about to start",
    Code.BAD_FILE: "the job file has an error, or names a lane that is not configured",
    Code.REQUIRES_FALSE: "its REQUIRES said no",
    Code.CHECK_FAILED: "its checks could not be asked",
    Code.AFTER_NOT_DONE: "a job that it comes after is not done",
    Code.RETRY_DELAY: "its last attempt failed, and RETRY_DELAY has not passed",
    Code.NOT_BEFORE: "NOT_BEFORE has not come",
    Code.MEMORY: "the box has less usable memory than MEMORY asks for",
    Code.DISK: "a file system has less free space than DISK asks for",
}

GATES = frozenset({Code.REQUIRES_FALSE, Code.CHECK_FAILED, Code.MEMORY, Code.DISK})
"""Waits that only asking again can end."""


PASSING = frozenset({Code.CHECKING, Code.STARTS_NOW})
"""Reasons that are over in a moment: they can be asked for, and are not events."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job does not run: a code, words for a person, and who stands in the way.

    `blocker` is a job's name, a unit's name or a lane's, as the code says; empty where there is
    none. `until_sec` is when it ends by itself, `since_sec` when a gate first said no (0 where that
    does not apply).
    """

    code: Code
    detail: str = ""
    blocker: str = ""
    until_sec: float = 0.0
    since_sec: float = 0.0


@dataclass(frozen=True, slots=True)
class Episode:
    """A wait for one owner, from the `gpu-wait` that told of it until it is over."""

    id: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class Memory:
    """What outlives a restart and is not in the job's file."""

    attempts: int = 0
    interrupted: int = 0
    retry_sec: float = 0.0


FORGET = Memory()
"""Nothing to remember: the next run starts with a fresh budget."""


@dataclass(slots=True, eq=False)
class Job:
    """A job that is queued or running.

    `spec` is None where the file can't be understood; `lane` is empty then. `run` numbers the
    present run, `wait` is the reason of its own for which it is ASIDE, `announced` the code of
    the last `wait` event. `checked_sec` and `measured_sec` are when it was last found runnable, 0
    if it was not since its file changed or a gate said no. `is_stale`: the question that is out was
    asked of an older file. `unreached` counts checks that ended without an answer. `gate` is what
    its gate said last, and stays the reason while it is in line to be asked again. `reseeded` is
    the same name queued anew meanwhile, which enters when this one is settled. `is_unit_gone`:
    PID 1 has forgotten its unit before we knew how the run ended. `seen_away` is where its file was
    seen while it was on its way. Times are unix seconds;
    `started_sec` is 0 where it is not known.
    """

    name: str
    spec: JobSpec | None
    phase: Phase
    since_sec: float
    memory: Memory = FORGET
    run: int = 0
    unit_job: int = 0
    invocation: str = ""
    started_sec: float = 0.0
    wait: Reason | None = None
    announced: Code | None = None
    checked_sec: float = 0.0
    measured_sec: float = 0.0
    is_stale: bool = False
    unreached: int = 0
    gate: Reason | None = None
    cancel_uid: int | None = None
    outcome: Outcome | None = None
    end: RunEnd | None = None
    problem: str = ""
    reseeded: "Job | None" = None
    is_unit_gone: bool = False
    seen_away: "FileEnded | None" = None

    @property
    def attempt(self) -> int:
        """Number the present or next attempt, from 1."""
        return self.memory.attempts + 1

    @property
    def lane(self) -> str:
        return self.spec.lane if self.spec else ""

    @property
    def state(self) -> JobState:
        return JobState.RUNNING if self.phase in RUNNING_PHASES else JobState.QUEUED

    @property
    def unit(self) -> str:
        return names.unit_of_job(self.name)

    @property
    def rank(self) -> Rank:
        return (-self.spec.priority if self.spec else 0, names.sort_key(self.name))


@dataclass(slots=True, eq=False)
class LaneState:
    """A lane at work: `line` are the jobs that could be next, `gated` those whose gate said no.

    `occupants` are units that hold a slot, from the decision to start until PID 1 has forgotten
    them: unit name → the job's name, or empty for a unit of checks; a job whose memory is being
    looked at holds its slot already. `is_asker_gone`: the unit of checks is, and its answers are
    not all here. `refusal` stands from a refusal by PID 1 until its blocker is gone or its time is
    up, `refusals` counts them in a row. `recheck_sec` is when gates are asked again, `reopened_sec`
    when they were last; `crowded` whether it was announced that jobs stand behind the head.
    `users` use the lane without being ours, as seen at `looked_sec` (0: never looked at), and
    `is_settling` while a device gives memory back; `is_looking`: somebody looks now. `leases` are
    those that are held, by their units, `lent` the units of those whose beginning was logged,
    `requests` those that wait; `waiters` wait for the leases to end, `told` are the units of those
    that were told of, and `parked` is memory that former holders said they keep. `told_owners` and
    `told_waits` are the users, and the requests by id, that the log has as being there. `verdict`
    is how the lane was after the last step.
    """

    lane: Lane
    line: Line = field(default_factory=Line)
    gated: set[str] = field(default_factory=set)
    occupants: dict[str, str] = field(default_factory=dict)
    paused: bool = False
    is_asker_gone: bool = False
    refusal: Reason | None = None
    refusals: int = 0
    recheck_sec: float = 0.0
    reopened_sec: float = 0.0
    crowded: bool = False
    users: tuple[Owner, ...] = ()
    is_settling: bool = False
    looked_sec: float = 0.0
    is_looking: bool = False
    episode: Episode | None = None
    leases: dict[str, Lease] = field(default_factory=dict)
    lent: set[str] = field(default_factory=set)
    requests: list[LeaseRequest] = field(default_factory=list)
    waiters: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = ()
    told_owners: dict[Identity, Owner] = field(default_factory=dict)
    told_waits: dict[str, Lease] = field(default_factory=dict)
    parked: list[Parked] = field(default_factory=list)
    verdict: Verdict = UNJUDGED


@dataclass(slots=True, eq=False)
class QueueState:
    """All that the controller believes. `halt` stops every start: starting up, or spool trouble.

    `ended` holds the state of jobs whose file lies in done/, failed/ or parked/. `successors` are
    the names that wait after a name. `timers` is a heap of (unix seconds, job). `asked` are the
    names whose checks or memory are being looked at, with the lane that asks: a name is asked one
    question at a time, so that an answer can't be taken for another's. `clock_sec` is the time of
    the last step. `troubles_told` are those that were logged since the last claim succeeded.
    `uid` is the spool's owner, who alone moves files in it; `vanished` are names whose file was
    gone when the queue wanted to move it. `is_awake`: the box was asked not to go to sleep.
    `notices` are for `status`, by what they are about; `hooks_failed` and `episodes` are counts,
    `generation` is one of changes of the lanes' verdicts.
    """

    config: Config
    lanes: dict[str, LaneState] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    ended: dict[str, JobState] = field(default_factory=dict)
    successors: dict[str, set[str]] = field(default_factory=dict)
    timers: list[tuple[float, str]] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    clock_sec: float = 0.0
    halt: Reason | None = None
    troubles_told: set[str] = field(default_factory=set)
    uid: int = 0
    vanished: set[str] = field(default_factory=set)
    is_awake: bool = False
    hooks_failed: int = 0
    episodes: int = 0
    generation: int = 0
    notices: dict[str, str] = field(default_factory=dict)


def new_state(config: Config, *, uid: int = 0) -> QueueState:
    """Make the state of a queue that has just been switched on: empty, and starting nothing yet."""
    lanes = {name: LaneState(lane) for name, lane in config.lanes.items()}
    return QueueState(
        config, lanes, uid=uid, halt=Reason(Code.STARTING, "the controller is starting")
    )
