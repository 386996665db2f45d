"""Which jobs a job pulls in: the first half of building a transaction.

Theory of operation. `add_job()` puts the anchor in and follows the dependency atoms of the unit,
depth first, as PID 1 does. A job that can't be added is an error of the job that wanted it; whether
that one then fails as well depends on the atom (`RULES`). systemd recurses; here each level is a
generator that yields what it wants to be pulled in and is sent the error, so that a chain of
thousands of units needs no deep stack.

Example: multi-user.target/start wants web.service/start, that requires db.service, which is masked.
The pull of db.service answers "masked". From v254 web.service/start is taken out again and answers
"masked" too, which multi-user.target ignores, because it only wants it. Before v254
web.service/start stays: it will start without db.service.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Literal

from sdqueue.boot.atoms import Atom, kinds_with
from sdqueue.boot.graph import Graph, Node
from sdqueue.boot.jobs import JobType, collapse, is_applicable
from sdqueue.boot.transaction import Job, Transaction, add_one_job, delete_job, link

Mode = Literal["replace", "isolate", "fail", "ignore-requirements", "ignore-dependencies"]
Refusal = Literal["not-found", "bad-setting", "error", "masked", "not-applicable"]

FAILS_AGAIN_SINCE = 254
"""From here on a job whose requirement can't be added is deleted again (systemd#11338)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way in which a start job pulls in another job."""

    atom: Atom
    job: JobType
    matters: bool
    conflicts: bool = False
    ignored: bool = False


RULES: tuple[Rule, ...] = (
    Rule("pull-in-start", "start", matters=True),
    Rule("pull-in-start-ignored", "start", matters=False, ignored=True),
    Rule("pull-in-verify", "verify-active", matters=True),
    Rule("pull-in-stop", "stop", matters=True, conflicts=True),
    Rule("pull-in-stop-ignored", "stop", matters=False, ignored=True),
)
"""In the order in which systemd follows them."""


@dataclass(frozen=True, slots=True)
class _Pull:
    unit: str
    job: JobType
    by: Job | None
    matters: bool = False
    conflicts: bool = False
    ignore_requirements: bool = False
    ignore_order: bool = False
    graceful: bool = False


_Pulling = Generator[_Pull, Refusal | None, Refusal | None]


def add_job(tr: Transaction, type_: JobType, unit: str, mode: Mode) -> Refusal | None:
    """Put the anchor and all it leads to into an empty transaction; say why if it can't be.

    Re-enacts the beginning of manager_add_job(), src/core/manager.c, v252.
    """
    pull = _Pull(
        tr.graph.id(unit),
        collapse(type_, tr.graph.node(unit)),
        None,
        ignore_requirements=mode in ("ignore-requirements", "ignore-dependencies"),
        ignore_order=mode == "ignore-dependencies",
    )
    refusal = _run(tr, pull)
    if refusal is None and mode == "isolate":
        _add_isolate_jobs(tr)
    return refusal


def refusal_of(node: Node, job: JobType) -> Refusal | None:
    """Why a job of that type can't be added for this unit, if it can't."""
    if job != "stop" and node.load_state != "loaded":
        return node.load_state
    return None if is_applicable(job, node) else "not-applicable"


def _add_isolate_jobs(tr: Transaction) -> None:
    """Stop what is active and not wanted. Re-enacts transaction_add_isolate_jobs(), v252."""
    for node in list(tr.graph.nodes.values()):
        if not (node.ignore_on_isolate or node.inactive or node.name in tr.jobs):
            _run(tr, _Pull(node.name, "stop", tr.anchor, matters=True))


def _run(tr: Transaction, first: _Pull) -> Refusal | None:
    stack: list[_Pulling] = [_add_job_and_dependencies(tr, first)]
    answer: Refusal | None = None
    fresh = True
    while stack:
        try:
            wanted = next(stack[-1]) if fresh else stack[-1].send(answer)
            stack.append(_add_job_and_dependencies(tr, wanted))
            fresh = True
        except StopIteration as done:
            stack.pop()
            answer, fresh = done.value, False
    return answer


def _add_job_and_dependencies(tr: Transaction, pull: _Pull) -> _Pulling:
    """Add one job, the link to what pulled it in, and then all that it pulls in itself.

    Re-enacts transaction_add_job_and_dependencies(), src/core/transaction.c, v252 and v254.
    Differs: units that follow each other (devices) and reloads aren't looked at.
    """
    refusal = refusal_of(tr.graph.node(pull.unit), pull.job)
    if refusal:
        return refusal
    job, new = add_one_job(tr, pull.job, pull.unit)
    job.ignore_order |= pull.ignore_order
    if pull.by is None:
        tr.anchor = job
    else:
        link(pull.by, job, matters=pull.matters, conflicts=pull.conflicts)
    if not new or pull.ignore_requirements or pull.job == "nop":
        return None
    if pull.job in ("start", "restart"):
        refusal = yield from _pull_in(tr, job, pull)
        if refusal:
            tr.order_decided = True
            if tr.version >= FAILS_AGAIN_SINCE:
                delete_job(tr, job, delete_dependencies=False)
            return refusal
    if pull.job in ("stop", "restart"):
        return (yield from _propagate_stop(tr, job, pull))
    return None


def _pull_in(tr: Transaction, job: Job, pull: _Pull) -> _Pulling:
    for rule in RULES:
        for unit in in_order(tr, job.unit, rule.atom):
            refusal = yield _Pull(
                unit,
                rule.job,
                job,
                rule.matters,
                rule.conflicts,
                ignore_order=pull.ignore_order,
            )
            if refusal and refusal != "not-applicable" and not rule.ignored:
                return refusal
    return None


def _propagate_stop(tr: Transaction, job: Job, pull: _Pull) -> _Pulling:
    asked: JobType = "stop" if pull.job == "stop" else "try-restart"
    base = _Pull("", "stop", job, matters=True, ignore_order=pull.ignore_order)
    for unit in in_order(tr, job.unit, "propagate-stop"):
        type_ = collapse(asked, tr.graph.node(unit))
        if type_ != "nop":
            refusal = yield replace(base, unit=unit, job=type_)
            if refusal and refusal != "not-applicable":
                return refusal
    if pull.by is None or pull.graceful:
        for unit in in_order(tr, job.unit, "propagate-stop-graceful"):
            type_ = _propagate_stop_graceful(tr, unit)
            if type_ != "nop":
                refusal = yield replace(base, unit=unit, job=type_, graceful=True)
                if refusal and refusal != "not-applicable":
                    return refusal
    return None


def _propagate_stop_graceful(tr: Transaction, unit: str) -> JobType:
    """Re-enacts job_type_propagate_stop_graceful(), src/core/transaction.c, v254."""
    types = {job.type for job in tr.jobs.get(unit, ())}
    if types & {"stop", "restart"}:
        return "nop"
    return "restart" if "start" in types else "stop"


def in_order(tr: Transaction, unit: str, atom: Atom) -> list[str]:
    """The units to which `unit` has the atom, in the order in which systemd meets them."""
    graph: Graph = tr.graph
    kinds = kinds_with(atom, tr.version)
    if len(kinds) == 1:
        return tr.order.of((unit, kinds[0]), graph.neighbours(unit, kinds[0]))
    found: dict[str, None] = {}
    for kind in tr.order.of(unit, kinds):
        found |= dict.fromkeys(tr.order.of((unit, kind), graph.neighbours(unit, kind)))
    return list(found)
