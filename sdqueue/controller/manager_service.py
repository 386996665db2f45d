"""org.sdqueue1.Manager: what the queue as a whole is asked, and the requests that it takes.

Everything that is read comes from `core.view`, so the bus, `status` and `why` can't disagree.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from sdqueue import __version__
from sdqueue.bus.interface import Interface, Method, Property, SignalSpec, args
from sdqueue.bus.service import Request
from sdqueue.controller.job_service import cancel, get_job, job_named
from sdqueue.controller.lane_service import get_lane, lane_named, set_paused
from sdqueue.controller.lease_service import LEASE_METHODS
from sdqueue.controller.offering import FEATURES, MANAGER, rows
from sdqueue.controller.privacy import view_for
from sdqueue.core.model import Job, JobState
from sdqueue.core.view import Row, aside_rows, job_row, lane_row, owner_rows, plan_rows, why
from sdqueue.words.errors import LimitsExceeded
from sdqueue.words.names import job_name

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller


ROWS_MAX = 25_000
"""Rows of one answer, which must fit into a message."""
STRANGERS_ROWS_MAX = 2_000
"""The same for who is neither root nor the queue's owner: nothing else is done meanwhile."""


async def _list_jobs(request: Request, queue: "Controller", wanted: list[str]) -> object:
    names = [job_name(each) for each in wanted] or list(queue.state.jobs)
    jobs = [queue.state.jobs[name] for name in names if name in queue.state.jobs]
    make = partial(map, partial(_job_row, queue), jobs)
    return await _seen(request, queue, len(jobs), make)


def _job_row(queue: "Controller", job: Job) -> Row:
    return job_row(queue.state, job, queue.planned)


async def _list_aside(request: Request, queue: "Controller") -> object:
    lines = [len(lane.line) for lane in queue.state.lanes.values()]
    count = len(queue.state.jobs) - sum(lines) + sum(map(bool, lines))
    return await _seen(request, queue, count, partial(aside_rows, queue.state, queue.planned))


async def _plan(request: Request, queue: "Controller") -> object:
    make = partial(plan_rows, queue.state, queue.planned)
    return await _seen(request, queue, _count(queue, JobState.QUEUED), make)


async def _why(request: Request, queue: "Controller", name: str) -> object:
    job = job_named(queue, name)
    return await _seen(request, queue, 1, partial(why, queue.state, job, queue.planned))


async def _seen(
    request: Request, queue: "Controller", count: int, make: Callable[[], Iterable[Row]]
) -> object:
    """Give `count` rows of jobs as the caller may see them; raise LimitsExceeded for too many."""
    caller = await request.credentials()
    most = ROWS_MAX if caller.uid in (0, queue.state.uid) else STRANGERS_ROWS_MAX
    if count > most:
        raise LimitsExceeded(
            f"these are {count} jobs, and one answer may tell of {most}: ask for jobs by name"
        )
    view = await view_for(request, queue)
    jobs = queue.state.jobs
    return rows([view(jobs.get(str(each["name"])), each) for each in make()])


async def _list_lanes(request: Request, queue: "Controller") -> object:
    view, state = await view_for(request, queue), queue.state
    return rows([view(None, lane_row(state, each, queue.planned)) for each in state.lanes.values()])


def _list_owners(_request: Request, queue: "Controller", lane: str) -> object:
    lanes = queue.state.lanes
    wanted = [lane_named(queue, lane)] if lane else list(lanes)
    return rows([row for name in wanted for row in owner_rows(queue.state, lanes[name])])


def _halted(queue: "Controller") -> str:
    halt = queue.state.halt
    return halt.detail if halt else ""


def _count(queue: "Controller", state: JobState) -> int:
    return sum(job.state is state for job in queue.state.jobs.values())


INTERFACE = Interface(
    MANAGER,
    methods=(
        Method("ListJobs", _list_jobs, args("names:as"), args("jobs:aa{sv}")),
        Method("ListAside", _list_aside, gives=args("jobs:aa{sv}")),
        Method("ListLanes", _list_lanes, gives=args("lanes:aa{sv}")),
        Method("ListOwners", _list_owners, args("lane:s"), args("owners:aa{sv}")),
        Method("Plan", _plan, gives=args("jobs:aa{sv}")),
        Method("Why", _why, args("name:s"), args("chain:aa{sv}")),
        Method("GetJob", get_job, args("name:s"), args("job:o")),
        Method("GetLane", get_lane, args("name:s"), args("lane:o")),
        Method("CancelJob", cancel, args("name:s"), args("effect:s")),
        Method("PauseLane", set_paused, args("lane:s", "paused:b")),
        *LEASE_METHODS,
    ),
    properties=(
        Property("Version", "s", lambda _queue: __version__, "const"),
        Property("Features", "as", lambda _queue: list(FEATURES), "const"),
        Property("Spool", "s", lambda queue: queue.places.spool.root, "const"),
        Property("Halted", "s", _halted, "false"),
        Property("Queued", "u", lambda queue: _count(queue, JobState.QUEUED), "false"),
        Property("Running", "u", lambda queue: _count(queue, JobState.RUNNING), "false"),
        Property("Trouble", "as", lambda queue: queue.troubles, "false"),
        Property("Notices", "as", lambda queue: list(queue.state.notices.values()), "false"),
    ),
    signals=(SignalSpec("Event", args("event:s", "job:s", "fields:a{sv}")),),
)
