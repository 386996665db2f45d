"""org.sdqueue1.Job: one job that is queued or running, on the bus.

An object is made when it is asked for: there may be a hundred thousand jobs, and nobody looks at
most of them. Changes are told by the manager's signal Event, not by each object.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from sdqueue.bus.interface import Interface, Method, Property, args
from sdqueue.bus.service import Request
from sdqueue.bus.tree import ObjectTree, object_path
from sdqueue.controller.offering import JOB, JOBS, row
from sdqueue.controller.permission import permitted
from sdqueue.controller.privacy import owner_of, public
from sdqueue.controller.records import note_cancel
from sdqueue.core import events as ev
from sdqueue.core.model import Job, JobState
from sdqueue.core.plan import reason
from sdqueue.core.view import reason_row
from sdqueue.words.errors import NoSuchJob, SpoolError, WrongState
from sdqueue.words.names import job_name

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller

CANCEL_SEC = 20.0
"""How long an answer to a cancel is held back until it is sure; a call waits 25 s by default."""
NO_UID = 2**32 - 1
NO_RC = -1
_VERIFIED = {True: "yes", False: "no", None: ""}


class JobObject(NamedTuple):
    """What calls of one job are answered from."""

    queue: "Controller"
    job: Job


def add_jobs(queue: "Controller", tree: ObjectTree) -> None:
    """Put every queued or running job into the tree. Introspection lists none of them."""

    def find(name: str) -> JobObject | None:
        job = queue.state.jobs.get(name)
        return JobObject(queue, job) if job else None

    tree.add_family(JOBS, find, _unlisted, JOB_INTERFACE)


def _unlisted() -> Iterable[str]:
    return ()


def job_named(queue: "Controller", name: str) -> Job:
    """Return a queued or running job; raise NoSuchJob, or WrongState for one that has ended."""
    name = job_name(name)
    job = queue.state.jobs.get(name)
    if job:
        return job
    if name in queue.state.ended:
        raise WrongState(f"{name} is {queue.state.ended[name]} already")
    raise NoSuchJob(f"there is no job {name!r}")


def get_job(_request: Request, queue: "Controller", name: str) -> str:
    """Return the path of a job's object."""
    return object_path(JOBS, job_named(queue, name).name)


# Cancelling -------------------------------------------------------------------------------------


async def cancel(request: Request, queue: "Controller", name: str) -> str:
    """Answer once the cancel is on disk: then a controller after this one knows of it too."""
    owner = owner_of(job_named(queue, name))
    who = await permitted(request, queue, "manage-jobs", owner=owner)
    job = job_named(queue, name)
    if owner_of(job) != owner:
        raise WrongState(f"{job.name} has another owner now; ask again")
    if _can_note(job):
        await asyncio.to_thread(note_cancel, queue.places, job.name, job.run, who.uid)
        queue.post(ev.CancelAsked(job.name, who.uid))
        return "stopping"
    queue.post(ev.CancelAsked(job.name, who.uid))
    try:
        async with asyncio.timeout(CANCEL_SEC):
            while queue.state.jobs.get(job.name) is job and not _can_note(job):
                await queue.wait_turn()
    except TimeoutError:
        why = queue.state.halt.detail if queue.state.halt else ""
        raise SpoolError(f"{job.name} could not be cancelled yet: {why}") from None
    if queue.state.jobs.get(job.name) is job:
        await asyncio.to_thread(note_cancel, queue.places, job.name, job.run, who.uid)
        return "stopping"
    return _end_of_cancel(queue, job.name)


def _can_note(job: Job) -> bool:
    """Say whether the job has a run in whose record a cancel can be written."""
    return job.state is JobState.RUNNING and job.run > 0


def _end_of_cancel(queue: "Controller", name: str) -> str:
    state = queue.state.ended.get(name)
    if state is JobState.PARKED:
        return "parked"
    raise WrongState(f"{name} is {state or 'not in the queue'} already")


async def _cancel_this(request: Request, found: JobObject) -> str:
    return await cancel(request, found.queue, found.job.name)


# The object -------------------------------------------------------------------------------------


def _reason(found: JobObject) -> object:
    told = reason_row(reason(found.queue.state, found.job, found.queue.planned)) or {}
    return row(public(told) if found.queue.options.system else told)


def _uid(job: Job) -> int:
    owner = owner_of(job)
    return NO_UID if owner is None else owner


def _rc(job: Job) -> int:
    return NO_RC if job.outcome is None or job.outcome.rc is None else job.outcome.rc


def _of(get: Callable[[Job], object]) -> Callable[[JobObject], object]:
    return lambda found: get(found.job)


JOB_INTERFACE = Interface(
    JOB,
    methods=(Method("Cancel", _cancel_this, gives=args("effect:s")),),
    properties=(
        Property("Name", "s", _of(lambda job: job.name), "const"),
        Property("UID", "u", _of(_uid), "false"),
        Property("Lane", "s", _of(lambda job: job.lane), "false"),
        Property("State", "s", _of(lambda job: str(job.state)), "false"),
        Property("Reason", "a{sv}", _reason, "false"),
        Property("SinceUSec", "t", _of(lambda job: int(job.since_sec * 1e6)), "false"),
        Property("Attempt", "u", _of(lambda job: job.attempt), "false"),
        Property(
            "AttemptsMax", "u", _of(lambda job: job.spec.attempts_max if job.spec else 0), "false"
        ),
        Property("Run", "u", _of(lambda job: job.run), "false"),
        Property("Unit", "s", _of(lambda job: job.unit), "const"),
        Property("InvocationID", "s", _of(lambda job: job.invocation), "false"),
        Property("Rc", "i", _of(_rc), "false"),
        Property(
            "Verified",
            "s",
            _of(lambda job: _VERIFIED[job.outcome.verified if job.outcome else None]),
            "false",
        ),
    ),
)
