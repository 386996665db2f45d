"""The steps of a transaction besides pulling in and ordering, each under systemd's name.

Re-enacts src/core/transaction.c, v252 to v262. All work on the transaction in place, as there.
"""

from sdqueue.boot.jobs import (
    JobType,
    is_conflicting,
    is_mergeable,
    is_redundant,
    merge_and_collapse,
)
from sdqueue.boot.transaction import Job, Transaction, delete_job

UNMERGEABLE_OF_MATTERING_FIRST_SINCE = 258


def find_jobs_that_matter_to_anchor(tr: Transaction) -> None:
    """Mark each job that the anchor reaches over links that matter, the anchor with them.

    Re-enacts transaction_find_jobs_that_matter_to_anchor(), v252.
    """
    todo = [tr.anchor] if tr.anchor else []
    while todo:
        job = todo.pop()
        job.matters_to_anchor = True
        todo += [
            out.object for out in job.pulls if out.matters and not out.object.matters_to_anchor
        ]


def minimize_impact(tr: Transaction) -> None:
    """Drop what would stop something running or change a queued job and doesn't matter.

    Re-enacts transaction_minimize_impact(), v252; only mode fail does this.
    """
    for job in list(tr):
        if job.matters_to_anchor:
            continue
        installed = tr.installed.get(job.unit)
        stops = job.type == "stop" and not tr.graph.node(job.unit).inactive
        if stops or (installed is not None and is_conflicting(job.type, installed)):
            delete_job(tr, job, delete_dependencies=True)


def drop_redundant(tr: Transaction) -> None:
    """Drop all jobs of each unit whose jobs all would do nothing; the anchor's unit is kept.

    Re-enacts transaction_drop_redundant(), v252.
    """
    for unit in list(tr.jobs):
        if all(_redundant(tr, job) for job in tr.jobs[unit]):
            for job in list(tr.jobs[unit]):
                delete_job(tr, job, delete_dependencies=False)


def _redundant(tr: Transaction, job: Job) -> bool:
    installed = tr.installed.get(job.unit)
    return (
        job is not tr.anchor
        and is_redundant(job.type, tr.graph.node(job.unit).active_state)
        and not (installed is not None and is_conflicting(job.type, installed))
    )


def collect_garbage(tr: Transaction) -> list[Job]:
    """Drop each unit's newest job that no other job pulls in, again and again; name them.

    Only the newest job of a unit is looked at: an older one stays, pulled in or not, until those
    before it are gone. The anchor stays. Isolating doesn't do this.
    Re-enacts transaction_collect_garbage(), v252.
    """
    gone: list[Job] = []
    todo = list(tr.jobs)
    while todo:
        unit = todo.pop()
        head = tr.jobs[unit][0] if unit in tr.jobs else None
        if head is None or head.pulled_by or head is tr.anchor:
            continue
        todo += [unit, *dict.fromkeys(out.object.unit for out in head.pulls)]
        gone += delete_job(tr, head, delete_dependencies=True)
    return gone


def merge_jobs(tr: Transaction, *, gc: bool) -> tuple[list[Job], str]:
    """Make one job of each unit's several; give the jobs that had to go and the error, if any.

    Re-enacts transaction_merge_jobs() and the loop around it in transaction_activate(), v252.
    """
    gone: list[Job] = []
    while (pair := _unmergeable(tr)) is not None:
        victim = choose_unmergeable_job(tr.jobs[pair[0].unit])
        if victim is None:
            a, b = pair
            return gone, (
                f"Transaction contains conflicting jobs '{a.type}' and '{b.type}' for {a.unit}. "
                "Probably contradicting requirement dependencies configured."
            )
        gone += delete_job(tr, victim, delete_dependencies=True)
        if gc:
            gone += collect_garbage(tr)
    for unit in list(tr.jobs):
        _merge_unit(tr, tr.jobs[unit])
    return gone, ""


def choose_unmergeable_job(jobs: list[Job]) -> Job | None:
    """Of one unit's jobs, find the first two that can't be merged and say which of them goes.

    None: both matter, so neither may. Re-enacts delete_one_unmergeable_job(), v252.
    """
    for at, j in enumerate(jobs):
        for k in jobs[at + 1 :]:
            if not is_mergeable(j.type, k.type):
                return _loser(j, k)
    return None


def _loser(j: Job, k: Job) -> Job | None:
    if j.matters_to_anchor or k.matters_to_anchor:
        if not j.matters_to_anchor:
            return j
        return None if k.matters_to_anchor else k
    if j.type == "stop":
        return k if _is_conflicted_by(j) else j
    if k.type == "stop":
        return j if _is_conflicted_by(k) else k
    return j


def _is_conflicted_by(job: Job) -> bool:
    return any(back.conflicts for back in job.pulled_by)


def _unmergeable(tr: Transaction) -> tuple[Job, Job] | None:
    """The first unit's jobs that can't be merged, units that matter first from v258 on."""
    units = [unit for unit in tr.units() if len(tr.jobs[unit]) > 1]
    if tr.version >= UNMERGEABLE_OF_MATTERING_FIRST_SINCE:
        units.sort(key=lambda unit: not tr.matters(unit))
    for unit in units:
        head, *rest = tr.jobs[unit]
        type_: JobType | None = head.type
        for job in rest:
            assert type_ is not None
            merged = merge_and_collapse(type_, job.type, tr.graph.node(unit))
            if merged is None:
                return Job(unit, type_), job
            type_ = merged
    return None


def _merge_unit(tr: Transaction, jobs: list[Job]) -> None:
    kept = next((job for job in jobs if job is tr.anchor), jobs[0])
    type_: JobType | None = jobs[0].type
    for job in jobs[1:]:
        assert type_ is not None
        type_ = merge_and_collapse(type_, job.type, tr.graph.node(kept.unit))
    assert type_ is not None
    for job in list(jobs):
        if job is not kept:
            _merge_and_delete_job(tr, kept, job)
    kept.type = type_


def _merge_and_delete_job(tr: Transaction, kept: Job, other: Job) -> None:
    """Re-enacts transaction_merge_and_delete_job(), v252."""
    kept.matters_to_anchor |= other.matters_to_anchor
    for out in other.pulls:
        out.subject = kept
    for back in other.pulled_by:
        back.object = kept
    kept.pulls += other.pulls
    kept.pulled_by += other.pulled_by
    other.pulls, other.pulled_by = [], []
    delete_job(tr, other, delete_dependencies=True)


def is_destructive(tr: Transaction, *, irreversible: frozenset[str], fail: bool) -> str:
    """Say which queued job stands against this transaction; empty where none does.

    `irreversible` names the units whose queued job may not be replaced. Re-enacts
    transaction_is_destructive(), v252.
    """
    for job in tr:
        installed = tr.installed.get(job.unit)
        if installed is None or not is_conflicting(installed, job.type):
            continue
        if fail or job.unit in irreversible:
            return (
                f"Transaction for {tr.anchor} is destructive ({job.unit} has '{installed}' job "
                f"queued, but '{job.type}' is included in transaction)."
            )
    return ""
