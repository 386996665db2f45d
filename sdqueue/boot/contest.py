"""Jobs of one unit that can't be merged: which of them goes, on a compiled transaction.

The same as `sdqueue.boot.steps.merge_jobs()`, in numbers and for many draws. Which unit is looked
at first is random, and that can decide the end: of two units that conflict with each other the
first one looked at loses its start, and with it goes the stop that the other was to get.
"""

from dataclasses import dataclass
from random import Random

from sdqueue.boot.compiled import Compiled
from sdqueue.boot.jobs import JobType, is_mergeable
from sdqueue.boot.steps import UNMERGEABLE_OF_MATTERING_FIRST_SINCE
from sdqueue.boot.transaction import Job, Transaction


@dataclass(slots=True, eq=False)
class Contest:
    """What merging needs to know of a transaction; `units` are those with unmergeable jobs."""

    types: list[JobType]
    matters: list[bool]
    conflicted_by: list[list[int]]
    units: list[int]
    mattering_first: bool

    def settle(self, plan: Compiled, dead: set[int], rng: Random) -> tuple[set[int], str]:
        """Delete jobs until all can be merged; give those gone and the error, if it can't be done.

        Re-enacts transaction_merge_jobs() and delete_one_unmergeable_job(), transaction.c, v252.
        """
        before = frozenset(dead)
        order = rng.sample(self.units, len(self.units))
        if self.mattering_first:
            order.sort(key=lambda unit: not plan.matters[unit])
        while (pair := self._first_pair(plan, order, dead)) is not None:
            loser = self._loser(*pair, dead)
            if loser is None:
                return set(dead - before), self._error(plan, *pair)
            plan.delete(dead, [loser])
        return set(dead - before), ""

    def _first_pair(
        self, plan: Compiled, order: list[int], dead: set[int]
    ) -> tuple[int, int] | None:
        for unit in order:
            alive = [job for job in plan.jobs_of[unit] if job not in dead]
            for at, j in enumerate(alive):
                for k in alive[at + 1 :]:
                    if not is_mergeable(self.types[j], self.types[k]):
                        return j, k
        return None

    def _loser(self, j: int, k: int, dead: set[int]) -> int | None:
        if self.matters[j] or self.matters[k]:
            if not self.matters[j]:
                return j
            return None if self.matters[k] else k
        stop, other = (j, k) if self.types[j] == "stop" else (k, j)
        if self.types[stop] != "stop":
            return j
        return stop if dead.issuperset(self.conflicted_by[stop]) else other

    def _error(self, plan: Compiled, j: int, k: int) -> str:
        unit = plan.names[plan.unit_of[j]]
        return (
            f"Transaction contains conflicting jobs '{self.types[j]}' and '{self.types[k]}' for "
            f"{unit}. Probably contradicting requirement dependencies configured."
        )


def contest(tr: Transaction) -> Contest:
    """Note what merging will look at; jobs and units are numbered as `compile_()` does."""
    numbers = {job: at for at, job in enumerate(tr)}
    return Contest(
        types=[job.type for job in numbers],
        matters=[job.matters_to_anchor for job in numbers],
        conflicted_by=[[numbers[b.subject] for b in j.pulled_by if b.conflicts] for j in numbers],
        units=[at for at, jobs in enumerate(tr.jobs.values()) if _unmergeable(jobs)],
        mattering_first=tr.version >= UNMERGEABLE_OF_MATTERING_FIRST_SINCE,
    )


def _unmergeable(jobs: list[Job]) -> bool:
    return any(not is_mergeable(a.type, b.type) for a in jobs for b in jobs)
