"""`org.sdqueue1` on the bus: what the queue answers, and the requests that it takes.

Everything that is read comes from `core.view`, so the bus, `status` and `why` can't disagree.
"""

import asyncio
from typing import TYPE_CHECKING

from sdqueue import __version__
from sdqueue.bus.connection import Bus
from sdqueue.bus.interface import Interface, Method, Property, SignalSpec, args
from sdqueue.bus.service import Credentials, Request, Service
from sdqueue.bus.tree import ObjectTree
from sdqueue.controller.lane_service import LaneObjects
from sdqueue.controller.offering import FEATURES, MANAGER, NAME, PATH, row, rows
from sdqueue.controller.records import note_cancel
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.model import Job, JobState
from sdqueue.core.view import aside_rows, job_row, lane_row, owner_rows, plan_rows, why
from sdqueue.words.errors import (
    NoSuchJob,
    SdqueueError,
    SpoolBusy,
    SpoolError,
    UsageError,
    WrongState,
)
from sdqueue.words.names import job_name

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller


class QueueService:
    """Serves one controller on one bus."""

    def __init__(self, controller: "Controller", bus: Bus) -> None:
        self._controller = controller
        self._bus = bus
        tree = ObjectTree()
        tree.add(PATH, controller, INTERFACE)
        self._service = Service(bus, tree)
        self._lanes = LaneObjects(controller, tree, self._service)

    async def open(self) -> None:
        """Serve, then take the name; SpoolBusy if another controller of this bus has it."""
        self._service.start()
        if not await self._bus.request_name(NAME):
            raise SpoolBusy(
                f"another controller owns {NAME} on this bus: one bus has one queue. Stop it, or"
                " give this one a user manager of its own"
            )

    def announce(self, action: act.Log) -> None:
        """Tell who listens of one event, as it stands in events.jsonl."""
        self._service.emit(PATH, INTERFACE, "Event", action.event, action.job, row(action.fields))

    def lane_changed(self, name: str) -> None:
        """Tell who listens how a lane is now, and who waits for its leases."""
        self._lanes.changed(name)


def _list_jobs(_request: Request, queue: "Controller", wanted: list[str]) -> object:
    names = [job_name(each) for each in wanted] or list(queue.state.jobs)
    jobs = [queue.state.jobs[name] for name in names if name in queue.state.jobs]
    return rows([job_row(queue.state, job, queue.planned) for job in jobs])


def _list_aside(_request: Request, queue: "Controller") -> object:
    return rows(aside_rows(queue.state, queue.planned))


def _list_lanes(_request: Request, queue: "Controller") -> object:
    return rows([lane_row(queue.state, lane, queue.planned) for lane in queue.state.lanes.values()])


def _list_owners(_request: Request, queue: "Controller", lane: str) -> object:
    lanes = queue.state.lanes
    wanted = [_lane(queue, lane)] if lane else list(lanes)
    return rows([row for name in wanted for row in owner_rows(queue.state, lanes[name])])


def _lane(queue: "Controller", lane: str) -> str:
    """Return the name of a lane that there is; raise UsageError for another."""
    if lane not in queue.state.lanes:
        lanes = ", ".join(queue.state.lanes)
        raise UsageError(f"there is no lane {lane!r}; the lanes are {lanes}")
    return lane


def _plan(_request: Request, queue: "Controller") -> object:
    return rows(plan_rows(queue.state, queue.planned))


def _why(_request: Request, queue: "Controller", name: str) -> object:
    return rows(why(queue.state, _job(queue, name), queue.planned))


CANCEL_SEC = 20.0
"""How long an answer to a cancel is held back until it is sure; a call waits 25 s by default."""


async def _allowed(request: Request, queue: "Controller") -> Credentials:
    """Say who calls, where it is root or the queue's owner: nobody else changes anything."""
    who = await request.credentials()
    if who.uid not in (0, queue.state.uid):
        raise SdqueueError(
            f"only root and uid {queue.state.uid}, whose queue this is, may change it;"
            f" this is uid {who.uid}."
        )
    return who


async def _cancel(request: Request, queue: "Controller", name: str) -> str:
    """Answer once the cancel is on disk: then a controller after this one knows of it too."""
    who = await _allowed(request, queue)
    job = _job(queue, name)
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
        raise SpoolError(f"{job.name} could not be cancelled yet: {_halted(queue)}") from None
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


async def _pause(request: Request, queue: "Controller", lane: str, paused: bool) -> None:
    await _allowed(request, queue)
    queue.post(ev.LanePaused(_lane(queue, lane), paused))


def _job(queue: "Controller", name: str) -> Job:
    name = job_name(name)
    job = queue.state.jobs.get(name)
    if job:
        return job
    if name in queue.state.ended:
        raise WrongState(f"{name} is {queue.state.ended[name]} already")
    raise NoSuchJob(f"there is no job {name!r}")


def _halted(queue: "Controller") -> str:
    halt = queue.state.halt
    return halt.detail if halt else ""


INTERFACE = Interface(
    MANAGER,
    methods=(
        Method("ListJobs", _list_jobs, args("names:as"), args("jobs:aa{sv}")),
        Method("ListAside", _list_aside, gives=args("jobs:aa{sv}")),
        Method("ListLanes", _list_lanes, gives=args("lanes:aa{sv}")),
        Method("ListOwners", _list_owners, args("lane:s"), args("owners:aa{sv}")),
        Method("Plan", _plan, gives=args("jobs:aa{sv}")),
        Method("Why", _why, args("name:s"), args("chain:aa{sv}")),
        Method("CancelJob", _cancel, args("name:s"), args("effect:s")),
        Method("PauseLane", _pause, args("lane:s", "paused:b")),
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


def _count(queue: "Controller", state: JobState) -> int:
    return sum(job.state is state for job in queue.state.jobs.values())
