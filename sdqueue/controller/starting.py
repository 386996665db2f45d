"""Starting a job: its file is claimed, then the service manager is asked for its unit.

The claim comes first and is durable, so that whoever finds the unit finds its job in running/. A
start that the manager refuses takes the claim back, and says who stands in the way.
"""

import asyncio

from sdqueue.bus.systemd import reaction
from sdqueue.controller.blockers import refusal, tell_if_gone
from sdqueue.controller.context import run_context
from sdqueue.controller.ending import let_go
from sdqueue.controller.following import follow
from sdqueue.controller.moving import claim, is_moved, unclaim
from sdqueue.controller.runner import Runner
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.model import Job
from sdqueue.core.results import RunEnd
from sdqueue.core.spec import JobSpec
from sdqueue.core.unit import job_properties
from sdqueue.words.errors import BusError, NoSuchJob, RemoteError, SpoolError, UsageError


async def start(runner: Runner, action: act.Start) -> None:
    """Claim a job and start its unit."""
    job = runner.state.jobs[action.name]
    try:
        is_known = await _claim_and_start(runner, job, action.attempt)
    finally:
        runner.starting.discard(job.name)
    if not is_known:
        runner.recheck()


async def _claim_and_start(runner: Runner, job: Job, attempt: int) -> bool:
    """Say whether the outcome is known; if not, the manager must be asked what it has."""
    spec = job.spec
    assert spec is not None, f"{job.name} has no readable file"
    run = await _claim(runner, job, spec)
    if run is None:
        return True
    runner.post(ev.Claimed(job.name, run))
    context = run_context(runner.places, spec, attempt, run)
    lane = runner.state.lanes[spec.lane].lane
    followed = follow(runner, job.name, spec)
    try:
        properties = job_properties(spec, lane, context)
        answer = await runner.manager().start_transient(job.unit, properties)
    except UsageError as error:  # it holds what D-Bus can't carry
        runner.runs.pop(job.unit, None)
        _unbuildable(runner, job, str(error))
    except BusError as error:
        runner.runs.pop(job.unit, None)
        if not isinstance(error, RemoteError) or reaction(error) == "later":
            return False
        await _not_started(runner, job, run, error)
    else:
        followed.accepted(answer.id)
    return True


async def _claim(runner: Runner, job: Job, spec: JobSpec) -> int | None:
    """Have the job's file in running/; None if that could not be, which is told."""
    try:
        return await asyncio.to_thread(claim, runner.places, spec, job.memory)
    except NoSuchJob:
        runner.post(ev.NotClaimed(job.name, gone=True))
    except SpoolError as error:
        must_go_on = is_moved(runner.places, job.name)
        await runner.sit_out(f"start of {job.name}", error)
        if must_go_on:
            return await runner.persist(claim, spec, job.memory)
        runner.post(ev.NotClaimed(job.name))
    return None


async def _not_started(runner: Runner, job: Job, run: int, error: RemoteError) -> None:
    """Take a claim back after a refusal, or fail the job if its unit can't be built."""
    if reaction(error) == "invalid":
        _unbuildable(runner, job, error.text or error.name)
        return
    if reaction(error) == "exists":
        await let_go(runner, job.unit)  # a failed unit that nobody collected keeps the name
    reason = await refusal(runner, job.lane, error)
    await runner.persist(unclaim, job.name, run)
    runner.post(ev.Refused(job.name, reason))
    await tell_if_gone(runner, reason)


def _unbuildable(runner: Runner, job: Job, why: str) -> None:
    runner.post(ev.Ended(job.name, RunEnd(job_result="unbuildable", service_result=why)))
