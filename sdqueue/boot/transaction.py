"""A transaction: the unit jobs that one request leads to, and why each of them is there.

A job is linked to the jobs that it pulled in (`pulls`) and to those that pulled it in
(`pulled_by`); a link that *matters* means: if the pulled job goes, the pulling one goes as well.
A unit may have several jobs until they are merged; the newest stands first, and that one is all
that the check of the ordering looks at.

Re-enacts Transaction, Job and JobDependency, src/core/transaction.c and job.c, v252 to v262.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sdqueue.boot.graph import Graph
from sdqueue.boot.hashorder import HashOrder
from sdqueue.boot.jobs import JobType


@dataclass(slots=True, eq=False)
class Job:
    """One unit job; `str()` is systemd's spelling, `foo.service/start`."""

    unit: str
    type: JobType
    matters_to_anchor: bool = False
    ignore_order: bool = False
    pulls: list["Link"] = field(default_factory=list)
    pulled_by: list["Link"] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.unit}/{self.type}"


@dataclass(slots=True, eq=False)
class Link:
    """`subject` pulled in `object`; `conflicts`: by Conflicts=, that is as a stop."""

    subject: Job
    object: Job
    matters: bool
    conflicts: bool


@dataclass(slots=True)
class Transaction:
    """The jobs by unit, newest first; `installed` are the jobs of earlier transactions."""

    graph: Graph
    version: int
    order: HashOrder = field(default_factory=HashOrder)
    installed: Mapping[str, JobType] = field(default_factory=dict)
    jobs: dict[str, list[Job]] = field(default_factory=dict)
    anchor: Job | None = None
    order_decided: bool = False
    """Whether the order of hash tables has already changed which jobs there are."""

    def __iter__(self) -> Iterator[Job]:
        for jobs in self.jobs.values():
            yield from jobs

    def units(self) -> list[str]:
        """The units that have jobs, in the order in which systemd would walk its table."""
        return self.order.of("jobs", self.jobs)

    def head_type(self, unit: str) -> JobType | None:
        """The type of the job that ordering looks at: the unit's newest, else its installed one."""
        jobs = self.jobs.get(unit)
        return jobs[0].type if jobs else self.installed.get(unit)

    def matters(self, unit: str) -> bool:
        """Re-enacts unit_matters_to_anchor(), src/core/transaction.c, v252."""
        return any(job.matters_to_anchor for job in self.jobs.get(unit, ()))


def add_one_job(tr: Transaction, type_: JobType, unit: str) -> tuple[Job, bool]:
    """Give the unit's job of that type, made anew at the head of its list where there is none.

    Re-enacts transaction_add_one_job(), src/core/transaction.c, v252.
    """
    jobs = tr.jobs.setdefault(unit, [])
    for job in jobs:
        if job.type == type_:
            return job, False
    job = Job(unit, type_)
    jobs.insert(0, job)
    return job, True


def link(subject: Job, object_: Job, *, matters: bool, conflicts: bool) -> None:
    """Note that `subject` pulled in `object_`. Re-enacts job_dependency_new(), job.c, v252."""
    made = Link(subject, object_, matters, conflicts)
    subject.pulls.append(made)
    object_.pulled_by.append(made)


def delete_job(tr: Transaction, job: Job, *, delete_dependencies: bool) -> list[Job]:
    """Take a job out, and with `delete_dependencies` all those to which it matters; name them.

    Re-enacts transaction_delete_job() and transaction_unlink_job(), transaction.c, v252.
    """
    gone: list[Job] = []
    todo = [job]
    while todo:
        victim = todo.pop()
        if not _unlist(tr, victim):
            continue
        gone.append(victim)
        for out in victim.pulls:
            out.object.pulled_by.remove(out)
        for back in victim.pulled_by:
            back.subject.pulls.remove(back)
        if delete_dependencies:
            todo += [back.subject for back in victim.pulled_by if back.matters]
        victim.pulls, victim.pulled_by = [], []
    return gone


def delete_unit(tr: Transaction, unit: str) -> list[Job]:
    """Take all jobs of a unit out, and those to which they matter.

    Re-enacts transaction_delete_unit(), src/core/transaction.c, v252.
    """
    gone: list[Job] = []
    while unit in tr.jobs:
        gone += delete_job(tr, tr.jobs[unit][0], delete_dependencies=True)
    return gone


def _unlist(tr: Transaction, job: Job) -> bool:
    jobs = tr.jobs.get(job.unit, [])
    if job not in jobs:
        return False
    jobs.remove(job)
    if not jobs:
        del tr.jobs[job.unit]
    return True
