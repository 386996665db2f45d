"""One whole transaction, one draw: from the request to the jobs that would be queued.

Theory of operation: ten steps, and these are all: pull in; mark what matters to the anchor; (mode
fail only) minimize impact; drop what is redundant; collect garbage, unless isolating, and verify
the order, again after each cycle broken; merge, again after each job that couldn't be; drop what
is redundant once more; check that nothing irreversible is queued against it; then it is applied,
which here means: returned. The order is verified before merging, so of several jobs of one unit
only the newest is looked at (systemd#43002).

Re-enacts transaction_activate(), src/core/transaction.c, and do_queue_default_job(), main.c, v252.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sdqueue.boot import order, steps
from sdqueue.boot.graph import Graph
from sdqueue.boot.hashorder import HashOrder
from sdqueue.boot.jobs import JobType
from sdqueue.boot.pull import Mode, Refusal, add_job
from sdqueue.boot.transaction import Transaction

CYCLIC = "Transaction order is cyclic. See system logs for details."


@dataclass(slots=True)
class Outcome:
    """What became of a request: `error` is empty where it was applied.

    `jobs` are queued. Of those that would have been, `deleted` were the victims of cycles,
    `silent` went with a victim, `garbage` was wanted by these only, `conflicting` lost against
    another job of the same unit. All in systemd's spelling.
    """

    error: str = ""
    refusal: Refusal | None = None
    jobs: frozenset[str] = frozenset()
    cycles: list[order.Cycle] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    garbage: list[str] = field(default_factory=list)
    conflicting: list[str] = field(default_factory=list)


def boot_mode(graph: Graph, target: str) -> Mode:
    """How PID 1 starts the default target: it isolates where that is allowed."""
    return "isolate" if graph.node(target).allow_isolate else "replace"


def prepare(tr: Transaction, type_: JobType, unit: str, mode: Mode) -> Refusal | None:
    """Do the steps before verifying the order; say why if the request can't be met at all."""
    refusal = add_job(tr, type_, unit, mode)
    if refusal is None:
        steps.find_jobs_that_matter_to_anchor(tr)
        if mode == "fail":
            steps.minimize_impact(tr)
        steps.drop_redundant(tr)
        if mode != "isolate":
            steps.collect_garbage(tr)
    return refusal


def activate(
    graph: Graph,
    unit: str,
    *,
    type_: JobType = "start",
    mode: Mode,
    version: int,
    luck: HashOrder | None = None,
    installed: Mapping[str, JobType] | None = None,
    irreversible: frozenset[str] = frozenset(),
) -> Outcome:
    """Make the request and tell what comes of it, in one draw of the order of hash tables."""
    tr = Transaction(graph, version, luck or HashOrder(), installed or {})
    outcome = Outcome()
    outcome.refusal = prepare(tr, type_, unit, mode)
    if outcome.refusal:
        outcome.error = f"Unit {unit}: {outcome.refusal}"
        return outcome
    outcome.error = (
        make_acyclic(tr, mode, outcome)
        or _merge(tr, mode, outcome)
        or steps.is_destructive(tr, irreversible=irreversible, fail=mode == "fail")
    )
    if not outcome.error:
        outcome.jobs = frozenset(map(str, tr))
    return outcome


def make_acyclic(tr: Transaction, mode: Mode, outcome: Outcome) -> str:
    """Break cycles until there is none; give the error if one can't be broken."""
    while (cycle := order.verify_order(tr)) is not None:
        outcome.cycles.append(cycle)
        if not cycle.victim:
            return CYCLIC
        gone = order.break_cycle(tr, cycle)
        outcome.deleted.append(str(gone[0]))
        outcome.silent += map(str, gone[1:])
        if mode != "isolate":
            outcome.garbage += map(str, steps.collect_garbage(tr))
    return ""


def _merge(tr: Transaction, mode: Mode, outcome: Outcome) -> str:
    gone, error = steps.merge_jobs(tr, gc=mode != "isolate")
    outcome.conflicting += map(str, gone)
    if not error:
        steps.drop_redundant(tr)
    return error
