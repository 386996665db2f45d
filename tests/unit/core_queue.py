"""A queue without an outside, for tests of the core: say what happens, look at what follows."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.decide import step
from sdqueue.core.lease import Lease
from sdqueue.core.model import FORGET, Job, Memory, Phase, QueueState, Reason, new_state
from sdqueue.core.plan import plan, reason
from sdqueue.core.results import RunEnd
from sdqueue.core.spec import Config, JobSpec, Lane
from sdqueue.words import names

DONE = RunEnd(job_result="done", service_result="success", main_code="exited")
FAILED = RunEnd(job_result="failed", service_result="exit-code", main_code="exited", main_status=7)
STOPPED = RunEnd(job_result="canceled", service_result="signal", main_code="killed", main_status=15)

Wanted = TypeVar("Wanted", bound=act.Action)


def job(name: str, lane: str = "cpu", **keys: Any) -> JobSpec:
    """Make a job's spec as its file would give it."""
    return JobSpec(name=name, lane=lane, **keys)


def lanes(*wanted: Lane) -> Config:
    """Make a configuration with these lanes."""
    return Config(lanes={lane.name: lane for lane in wanted})


UNWATCHED = lanes(*(lane._replace(devices=()) for lane in Config().lanes.values()))
"""The default lanes, as on a box where nothing tells who else uses them."""


class Queue:
    """A state, a clock that only tests turn, and all actions so far."""

    def __init__(self, config: Config | None = None, *, starting: bool = False) -> None:
        self.state: QueueState = new_state(config or UNWATCHED)
        self.now = 1_000_000.0
        self.actions: list[act.Action] = []
        if not starting:
            self.tell(ev.Halted(None))

    def tell(self, *events: ev.Event) -> list[act.Action]:
        """Have events happen at once; give what the core wants done because of them."""
        actions, _ = step(self.state, events, self.now)
        self.actions += actions
        return actions

    def wait(self, seconds: float) -> list[act.Action]:
        """Let time pass, and the queue notice."""
        self.now += seconds
        return self.tell(ev.Tick())

    def add(self, *specs: JobSpec, memory: Memory = FORGET) -> list[act.Action]:
        """Put files into queue/, all at once."""
        return self.tell(*(ev.FileQueued(spec.name, spec, memory=memory) for spec in specs))

    def begin(self, name: str) -> list[act.Action]:
        """Have the shell and PID 1 take the start that the core asked for."""
        return self.tell(ev.Claimed(name, 1), ev.Started(name, 7, "i" * 32, 99))

    def end(self, name: str, end: RunEnd = DONE) -> list[act.Action]:
        """End a run, and have PID 1 forget its unit; what must be settled is not settled yet."""
        has_done_if = bool(self[name].spec and self[name].spec.done_if)  # type: ignore[union-attr]
        end = replace(end, has_done_if=has_done_if, ended_sec=self.now)
        return self.tell(ev.Ended(name, end), self.gone(name))

    def settle(self, actions: Iterable[act.Action]) -> list[act.Action]:
        """Say of all that `actions` want written that it is on disk."""
        wanted = (act.Settle, act.Skip, act.Park)
        return self.tell(
            *(ev.Settled(action.name, action) for action in actions if isinstance(action, wanted))
        )

    def ask(self, lane: str, who: str = "engine", *, wait: bool = False) -> list[act.Action]:
        """Ask for a lease, whose id is who asks."""
        lease = Lease(who, lane, who, "to serve", 1000, 77, 5, comm=who, since_sec=self.now)
        return self.tell(ev.LeaseAsked(lease, wait))

    def lend(self, lane: str, who: str = "engine") -> list[act.Action]:
        """Ask for a lease and have PID 1 take it."""
        actions = self.ask(lane, who)
        return actions + self.tell(ev.LeaseStarted(names.unit_of_lease(lane, who)))

    def let_go(self, lane: str, who: str = "engine") -> list[act.Action]:
        """Have a lease end."""
        return self.tell(ev.UnitGone(names.unit_of_lease(lane, who)))

    def run(self, name: str, end: RunEnd = DONE) -> list[act.Action]:
        """Have a started job run to its end."""
        actions = [*self.begin(name), *self.end(name, end)]
        return actions + self.settle(actions)

    @staticmethod
    def gone(name: str) -> ev.UnitGone:
        return ev.UnitGone(names.unit_of_job(name))

    @staticmethod
    def checks_gone(lane: str) -> ev.UnitGone:
        return ev.UnitGone(names.unit_of_checks(lane))

    def why(self, name: str) -> Reason | None:
        """Ask why a job does not run."""
        return reason(self.state, self[name], plan(self.state, self.now))

    def code(self, name: str) -> str:
        """Ask for the code of the reason for which a job does not run; empty if it runs."""
        why = self.why(name)
        return str(why.code) if why else ""

    def phase(self, name: str) -> Phase | None:
        return self.state.jobs[name].phase if name in self.state.jobs else None

    def __getitem__(self, name: str) -> Job:
        return self.state.jobs[name]


def started(actions: Iterable[act.Action]) -> list[str]:
    """Name the jobs that are to start."""
    return [action.name for action in only(act.Start, actions)]


def only(kind: type[Wanted], actions: Iterable[act.Action]) -> list[Wanted]:
    """Pick the actions of one kind."""
    return [action for action in actions if isinstance(action, kind)]


def logged(event: str, actions: Iterable[act.Action]) -> list[act.Log]:
    """Pick the events of one name that are to be logged."""
    return [action for action in only(act.Log, actions) if action.event == event]
