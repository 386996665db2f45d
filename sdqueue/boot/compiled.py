"""A prepared transaction in numbers, and what is left of it as victims fall.

Theory of operation. The walk that looks for cycles (`sdqueue.boot.order`) can only ever meet one
from a unit that leads to one. Call these units *relevant*: the members of strongly connected
components of more than one unit, and everything before them. From a relevant unit every relevant
neighbour leads to a cycle, so a walk among relevant units never has to turn back before it closes
one; visits elsewhere leave no trace. So the random part of systemd's check is no more than: which
relevant unit is first in the table of jobs, and which relevant neighbour comes first at each step.

A `State` is a transaction after some victims. Draws share the states that they have in common.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sdqueue.boot.components import leading_to, loops
from sdqueue.boot.graph import Kind
from sdqueue.boot.jobs import STOPS, runs_before, runs_before_after
from sdqueue.boot.transaction import Transaction

Steps = tuple[list[int], list[int]]
"""Where a walk can go from a unit: first one of the units it is Before=, then After=."""


@dataclass(slots=True, eq=False)
class State:
    """What is left of a transaction once `dead` jobs are gone: steps by relevant unit."""

    dead: frozenset[int]
    steps: dict[int, Steps]
    loops: list[list[int]]
    starts: list[int] = field(init=False)
    after: dict[int, "State"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.starts = list(self.steps)


@dataclass(slots=True, eq=False)
class Compiled:
    """A prepared transaction: units and jobs by number, and its states by their dead jobs."""

    names: list[str]
    matters: list[bool]
    jobs: list[str]
    jobs_of: list[list[int]]
    unit_of: list[int]
    anchor: int
    lean_on: list[list[int]]
    """For each job the jobs to which it matters: they go with it."""
    pulled_by: list[list[int]]
    collects_garbage: bool
    steps: dict[int, Steps]
    states: dict[frozenset[int], State] = field(default_factory=dict)
    looked_at: int = 0
    """How many units have been looked at to make states: the measure of what draws cost."""

    def first(self) -> State:
        """The state before any victim."""
        return self._state(frozenset(), self.steps)

    def without(self, state: State, unit: int) -> State:
        """The state once the jobs of a victim's unit are deleted.

        Re-enacts transaction_delete_unit() and collect_garbage(), transaction.c, v252.
        """
        known = state.after.get(unit)
        if known is None:
            dead = set(state.dead)
            self.delete(dead, self.jobs_of[unit])
            known = state.after[unit] = self._state(frozenset(dead), state.steps)
        return known

    def delete(self, dead: set[int], jobs: Iterable[int]) -> None:
        """Add these jobs to the dead, and with them what leans on them or isn't wanted any more."""
        self._kill(dead, jobs)
        if self.collects_garbage:
            self._collect_garbage(dead)

    def mattering_loops(self) -> list[list[str]]:
        """Cycles that no deletion can break: of such as matter to the anchor, all of them."""
        among = [unit for unit in self.steps if self.matters[unit]]
        found = loops(among, lambda unit: self._next(unit, self.matters))
        return [[self.names[unit] for unit in loop] for loop in found]

    def _next(self, unit: int, wanted: list[bool]) -> list[int]:
        return [other for way in self.steps[unit] for other in way if wanted[other]]

    def _kill(self, dead: set[int], jobs: Iterable[int]) -> None:
        todo = [job for job in jobs if job not in dead]
        while todo:
            job = todo.pop()
            if job not in dead:
                dead.add(job)
                todo += self.lean_on[job]

    def _collect_garbage(self, dead: set[int]) -> None:
        """Add to the dead each unit's newest job that nobody pulls in, again and again."""
        again = True
        while again:
            heads = (next((j for j in jobs if j not in dead), None) for jobs in self.jobs_of)
            idle = [
                head
                for head in heads
                if head not in (None, self.anchor) and dead.issuperset(self.pulled_by[head])
            ]
            dead.update(idle)
            again = bool(idle)

    def _state(self, dead: frozenset[int], steps: dict[int, Steps]) -> State:
        if dead not in self.states:
            self.states[dead] = State(dead, *self._relevant(dead, steps))
        return self.states[dead]

    def _relevant(
        self, dead: frozenset[int], steps: dict[int, Steps]
    ) -> tuple[dict[int, Steps], list[list[int]]]:
        self.looked_at += len(steps)
        alive = {unit for unit in steps if not dead.issuperset(self.jobs_of[unit])}
        out = {u: [o for way in steps[u] for o in way if o in alive] for u in alive}
        found = loops(sorted(alive), out.__getitem__)
        into: dict[int, list[int]] = {}
        for unit, others in out.items():
            for other in others:
                into.setdefault(other, []).append(unit)
        keep = leading_to((unit for loop in found for unit in loop), into)
        return {
            unit: ([o for o in first if o in keep], [o for o in second if o in keep])
            for unit, (first, second) in steps.items()
            if unit in keep
        }, found


def compile_(tr: Transaction, *, collects_garbage: bool) -> Compiled:
    """Number the jobs and units of a prepared transaction and note who runs before whom."""
    units = {unit: at for at, unit in enumerate(tr.jobs)}
    jobs = {job: at for at, job in enumerate(tr)}
    assert tr.anchor is not None
    return Compiled(
        names=list(units),
        matters=[tr.matters(unit) for unit in units],
        jobs=[str(job) for job in jobs],
        jobs_of=[[jobs[job] for job in tr.jobs[unit]] for unit in units],
        unit_of=[units[job.unit] for job in jobs],
        anchor=jobs[tr.anchor],
        lean_on=[[jobs[b.subject] for b in job.pulled_by if b.matters] for job in jobs],
        pulled_by=[[jobs[b.subject] for b in job.pulled_by] for job in jobs],
        collects_garbage=collects_garbage,
        steps={
            at: (_over(tr, unit, "Before", units), _over(tr, unit, "After", units))
            for unit, at in units.items()
        },
    )


def _over(tr: Transaction, unit: str, kind: Kind, units: dict[str, int]) -> list[int]:
    head = tr.jobs[unit][0]
    if head.ignore_order or (kind == "After" and head.type not in STOPS):
        return []
    compare = runs_before if kind == "Before" else runs_before_after
    return [
        units[other]
        for other in tr.graph.neighbours(unit, kind)
        if other in units and compare(head.type, tr.jobs[other][0].type)
    ]
