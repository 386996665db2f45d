"""A box in miniature for tests of the core: a service manager, a spool, and a shell between them.

`Pid1` accepts and refuses starts as the real one does and tells its news in one stream, in order.
`Spool` is where the files are. `Shell` does the core's actions in stages, each of which can be the
last before the bus is lost or the controller dies, and reports through one inbox, as the controller
does. When which of these goes on is the test's to choose; nothing here decides for the queue.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.lease import Lease
from sdqueue.core.model import FORGET, Code, Job, JobState, Memory, Phase, QueueState, Reason
from sdqueue.core.owner import Owner
from sdqueue.core.plan import CHECKS_MAX
from sdqueue.core.reconcile import UnitView, reconcile
from sdqueue.core.results import SPENDS, RunEnd, judge
from sdqueue.core.spec import JobSpec
from sdqueue.words import names

JUDGED = frozenset({Phase.UNKNOWN, Phase.CLAIMING, Phase.ACTIVE})

ENDS: dict[str, RunEnd] = {
    "ok": RunEnd(job_result="done", service_result="success", main_code="exited"),
    "fails": RunEnd(
        job_result="failed", service_result="exit-code", main_code="exited", main_status=7
    ),
    "unverified": RunEnd(
        job_result="failed", service_result="exit-code", main_code="exited", post_status=1
    ),
    "wall clock": RunEnd(
        job_result="failed", service_result="timeout", main_code="killed", main_status=15
    ),
    "killed": RunEnd(
        job_result="failed", service_result="signal", main_code="killed", main_status=9
    ),
    "exec": RunEnd(
        job_result="failed", service_result="exit-code", main_code="exited", main_status=203
    ),
    "dependency": RunEnd(job_result="dependency", service_result="success"),
}
CANCELED = RunEnd(
    job_result="canceled", service_result="signal", main_code="killed", main_status=15
)


@dataclass
class Unit:
    """A unit that PID 1 knows. `job` is empty for one that asks checks, or is for a lease."""

    name: str
    lane: str
    conflicts: frozenset[str]
    job: str = ""
    number: int = 0
    end: RunEnd | None = None
    is_dying: bool = False
    is_stray: bool = False
    lease: Lease | None = None


@dataclass
class Pid1:
    """The service manager; `news` is what it has said and nobody has heard yet."""

    units: dict[str, Unit] = field(default_factory=dict)
    strangers: dict[str, str] = field(default_factory=dict)
    news: deque[tuple[str, str, RunEnd | None]] = field(default_factory=deque)
    unit_jobs: int = 0

    def refusal(self, unit: Unit) -> str | None:
        """Say who stands in the way of a start, or None."""
        if unit.name in self.units:
            return unit.name
        for lane in sorted(unit.conflicts | {unit.lane}):
            if stranger := self.strangers.get(lane):
                return stranger
        for other in self.units.values():
            if other.end is None and (other.lane in unit.conflicts or unit.lane in other.conflicts):
                return other.name
        return None

    def start(self, unit: Unit) -> int:
        self.units[unit.name] = unit
        self.unit_jobs += 1
        return self.unit_jobs

    def exit(self, unit: Unit, end: RunEnd) -> None:
        """End a unit's processes: its start job is over, and a good unit is forgotten at once."""
        unit.end = end
        self.news.append(("removed", unit.name, end))
        if end.service_result == "success" or not unit.job:
            self.forget(unit.name)

    def forget(self, name: str) -> None:
        if self.units.pop(name, None):
            self.news.append(("gone", name, None))

    def live(self) -> list[Unit]:
        return [unit for unit in self.units.values() if unit.end is None]


@dataclass
class Spool:
    """Files by name: of which spec in queue/ and running/, the state of those that ended."""

    queue: dict[str, JobSpec | None] = field(default_factory=dict)
    running: dict[str, JobSpec | None] = field(default_factory=dict)
    ended: dict[str, JobState] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    witness: dict[str, RunEnd] = field(default_factory=dict)
    cancels: dict[str, int] = field(default_factory=dict)
    version: dict[str, int] = field(default_factory=dict)
    of_old_manager: set[str] = field(default_factory=set)

    def put(self, name: str, spec: JobSpec | None) -> None:
        """Have a person put a file into queue/."""
        if name not in self.queue:
            self.memory.pop(name, None) if name not in self.running else None
        self.queue[name] = spec
        self.version[name] = self.version.get(name, 0) + 1

    def states(self, name: str) -> list[JobState]:
        found = [JobState.RUNNING] if name in self.running else []
        found += [JobState.QUEUED] if name in self.queue else []
        return found + ([self.ended[name]] if name in self.ended else [])


