"""Whether the order of hash tables decides more than which cycle is met first.

It does where a requirement couldn't be added: what its unit pulled in before that stays, and what
would have come after it doesn't come. And it does where a unit on the way to a cycle has both a
start and a stop job: the newest counts in ordering, and which is the newest depends on the order.
Where garbage is collected it decides in the same way which of the two goes.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from sdqueue.boot.components import leading_to, loops
from sdqueue.boot.hashorder import HashOrder
from sdqueue.boot.jobs import STOPS, JobType, runs_before, runs_before_after
from sdqueue.boot.transaction import Transaction

T = TypeVar("T", bound=str)
MAX_TURNED = 8
OTHER_ORDERS = 6
"""How many orders are tried where a requirement that fails makes the order count."""


@dataclass(slots=True)
class Reversed(HashOrder):
    """Every table the other way round: what came before a failing requirement now comes after."""

    def of(self, table: object, members: Iterable[T]) -> list[T]:  # noqa: ARG002
        """The members, last inserted first."""
        return list(members)[::-1]


def is_decided_by_luck(
    tr: Transaction, prepare: Callable[[Transaction], object], *, collects_garbage: bool
) -> bool:
    """Tell whether another order of tables could lead to other jobs, links, or newest jobs.

    `prepare` builds the same transaction anew in the one that it is given.
    """
    if (tr.order_decided or collects_garbage) and _differs_elsewhere(tr, prepare):
        return True
    torn = [unit for unit in tr.jobs if len({job.type in STOPS for job in tr.jobs[unit]}) > 1]
    return bool(torn) and any(
        not _on_the_way(tr, heads).isdisjoint(torn) for heads in _heads(tr, torn)
    )


def _differs_elsewhere(tr: Transaction, prepare: Callable[[Transaction], object]) -> bool:
    """Build the transaction in some other orders; tell whether one has other jobs."""
    lucks: list[HashOrder] = [Reversed()]
    if tr.order_decided:
        lucks += [HashOrder(Random(seed)) for seed in range(OTHER_ORDERS)]
    for luck in lucks:
        other = Transaction(tr.graph, tr.version, luck, tr.installed)
        prepare(other)
        if _jobs(other) != _jobs(tr):
            return True
    return False


def _jobs(tr: Transaction) -> dict[tuple[str, str], frozenset[tuple[str, bool, bool]]]:
    """The jobs, each with what pulls it in: a failing requirement leaves some links out, too."""
    return {
        (job.unit, job.type): frozenset(
            (str(link.subject), link.matters, link.conflicts) for link in job.pulled_by
        )
        for job in tr
    }


def _heads(tr: Transaction, torn: list[str]) -> Iterator[dict[str, JobType]]:
    """What each unit could be ordered by; not all ways, but all alike, and each one turned."""
    base = {unit: tr.jobs[unit][0].type for unit in tr.jobs}
    starts: dict[str, JobType] = base | dict.fromkeys(torn, "start")
    yield starts
    yield base | dict.fromkeys(torn, "stop")
    for unit in torn[:MAX_TURNED]:
        yield starts | {unit: "stop"}


def _on_the_way(tr: Transaction, heads: dict[str, JobType]) -> set[str]:
    """The units that lead to a cycle, ordered by these jobs."""
    out = {unit: _after(tr, unit, heads) for unit in heads}
    into: dict[str, list[str]] = {}
    for unit, others in out.items():
        for other in others:
            into.setdefault(other, []).append(unit)
    return leading_to((u for loop in loops(out, out.__getitem__) for u in loop), into)


def _after(tr: Transaction, unit: str, heads: dict[str, JobType]) -> list[str]:
    near, own = tr.graph.neighbours, heads[unit]
    ways = ((runs_before, near(unit, "Before")), (runs_before_after, near(unit, "After")))
    return [
        other
        for compare, others in ways
        for other in others
        if other in heads and compare(own, heads[other])
    ]
