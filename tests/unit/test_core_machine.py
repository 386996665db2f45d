"""The core against a box in miniature, driven at random, with its invariants after every step.

What is claimed: every queued job has a start or a reason, and no running one has; a job is in
exactly one place; excluded lanes and slots hold; PID 1 never has to refuse a start for the queue's
own units; nothing is lost or doubled between spool and state; attempts are spent exactly as the
table says; no wait is told twice; no lease comes before a job that waits; asking changes nothing;
and once the box behaves, everything runs, but for what a person has to mend.

`SDQUEUE_HYPOTHESIS=soak` runs it long and at random; else it is the same short run each time.
"""

import os
import random
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, Verbosity, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.decide import step
from sdqueue.core.judge import judge
from sdqueue.core.lease import Lease
from sdqueue.core.model import (
    GATES,
    RUNNING_PHASES,
    STARTS_MAX,
    Code,
    JobState,
    Memory,
    Phase,
    QueueState,
    Reason,
    new_state,
)
from sdqueue.core.owner import Owner, Use
from sdqueue.core.plan import Plan, plan, reason
from sdqueue.core.spec import Config, JobSpec, Lane, MemoryNeed
from sdqueue.words import names
from tests.unit.core_queue import lanes
from tests.unit.model_of_systemd import (
    CANCELED,
    ENDS,
    Pid1,
    Shell,
    Spool,
    Unit,
    end_of,
    spends,
)

settings.register_profile(
    "short", max_examples=40, stateful_step_count=25, derandomize=True, deadline=None
)
settings.register_profile(
    "soak",
    max_examples=int(os.environ.get("SDQUEUE_HYPOTHESIS_EXAMPLES", "5000")),
    stateful_step_count=80,
    deadline=None,
    print_blob=True,
)
PROFILE = settings.get_profile(os.environ.get("SDQUEUE_HYPOTHESIS", "short"))

CPU = Lane(name="cpu", slots=2)
GPU = Lane(name="gpu", excludes=frozenset({"net"}), foreign=("llama-server",))
NET = Lane(name="net", excludes=frozenset({"gpu"}), before=("gpu",))
CONFIGS: tuple[Config, ...] = (
    lanes(CPU, GPU, NET),
    lanes(CPU, Lane(name="gpu")),
    lanes(Lane(name="cpu", slots=1), GPU, NET),
    lanes(
        Lane(name="cpu", slots=3, excludes=frozenset({"net"})),
        GPU,
        Lane(name="net", excludes=frozenset({"gpu", "cpu"}), slots=2),
    ),
)
NAMES = ("1-a", "2-b", "3-c", "10-d", "e")
HELD = frozenset({Phase.MEASURING, Phase.CLAIMING, Phase.UNKNOWN, Phase.ACTIVE, Phase.VERIFYING})
WORDS_LENT = frozenset({"free", "paused", "foreign", "unknown", "running", "leased"})
"""How a lane can be in which a lease is granted: in use only where it has more slots, and unknown
only as to who uses it."""

PERSONS = frozenset({Code.AFTER_NOT_DONE, Code.BAD_FILE})
"""Reasons that only a person ends."""

CHECKS_SAY = ("runs", "done", "gate", "silent", "no claim", "not built")

a_name = st.sampled_from(NAMES)
a_lane = st.sampled_from(("cpu", "gpu", "net"))
a_few = st.integers(0, 30)


@st.composite
def specs(draw: st.DrawFn, name: str) -> JobSpec:
    """Draw what a job file may say."""
    others = [other for other in NAMES if other != name]
    return JobSpec(
        name=name,
        lane=draw(st.sampled_from(("cpu", "gpu", "net", "net", "gpu", "nowhere"))),
        done_if=draw(st.sampled_from(("", "test -s out"))),
        requires=draw(st.sampled_from(("", "test -s in"))),
        memory=draw(st.sampled_from((None, None, MemoryNeed(bytes=1)))),
        attempts_max=draw(st.integers(1, 3)),
        retry_delay_usec=draw(st.sampled_from((0, 0, 5_000_000))),
        not_before_sec=draw(st.sampled_from((0.0, 0.0, 1_000_030.0))),
        after=tuple(draw(st.lists(st.sampled_from(others), max_size=1))),
        after_any=tuple(draw(st.lists(st.sampled_from(others), max_size=1))),
        priority=draw(st.integers(-1, 1)),
        uid=draw(st.sampled_from((0, 0, 1000))),
    )