Stage = Iterator[None]
"""A task of the shell: each `next` is one step of it that nothing can divide."""


class Shell:
    """The controller without the core: does actions, hears news, looks at files."""

    def __init__(self, state: QueueState, pid1: Pid1, spool: Spool) -> None:
        self.state, self.pid1, self.spool = state, pid1, spool
        self.inbox: deque[ev.Event] = deque()
        self.tasks: list[tuple[str, Stage]] = []
        self.looks: list[str] = []
        self.seen: dict[str, int] = {}
        self.in_flight: set[str] = set()
        self.accepted: dict[str, int] = {}
        self.over: dict[str, RunEnd] = {}
        self.has_bus = True
        self.verdicts: Callable[[str], ev.Event] = ev.Checked
        self.shortage: Callable[[str], Reason | None] = lambda _: None
        self.holds: Callable[[str], bool | None] = lambda _: False
        self.claims: Callable[[str], bool] = lambda _: True
        self.is_built: Callable[[str], bool] = lambda _: True
        self.refused_for_ours: list[str] = []
        self.users: dict[str, list[Owner]] = {}

    def post(self, *events: ev.Event) -> None:
        self.inbox.extend(events)

    def do(self, action: act.Action) -> None:
        """Begin what the core wants done."""
        kinds: dict[type, Callable[..., Stage]] = {
            act.Start: self._start,
            act.Check: self._check,
            act.Measure: self._measure,
            act.Verify: self._verify,
            act.Settle: self._settle,
            act.Skip: self._leave,
            act.Park: self._leave,
            act.StopUnit: self._stop,
            act.Grant: self._grant,
            act.Look: self._look_who,
        }
        if type(action).__name__ == "Relook":
            self.seen.pop(action.name, None)  # type: ignore[union-attr]
            self.looks.append(action.name)  # type: ignore[union-attr]
        if type(action) in kinds:
            kind = type(action).__name__
            if isinstance(action, act.Start):
                self.in_flight.add(action.name)
            if isinstance(action, act.Grant):
                self.in_flight.add(action.lease.backing_unit)
            self.tasks.append((kind, kinds[type(action)](action)))

    def go_on(self, index: int) -> None:
        """Take one step of one task."""
        task = self.tasks[index]
        try:
            next(task[1])
        except StopIteration:
            self.tasks.remove(task)

    # Tasks

    def _start(self, action: act.Start) -> Stage:
        name = action.name
        if name not in self.spool.queue:
            self.in_flight.discard(name)
            self.post(ev.NotClaimed(name, gone=True))
            return
        if not self.claims(name):
            self.in_flight.discard(name)
            self.post(ev.NotClaimed(name))
            return
        self.spool.queue.pop(name)
        self.spool.running[name] = self.state.jobs[name].spec
        self.spool.of_old_manager.discard(name)
        self.spool.witness.pop(name, None)
        self.spool.cancels.pop(name, None)
        self.looks.append(name)
        job = self.state.jobs[name]
        number = job.run + 1
        self.post(ev.Claimed(name, number))
        yield
        if not self.has_bus:
            self.in_flight.discard(name)
            return
        unit = self._unit(names.unit_of_job(name), job.lane, name, number)
        if not self.is_built(name):
            self.in_flight.discard(name)
            self.post(ev.Ended(name, RunEnd(job_result="unbuildable", service_result="bad")))
            return
        blocker = self.pid1.refusal(unit)
        if blocker is not None:
            self._note_refusal(blocker)
            yield
            self.spool.queue.setdefault(name, self.spool.running.pop(name))
            self.spool.running.pop(name, None)
            self.looks.append(name)
            self.in_flight.discard(name)
            self.post(ev.Refused(name, Reason(Code.REFUSED, f"{blocker} runs", blocker)))
            return
        unit_job = self.pid1.start(unit)
        yield
        self.in_flight.discard(name)
        if self.has_bus:
            self._accepted(name, unit_job)

    def _accepted(self, name: str, unit_job: int) -> None:
        self.accepted[name] = unit_job
        self.post(ev.Started(name, unit_job, f"{unit_job:032x}", 99))
        if name in self.over:
            self.in_flight.add(name)
            self.tasks.append(("Collect", self._collect(name, self.over.pop(name))))

    def _collect(self, name: str, end: RunEnd) -> Stage:
        yield
        self.in_flight.discard(name)
        self.accepted.pop(name, None)
        if self.has_bus:
            self.post(ev.Ended(name, end))

    def _unit(self, name: str, lane: str, job: str = "", number: int = 0) -> Unit:
        known = self.state.lanes[lane].lane
        return Unit(name, lane, known.excludes, job, number)

    def _note_refusal(self, blocker: str) -> None:
        if blocker not in self.pid1.strangers.values() and not blocker.startswith("sdqueue-ask-"):
            self.refused_for_ours.append(blocker)

    def _check(self, action: act.Check) -> Stage:
        assert len(action.names) <= CHECKS_MAX
        unit = self._unit(names.unit_of_checks(action.lane), action.lane)
        blocker = self.pid1.refusal(unit) if self.has_bus else None
        if blocker is not None:
            self._note_refusal(blocker)
        if blocker is not None or not self.has_bus:
            yield
            self.post(*map(ev.NotChecked, action.names))
            if blocker:
                why = Reason(Code.REFUSED, f"{blocker} runs", blocker)
                self.post(ev.ChecksRefused(action.lane, why), ev.UnitGone(unit.name))
            return
        self.pid1.start(unit)
        yield
        if not self.has_bus:
            unit.is_stray = True
            self.post(*map(ev.NotChecked, action.names))
            return
        answers: list[ev.Event] = []
        for name in action.names:
            answers.append(self.verdicts(name))
            if answers[-1] == ev.Checked(name):
                break
        answers += map(ev.NotChecked, action.names[len(answers) :])
        if unit.end is None:
            self.pid1.exit(unit, ENDS["ok"])
        yield
        self.post(*(answers if self.has_bus else map(ev.NotChecked, action.names)))

    def _grant(self, action: act.Grant) -> Stage:
        lease = action.lease
        unit = self._unit(lease.backing_unit, lease.lane)
        unit.lease = lease
        blocker = self.pid1.refusal(unit) if self.has_bus else "no bus"
        if blocker is None:
            self.pid1.start(unit)
        elif self.has_bus:
            self._note_refusal(blocker)
        yield
        self.in_flight.discard(unit.name)
        if blocker is None and self.has_bus:
            self.post(ev.LeaseStarted(unit.name))
        elif blocker is not None:
            why = Reason(Code.REFUSED, f"{blocker} runs", blocker if self.has_bus else "")
            self.post(ev.LeaseRefused(lease, why, action.wait and self.has_bus))

    def _look_who(self, action: act.Look) -> Stage:
        yield
        self.post(ev.OwnersSeen(action.lane, tuple(self.users.get(action.lane, ()))))

    def _measure(self, action: act.Measure) -> Stage:
        shortage = self.shortage(action.name)
        yield
        self.post(ev.Measured(action.name, shortage))

    def _verify(self, action: act.Verify) -> Stage:
        holds = self.holds(action.name)
        yield
        self.post(ev.Verified(action.name, holds if self.has_bus else None))

    def _settle(self, action: act.Settle) -> Stage:
        name, spool = action.name, self.spool
        superseded = name in spool.queue
        if name in spool.running:
            spec = spool.running.pop(name)
            if action.to is not JobState.QUEUED:
                spool.ended[name] = action.to
            elif superseded:
                spool.ended[name] = JobState.FAILED
            else:
                spool.queue[name] = spec
                spool.version[name] = spool.version.get(name, 0) + 1
        if action.to is JobState.QUEUED and not superseded and action.memory != FORGET:
            spool.memory[name] = action.memory
        else:
            spool.memory.pop(name, None)
        self.looks.append(name)
        yield
        if self.has_bus:
            unit = self.pid1.units.get(names.unit_of_job(name))
            if unit and unit.end:
                self.pid1.forget(unit.name)
        self.post(ev.Settled(name, action, superseded))

    def _leave(self, action: act.Skip | act.Park) -> Stage:
        name = action.name
        vanished = self.spool.queue.pop(name, self) is self
        if not vanished:
            to = JobState.DONE if isinstance(action, act.Skip) else JobState.PARKED
            self.spool.ended[name] = to
            self.spool.memory.pop(name, None)
        self.looks.append(name)
        yield
        self.post(ev.Settled(name, action, vanished=vanished))

    def _stop(self, action: act.StopUnit) -> Stage:
        unit = self.pid1.units.get(action.unit)
        if self.has_bus and unit and unit.end is None:
            unit.is_dying = True
        yield

    # News

    def hear(self) -> None:
        """Hear the next thing that PID 1 said."""
        kind, unit, end = self.pid1.news.popleft()
        job = names.job_of_unit(unit)
        if kind == "gone":
            self.post(ev.UnitGone(unit))
        elif job and end:
            if job in self.accepted:
                self.in_flight.add(job)
                self.tasks.append(("Collect", self._collect(job, end)))
            else:
                self.over[job] = end

    def look(self) -> None:
        """Look at the next name of which inotify said something."""
        name = self.looks.pop(0)
        self.post(*self._events_of(name, first=False))

    def _events_of(self, name: str, *, first: bool) -> list[ev.Event]:
        spool = self.spool
        where = next(iter(spool.states(name)), None)
        if where is JobState.QUEUED:
            if self.seen.get(name) == spool.version[name]:
                return []
            self.seen[name] = spool.version[name]
            spec = spool.queue[name]
            problem = "" if spec else "line 1: no such lane"
            return [ev.FileQueued(name, spec, problem, spool.memory.get(name, FORGET))]
        self.seen.pop(name, None)
        if where is JobState.RUNNING:
            spec, memory = spool.running[name], spool.memory.get(name, FORGET)
            found = ev.FileRunning(name, spec, 1, memory, 0.0, spool.cancels.get(name))
            return [found] if first else []
        return [ev.FileGone(name), ev.FileEnded(name, where)]

    # Beginning anew

    def lose_bus(self) -> None:
        """Lose the bus: what was said is not heard, what was asked is not answered."""
        self.has_bus = False
        self.pid1.news.clear()
        self.accepted.clear()
        self.over.clear()
        self.post(ev.Halted(Reason(Code.TROUBLE, "no bus")))
        for kind in ("Start", "Collect", "Check", "Verify", "Stop", "Grant"):
            self._finish(kind)

    def _finish(self, kind: str) -> None:
        for task in [task for task in self.tasks if task[0] == kind]:
            for _ in task[1]:
                pass
            self.tasks.remove(task)

    def connect(self) -> None:
        """Connect, and compare what the queue believes with what is."""
        self.has_bus = True
        for job in list(self.state.jobs.values()):
            if job.phase in JUDGED and job.name not in self.in_flight:
                self._judge(job)
        for unit in self.pid1.live():
            if unit.lease:
                self.post(ev.LeaseSeen(unit.lease))
            elif not (unit.job and unit.job in self.state.jobs):
                self.post(ev.UnitSeen(unit.lane, unit.name))
        for lane in self.state.lanes.values():
            for name, holder in lane.occupants.items():
                if name not in self.pid1.units and not {name, holder} & self.in_flight:
                    self.post(ev.UnitGone(name))
        self.post(ev.Halted(None))

    def _judge(self, job: Job) -> None:
        unit = self.pid1.units.get(job.unit)
        view = None
        if unit:
            end = replace(unit.end, job_result="failed") if unit.end else None
            view = UnitView("failed" if end else "activating", 7, "i", end)
        witness = self.spool.witness.get(job.name)
        same = job.name not in self.spool.of_old_manager
        answer = reconcile(job.name, view, witness, same_manager=same)
        if isinstance(answer, ev.Reattached):
            self.accepted[job.name] = 7
        self.post(answer)

    def read_spool(self) -> None:
        """Look at all files, as a controller does that has just begun."""
        spool = self.spool
        for name in sorted({*spool.queue, *spool.running, *spool.ended}):
            self.post(*self._events_of(name, first=True))


def end_of(kind: str, spec: JobSpec | None, *, now_sec: float) -> RunEnd:
    """Give the end of a run of that kind, as it is for a job with or without DONE_IF."""
    has_done_if = bool(spec and spec.done_if)
    if kind == "unverified" and not has_done_if:
        kind = "ok"
    end = replace(ENDS[kind], has_done_if=has_done_if, ended_sec=now_sec)
    return replace(end, post_status=0) if kind == "ok" and has_done_if else end


def spends(end: RunEnd) -> bool:
    return judge(end).verdict in SPENDS
