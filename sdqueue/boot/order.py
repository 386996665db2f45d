"""Which job runs before which, and what systemd does when that has no beginning.

Theory of operation. Jobs of a transaction are ordered by Before=/After= of their units, reversed
where jobs stop (`before()`). The order is checked by a depth-first walk along "runs before". Where
it meets a job that is on its own path, the path between is a cycle. Walking back from its end, the
first job that doesn't matter to the anchor is the *victim*: all jobs of its unit are deleted, and
with each of them every job to which it matters, silently. Then the check starts anew. Where all
jobs of a cycle matter, the whole transaction fails.

Example, a9-jobs After=a9-telemetry, a9-telemetry After=multi-user.target, multi-user.target after
what it wants, so after a9-jobs. The walk mostly comes in at multi-user.target, because nearly
everything is before it. From there: a9-telemetry, a9-jobs, multi-user.target again. Walking back
from a9-jobs, a9-jobs itself is the first that doesn't matter: it goes.

This module re-enacts the walk as it is, one draw at a time. `sdqueue.boot.draws` gets the same
distribution of victims for many draws at less cost; a test compares the two.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sdqueue.boot.graph import Kind
from sdqueue.boot.jobs import JobType, runs_before, runs_before_after
from sdqueue.boot.transaction import Job, Transaction, delete_unit


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle as systemd found it: each unit job runs before the next, the last before the first.

    `victim` is the unit whose jobs were deleted, empty where none could be.
    """

    jobs: tuple[str, ...]
    victim: str


def before(tr: Transaction, unit: str) -> list[str]:
    """The units whose jobs run after the job of `unit`, in the order in which systemd looks."""
    own = tr.head_type(unit)
    if own is None or _ignores_order(tr, unit):
        return []
    return [*_over(tr, unit, own, "Before"), *_over(tr, unit, own, "After")]


def _over(tr: Transaction, unit: str, own: JobType, kind: Kind) -> Iterator[str]:
    compare = runs_before if kind == "Before" else runs_before_after
    for other in tr.order.of((unit, kind), tr.graph.neighbours(unit, kind)):
        type_ = tr.head_type(other)
        if type_ is not None and compare(own, type_) and not _ignores_order(tr, other):
            yield other


def _ignores_order(tr: Transaction, unit: str) -> bool:
    jobs = tr.jobs.get(unit)
    return jobs is not None and jobs[0].ignore_order


def verify_order(tr: Transaction) -> Cycle | None:
    """Find the first cycle of this draw and choose its victim; nothing is deleted yet.

    Re-enacts transaction_verify_order() and transaction_verify_order_one(), transaction.c, v252.
    """
    loop_free: set[str] = set()
    for start in tr.units():
        if start not in loop_free:
            path = _walk(tr, start, loop_free)
            if path:
                return _as_cycle(tr, path)
    return None


def _walk(tr: Transaction, start: str, loop_free: set[str]) -> list[str]:
    """Walk depth first; give the cycle that closes first, else nothing and all is loop-free."""
    path = {start: iter(before(tr, start))}
    while path:
        unit, rest = next(reversed(path.items()))
        for other in rest:
            if other in path:
                units = list(path)
                return units[units.index(other) :]
            if other not in loop_free:
                path[other] = iter(before(tr, other))
                break
        else:
            loop_free.add(unit)
            del path[unit]
    return []


def _as_cycle(tr: Transaction, units: list[str]) -> Cycle:
    jobs = tuple(f"{unit}/{tr.head_type(unit)}" for unit in units)
    return Cycle(jobs, choose_victim(tr, units))


def choose_victim(tr: Transaction, units: list[str]) -> str:
    """The unit whose jobs are deleted to break a cycle; empty where all matter.

    `units` in the order of running, the one at which the walk closed the cycle first.
    """
    deletable = (u for u in reversed(units) if u in tr.jobs and not tr.matters(u))
    return next(deletable, "")


def break_cycle(tr: Transaction, cycle: Cycle) -> list[Job]:
    """Delete the victim's jobs and all to which they matter; the victim's own come first."""
    gone = delete_unit(tr, cycle.victim)
    return sorted(gone, key=lambda job: job.unit != cycle.victim)