def happens(**strategies: Any) -> Callable[[Callable[..., None]], Any]:
    """Make a rule of a method, after which a few of the things that go on go on."""

    def wrap(method: Callable[..., None]) -> Any:
        @wraps(method)
        def and_drift(self: "Box", **drawn: Any) -> None:
            method(self, **drawn)
            self.drift()

        decorate: Any = rule(**strategies)
        return decorate(and_drift)

    return wrap


class Box(RuleBasedStateMachine):
    """The core, and all around it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.pid1, self.spool = Pid1(), Spool()
        self.config = CONFIGS[0]
        self.state: QueueState
        self.shell: Shell
        self.planned = Plan()
        self.truth: dict[str, str] = {}
        self.before: dict[str, Memory] = {}
        self.stopped: set[str] = set()
        self.told: dict[int, tuple[Any, str | None]] = {}
        self.verdict: dict[str, str] = {}
        self.asked: dict[str, JobSpec | None] = {}
        self.leases, self.waiting = 0, dict[str, Lease]()
        self.is_broken = self.is_reconfigured = False

    @initialize(data=st.data(), seed=st.integers(0, 2**32), queued=st.sets(a_name, min_size=2))
    def begin(self, data: st.DataObject, seed: int, queued: set[str]) -> None:
        self.random = random.Random(seed)
        for name in sorted(queued):
            self.spool.put(name, data.draw(specs(name)))
        self._begin()

    def drift(self) -> None:
        """Let a few of the things that go on go on."""
        for _ in range(self.random.choice((0, 1, 2, 4, 8, 16))):
            self.random.choice(self.GOING_ON)(self)

    def _a_task(self) -> None:
        if self.shell.tasks:
            self.shell.go_on(self.random.randrange(len(self.shell.tasks)))

    def _a_signal(self) -> None:
        if self.pid1.news:
            self.shell.hear()

    def _a_look(self) -> None:
        if self.shell.looks:
            self.shell.look()

    def _a_turn(self) -> None:
        if self.shell.inbox:
            self._turn(self.random.choice((1, 2, 1000)))

    def _an_end(self) -> None:
        runs = [unit for unit in self.pid1.live() if unit.job and not unit.is_dying]
        if runs:
            self._end(self.random.choice(runs), self.random.choice(tuple(ENDS)))

    GOING_ON = (_a_task, _a_task, _a_task, _a_signal, _a_signal, _a_look, _a_turn, _a_turn, _an_end)

    # Turning the wheel

    def _begin(self) -> None:
        """Have a new controller begin on what there is."""
        self.state = new_state(self.config)
        self.shell = Shell(self.state, self.pid1, self.spool)
        self.shell.verdicts, self.shell.shortage = self._verdict, self._shortage
        self.shell.holds = self._holds
        self.shell.claims = lambda name: self.verdict.get(name) != "no claim"
        self.shell.is_built = self._is_built
        self.pid1.news.clear()
        self.waiting.clear()
        for unit in self.pid1.live():
            unit.is_stray = not unit.job and not unit.lease
        for name in self.spool.running:
            if self.truth.get(name) == "unbuildable":
                self.truth[name] = ""
        self.told.clear()
        self.shell.read_spool()
        self._turn()
        self.shell.connect()
        self._turn()

    def _turn(self, count: int = 1000) -> None:
        """Have the core take on what is in the inbox, and the shell begin what it wants."""
        self.is_broken = True  # until we have come through
        self._turn_for(count)
        self.is_broken = False

    def _turn_for(self, count: int) -> None:
        inbox = self.shell.inbox
        events = [inbox.popleft() for _ in range(min(count, len(inbox)))] or [ev.Tick()]
        jobs = dict(self.state.jobs)
        actions, self.planned = step(self.state, events, self.now)
        jobs.update(self.state.jobs)
        for action in actions:
            if isinstance(action, act.Log):
                news = [event for event in events if getattr(event, "name", "") == action.job]
                self._hear_log(action, jobs, is_same=len(news) < 2)
            else:
                self._check_action(action, events)
                self.shell.do(action)
        for lane in self.state.lanes.values():
            assert judge(self.state, lane, self.planned)[:3] == lane.verdict[:3]

    def _hear_log(self, log: act.Log, jobs: dict[str, Any], *, is_same: bool) -> None:
        job = jobs.get(log.job)
        if log.event == "wait" and job:
            code = str(log.fields["reason"])
            _, last = self.told.get(id(job), (None, None))
            assert last != code or not is_same, (
                f"{log.job} waits for {code}, and that was told already"
            )
            assert code not in (Code.CHECKING, Code.STARTS_NOW)
            self.told[id(job)] = (job, code)
        elif log.event == "start" and job:
            self.told.pop(id(job), None)

    def _check_action(self, action: act.Action, events: list[ev.Event]) -> None:
        if isinstance(action, act.Start | act.Check | act.Measure):
            name = action.lane if isinstance(action, act.Check) else self._lane(action.name)
            self._check_room(name)
        if isinstance(action, act.Grant):
            lane = self.state.lanes[action.lease.lane]
            self._check_room(action.lease.lane, is_lease=True)
            assert action.wait or lane.paused or not lane.line, "a lease came before a job"
            self.waiting.pop(action.lease.id, None)
        if isinstance(action, act.Deny):
            assert all(why.detail for why in action.reasons)
            self.waiting.pop(action.lease.id, None)
        if isinstance(action, act.Check):
            self.asked.update((name, self.state.jobs[name].spec) for name in action.names)
        if isinstance(action, act.Skip):
            spec = self.state.jobs[action.name].spec
            assert self.asked[action.name] == spec, "a verdict about an older file counted"
        if isinstance(action, act.Start):
            disk = self.spool.memory.get(action.name, Memory())
            if action.name in self.spool.queue and not self._is_unsettled(action.name):
                assert action.attempt == disk.attempts + 1, f"{action} against {disk}"
            self.before[action.name] = self.state.jobs[action.name].memory
            self.truth[action.name] = ""
            self.stopped.discard(action.name)
        if isinstance(action, act.Settle) and not any(
            isinstance(event, ev.CancelAsked) and event.name == action.name for event in events
        ):
            self._check_settle(action, events)

    def _lane(self, name: str) -> str:
        return self.state.jobs[name].lane

    def _check_room(self, name: str, *, is_lease: bool = False) -> None:
        """Say that what has just begun in a lane may be there."""
        lane = self.state.lanes[name]
        assert len(lane.occupants) <= lane.lane.slots, f"{name}: {lane.occupants}"
        assert sum(len(other.occupants) for other in self.state.lanes.values()) <= STARTS_MAX
        for other in self.state.lanes.values():
            if other.lane.name in lane.lane.excludes or name in other.lane.excludes:
                assert not other.occupants, f"{name} beside {other.lane.name}"
        assert self.state.halt is None
        assert is_lease or not lane.paused
        assert name in self.state.config.lanes

    def _check_settle(self, action: act.Settle, events: list[ev.Event]) -> None:
        """Compare where a job goes with how its run really ended."""
        name, truth = action.name, self.truth.get(action.name, "")
        if name not in self.before:
            return
        job, before = self.state.jobs[name], self.before[name]
        spec = job.spec
        end = end_of(truth, spec, now_sec=self.now) if truth in ENDS else None
        if truth == "ok" or (end and not spends(end) and truth == "unverified"):
            assert action.to is JobState.DONE, f"{action} after {events}"
        elif action.outcome and action.outcome.success:
            assert action.outcome.verified, "a failure became a success without DONE_IF"
        elif job.cancel_uid is not None:
            assert action.to is JobState.PARKED
        elif truth == "unbuildable":
            assert action.to is JobState.FAILED
        elif end and spends(end):
            again = before.attempts + 1 < (spec.attempts_max if spec else 0)
            assert action.to is (JobState.QUEUED if again else JobState.FAILED)
            assert action.memory.attempts == (before.attempts + 1 if again else 0), (
                f"{action} after {before}, {truth}"
            )
        elif truth == "stopped":
            assert action.to in (JobState.PARKED, JobState.QUEUED, JobState.FAILED)
        elif truth == "cut":
            cuts = before.interrupted + 1
            parks = cuts >= self.config.interrupted_max
            assert action.to is (JobState.PARKED if parks else JobState.QUEUED)
            assert parks or action.memory == Memory(before.attempts, cuts, before.retry_sec)
        else:
            assert action.to is JobState.QUEUED
            assert action.memory.attempts == before.attempts

    def _is_unsettled(self, name: str) -> bool:
        """Say whether news of a name is still on its way."""
        shell = self.shell
        busy = name in shell.looks or name in shell.in_flight
        busy = busy or any(getattr(event, "name", "") == name for event in shell.inbox)
        return busy or bool(shell.tasks)

    # What the box does

    def _verdict(self, name: str) -> ev.Event:
        spec = self.state.jobs[name].spec if name in self.state.jobs else None
        kind = self.verdict.get(name, "runs")
        if kind == "done" and spec and spec.done_if:
            return ev.Checked(name, done=True)
        if kind == "gate" and spec and spec.requires:
            return ev.Checked(name, gate=Reason(Code.REQUIRES_FALSE, "REQUIRES exited 1"))
        return ev.NotChecked(name) if kind == "silent" else ev.Checked(name)

    def _shortage(self, name: str) -> Reason | None:
        if self.verdict.get(name) == "gate":
            return Reason(Code.MEMORY, "needs 37 G, 5 G usable")
        return None

    def _holds(self, name: str) -> bool | None:
        return {"done": True, "silent": None}.get(self.verdict.get(name, ""), False)

    def _is_built(self, name: str) -> bool:
        built = self.verdict.get(name) != "not built"
        if not built:
            self.truth[name] = "unbuildable"
        return built

    # Rules: people

    @happens(data=st.data(), name=a_name)
    def put_a_file(self, data: st.DataObject, name: str) -> None:
        self.spool.put(name, data.draw(specs(name)))
        self.shell.looks.append(name)

    @happens(name=a_name)
    def put_a_bad_file(self, name: str) -> None:
        self.spool.put(name, None)
        self.shell.looks.append(name)

    @happens(name=a_name)
    def take_a_file_away(self, name: str) -> None:
        if self.spool.queue.pop(name, self) is not self:
            self.shell.looks.append(name)

    @happens(name=a_name)
    def put_a_finished_file_back(self, name: str) -> None:
        if name in self.spool.ended and name not in self.spool.queue:
            del self.spool.ended[name]
            self.spool.put(name, JobSpec(name=name, lane="cpu"))
            self.shell.looks.append(name)

    @happens(name=a_name)
    def cancel(self, name: str) -> None:
        if name in self.spool.running:
            self.spool.cancels[name] = 1000
        self.shell.post(ev.CancelAsked(name, 1000))

    @happens(lane=a_lane, paused=st.booleans())
    def pause_or_resume(self, lane: str, paused: bool) -> None:
        self.shell.post(ev.LanePaused(lane, paused))

    @happens(lane=a_lane, waits=st.lists(st.booleans(), min_size=1, max_size=2))
    def ask_for_leases(self, lane: str, waits: list[bool]) -> None:
        for wait in waits:
            self.leases += 1
            lease = Lease(f"{self.leases}", lane, "engine", since_sec=self.now)
            if wait:
                self.waiting[lease.id] = lease
            self.shell.post(ev.LeaseAsked(lease, wait))

    @happens(uses=st.lists(st.sampled_from(tuple(Use)), max_size=2), told=st.booleans())
    def use_the_gpu(self, uses: list[Use], told: bool) -> None:
        self.shell.users["gpu"] = [Owner(7 + n, comm="x", use=use) for n, use in enumerate(uses)]
        if told:
            self.shell.post(ev.OwnersSeen("gpu", tuple(self.shell.users["gpu"])))

    @happens(index=a_few)
    def ask_for_a_lease_no_more(self, index: int) -> None:
        if self.waiting:
            self.shell.post(ev.LeaseWithdrawn(list(self.waiting)[index % len(self.waiting)]))

    @happens(index=a_few, by_hand=st.booleans())
    def let_a_lease_go(self, index: int, by_hand: bool) -> None:
        held = [unit for unit in self.pid1.live() if unit.lease]
        if held:
            unit = held[index % len(held)]
            if by_hand:
                self.shell.post(ev.LeaseRevoked(unit.name))
            self.pid1.exit(unit, ENDS["ok"])

    @happens(index=st.integers(0, len(CONFIGS) - 1))
    def configure(self, index: int) -> None:
        self._configure(index)

    def _configure(self, index: int) -> None:
        self.is_reconfigured = True
        self.shell.post(ev.ConfigRead(CONFIGS[index]))
        self._turn()
        self.config = CONFIGS[index]

    @happens(name=a_name, kind=st.sampled_from(CHECKS_SAY))
    def change_what_checks_say(self, name: str, kind: str) -> None:
        self.verdict[name] = kind

    # Rules: the box

    def _end(self, unit: Unit, kind: str) -> None:
        spec = self.spool.running.get(unit.job)
        end = end_of(kind, spec, now_sec=self.now)
        self.truth[unit.job] = "" if kind == "dependency" else kind
        if kind != "dependency":
            self.spool.witness[unit.job] = end
        self.pid1.exit(unit, end)

    @happens(index=a_few)
    def stop_a_run_by_hand(self, index: int) -> None:
        runs = [unit for unit in self.pid1.live() if unit.job]
        if runs:
            runs[index % len(runs)].is_dying = True

    @happens()
    def let_the_dying_die(self) -> None:
        self._die()

    def _die(self) -> None:
        for unit in self.pid1.live():
            if unit.is_dying:
                self.truth[unit.job] = "stopped"
                self.spool.witness[unit.job] = CANCELED
                self.pid1.exit(unit, CANCELED)
            elif unit.is_stray:
                self.pid1.exit(unit, ENDS["ok"])

    @happens(lane=a_lane)
    def start_a_stranger(self, lane: str) -> None:
        busy = [unit for unit in self.pid1.live() if lane in unit.conflicts | {unit.lane}]
        if not busy:
            self.pid1.strangers[lane] = f"stranger-{lane}.service"

    @happens(lane=a_lane)
    def end_a_stranger(self, lane: str) -> None:
        self._end_stranger(lane)

    def _end_stranger(self, lane: str) -> None:
        if unit := self.pid1.strangers.pop(lane, None):
            self.pid1.news.append(("gone", unit, None))

    @happens(name=a_name)
    def tell_late_of_an_old_unit(self, name: str) -> None:
        unit = names.unit_of_job(name)
        if unit not in self.pid1.units:
            self.shell.post(ev.UnitGone(unit))

    # Rules: time, and what goes on next

    @happens()
    def let_things_go_on(self) -> None:
        """Nothing else happens."""

    @happens()
    def turn_to_the_end(self) -> None:
        self._turn()

    @happens(rounds=st.integers(1, 6))
    def let_everything_go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            self._round()

    @happens(seconds=st.sampled_from((0.1, 1.0, 5.0, 61.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._turn()

    @happens(seconds=st.sampled_from((-3600.0, 3600.0)))
    def set_the_clock(self, seconds: float) -> None:
        self.now += seconds

    @happens()
    def halt(self) -> None:
        self.shell.post(ev.Halted(Reason(Code.TROUBLE, "the disk is full")))

    @happens()
    def go_on(self) -> None:
        self.shell.post(ev.Halted(None))

    # Rules: catastrophes

    @happens()
    def lose_the_bus(self) -> None:
        self.shell.lose_bus()
        self._turn()
        self.shell.connect()
        self._turn()

    @happens()
    def kill_the_controller(self) -> None:
        self._begin()

    @happens(told=st.booleans())
    def reboot(self, told: bool) -> None:
        """Cut the power, or shut down: then the runs' own words are there, ended by SIGTERM."""
        for unit in self.pid1.live():
            if unit.job:
                self.truth[unit.job] = "cut"
                if told:
                    self.spool.witness[unit.job] = CANCELED
        self.pid1.units.clear()
        self.pid1.strangers.clear()
        for name in self.spool.running:
            if self.truth.get(name) == "killed":
                self.truth[name] = "stopped"  # nobody can tell it from a shutdown's any more
            if self.truth.get(name) in (None, "", "unbuildable"):
                self.truth[name] = "cut"
        self.spool.of_old_manager |= set(self.spool.running)
        self._begin()

    # Invariants

    @invariant()
    def a_lane_is_free_only_where_a_lease_would_be_had_at_once(self) -> None:
        if not hasattr(self, "state"):
            return
        for name, lane in self.state.lanes.items():
            copy = deepcopy(self.state)
            asked = ev.LeaseAsked(Lease("0", name, "anybody", since_sec=self.now))
            actions, _ = step(copy, [asked], self.state.clock_sec)
            had = any(isinstance(action, act.Grant) for action in actions)
            word = str(lane.verdict.word)
            assert had or word != "free" or name not in self.state.config.lanes
            assert not had or word in WORDS_LENT, word
            answers = [a for a in actions if isinstance(a, act.Grant | act.Deny)]
            assert len([a for a in answers if a.lease is asked.lease]) == 1

    @invariant()
    def every_queued_job_has_a_reason_and_no_running_one(self) -> None:
        if not hasattr(self, "state"):
            return
        planned = plan(self.state, self.now)
        for job in self.state.jobs.values():
            why = reason(self.state, job, planned)
            assert (why is None) == (job.state is JobState.RUNNING), f"{job.name}: {why}"
            assert why is None or why.detail or why.code is Code.BAD_FILE

    @invariant()
    def asking_changes_nothing(self) -> None:
        if not hasattr(self, "state"):
            return
        before = self._snapshot()
        first, second = plan(self.state, self.now), plan(self.state, self.now)
        assert first == second
        assert self._snapshot() == before

    def _snapshot(self) -> str:
        jobs = [(name, repr(job)) for name, job in self.state.jobs.items()]
        lanes_ = [
            (name, list(lane.line), sorted(lane.gated), lane.occupants, lane.refusal)
            for name, lane in self.state.lanes.items()
        ]
        return repr((jobs, lanes_, self.state.timers, self.state.asked, self.state.ended))

    @invariant()
    def every_job_is_in_exactly_one_place(self) -> None:
        if not hasattr(self, "state"):
            return
        state = self.state
        for name, job in state.jobs.items():
            in_lines = [lane.lane.name for lane in state.lanes.values() if name in lane.line]
            assert in_lines == ([job.lane] if job.phase is Phase.IN_LINE else [])
            gated = [lane.lane.name for lane in state.lanes.values() if name in lane.gated]
            is_gated = job.phase is Phase.ASIDE and job.wait and job.wait.code in GATES
            assert gated == ([job.lane] if is_gated else []), f"{name}: {job.wait}"
            if job.phase in (Phase.CHECKING, Phase.MEASURING):
                assert name in state.asked
            if job.phase is Phase.CHECKING and not job.is_stale:
                asker = names.unit_of_checks(job.lane)
                assert asker in state.lanes[job.lane].occupants, f"nobody asks {name}"
            if job.phase in HELD and job.lane in state.lanes and not job.is_unit_gone:
                assert job.unit in state.lanes[job.lane].occupants, f"{name} {job.phase}"
            assert (job.phase in RUNNING_PHASES) == (job.state is JobState.RUNNING)
        for lane in state.lanes.values():
            assert {*lane.line} | lane.gated <= set(state.jobs)
            assert not lane.gated or lane.recheck_sec, "a gate that is never asked again"
        for followers in state.successors.values():
            assert followers <= set(state.jobs)
        assert JobState.QUEUED not in state.ended.values()

    @invariant()
    def pid_1_refuses_nothing_because_of_our_own_units(self) -> None:
        # Units that run under an older configuration may exclude what the new one lets start.
        if hasattr(self, "shell") and not self.is_reconfigured:
            assert not self.shell.refused_for_ours

    @invariant()
    def no_job_is_lost_or_doubled(self) -> None:
        if not hasattr(self, "shell") or self.shell.tasks or self.shell.inbox or self.shell.looks:
            return
        for name in {*self.spool.queue, *self.spool.running, *self.state.jobs}:
            where = self.spool.states(name)
            job = self.state.jobs.get(name)
            assert where, f"{name} has no file, and is {job}"
            assert job, f"{name} is in {where[0]}, and the queue does not know it"
            assert job.state is where[0], f"{name} is in {where}, and {job.phase}"

    # The end

    def _round(self) -> None:
        """Take one step of all that goes on."""
        for _ in range(len(self.shell.tasks)):
            self.shell.go_on(0) if len(self.shell.tasks) == 1 else self.shell.go_on(
                len(self.shell.tasks) - 1
            )
        while self.pid1.news:
            self.shell.hear()
        while self.shell.looks:
            self.shell.look()
        self._turn()

    def teardown(self) -> None:
        if not hasattr(self, "shell") or self.is_broken:
            return
        self.behave()
        for _ in range(150):
            self._round()
            for unit in self.pid1.live():
                if unit.job and not unit.is_dying:
                    self._end(unit, "ok")
                elif unit.lease:
                    self.pid1.exit(unit, ENDS["ok"])
            self._die()
            wake = self.planned.wake_sec
            idle = not (self.shell.tasks or self.shell.inbox or self.pid1.news)
            if idle and wake:
                self.now = max(self.now, wake)
            elif idle:
                break
        self.every_queued_job_has_a_reason_and_no_running_one()
        self.every_job_is_in_exactly_one_place()
        self.no_job_is_lost_or_doubled()
        planned = plan(self.state, self.now)
        for job in self.state.jobs.values():
            why = reason(self.state, job, planned)
            assert why, f"{job.name} is {job.phase} for ever"
            assert why.code in PERSONS, f"{job.name} waits for ever: {why}"
            if why.code is Code.AFTER_NOT_DONE:
                assert self.spool.ended.get(why.blocker) is not JobState.DONE or (
                    why.blocker in self.state.jobs
                )
        for lane in self.state.lanes.values():
            assert not lane.occupants, f"{lane.lane.name} is held by nothing: {lane.occupants}"
            assert not lane.leases
            assert not lane.requests
            assert lane.verdict.word == "free" or lane.line, lane.verdict
        assert not self.state.asked
        assert set(self.state.lanes) == set(self.config.lanes)

    def behave(self) -> None:
        """Have the box do nothing bad from now on."""
        self.verdict.clear()
        self.shell.users.clear()
        self.shell.post(ev.OwnersSeen("gpu", ()))
        self.shell.post(*map(ev.LeaseWithdrawn, self.waiting))
        for lane in ("cpu", "gpu", "net"):
            self._end_stranger(lane)
            self.shell.post(ev.LanePaused(lane, False))
        self.shell.post(ev.Halted(None))
        self._configure(0)


TestBox = Box.TestCase
TestBox.settings = settings(
    PROFILE,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    verbosity=Verbosity.normal,
)
