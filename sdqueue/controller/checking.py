"""Asking before a start and after a failure: DONE_IF, REQUIRES, and whether the box has room."""

import asyncio
from collections.abc import Callable, Sequence

from sdqueue.bus.systemd import reaction
from sdqueue.controller.asking import ask, check_properties
from sdqueue.controller.blockers import refusal, tell_if_gone
from sdqueue.controller.context import check_context, user_of
from sdqueue.controller.promised import promised_bytes
from sdqueue.controller.runner import Runner
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.checks import (
    UNREACHED,
    CheckContext,
    answers,
    done_if_script,
    script,
    verdict,
)
from sdqueue.core.model import Job
from sdqueue.core.spec import JobSpec
from sdqueue.sensors import shortage
from sdqueue.words import names
from sdqueue.words.errors import BusError, RemoteError, SpoolError


async def check(runner: Runner, action: act.Check) -> None:
    """Ask DONE_IF and REQUIRES of some jobs in one unit of their lane."""
    specs, unit = _specs(runner, action.names), names.unit_of_checks(action.lane)
    if not specs:
        runner.post(ev.UnitGone(unit))  # all went meanwhile: there is none
    try:
        lines = await _ask(runner, action.lane, unit, specs, script) if specs else []
    except (BusError, SpoolError, OSError) as error:
        await _not_checked(runner, action, error)
        return
    told = dict(zip((spec.name for spec in specs), answers(specs, lines), strict=True))
    for name in action.names:
        answer = told.get(name, UNREACHED)
        checked = ev.Checked(name, answer.done, answer.gate)
        runner.post(checked if answer.reached else ev.NotChecked(name))


def _specs(runner: Runner, wanted: Sequence[str]) -> list[JobSpec]:
    """Give the specs of those jobs that are still there and can be read."""
    jobs = filter(None, (runner.state.jobs.get(name) for name in wanted))
    return [job.spec for job in jobs if job.spec]


async def _not_checked(runner: Runner, action: act.Check, error: Exception) -> None:
    unit = names.unit_of_checks(action.lane)
    if not isinstance(error, BusError):
        await runner.sit_out(f"checks of lane {action.lane}", error)
        runner.post(ev.UnitGone(unit))
    for name in action.names:
        runner.post(ev.NotChecked(name))
    if isinstance(error, RemoteError) and reaction(error) != "later":
        reason = await refusal(runner, action.lane, error)
        runner.post(ev.ChecksRefused(action.lane, reason))
        runner.post(ev.UnitGone(unit))
        await tell_if_gone(runner, reason)
    elif isinstance(error, BusError):
        runner.recheck()


async def verify(runner: Runner, action: act.Verify) -> None:
    """Ask DONE_IF of one job whose run failed."""
    spec = runner.state.jobs[action.name].spec
    assert spec is not None, f"{action.name} has no readable file"
    unit = names.unit_of_verdict(action.name)
    lines: list[str] | None = None
    while lines is None:
        try:
            lines = await _ask(runner, spec.lane, unit, [spec], lambda one: done_if_script(*one))
        except BusError:
            lines = []
        except (SpoolError, OSError) as error:
            await runner.sit_out(f"DONE_IF of {action.name}", error)
    runner.post(ev.Verified(action.name, verdict(lines)))


async def _ask(
    runner: Runner,
    lane: str,
    unit: str,
    specs: list[JobSpec],
    write: Callable[[list[CheckContext]], str],
) -> list[str]:
    """Have a unit of the lane run the script that `write` makes, and give the lines it says."""
    places, limit_sec = runner.places, runner.state.config.check_timeout_usec / 1e6
    contexts = [check_context(places, spec, limit_sec) for spec in specs]
    properties = check_properties(
        runner.state.lanes[lane].lane,
        contexts,
        user=user_of(places, specs[0]),
        system=places.system,
    )
    return await ask(runner.manager(), unit, properties, write(contexts))


async def measure(runner: Runner, action: act.Measure) -> None:
    """Look whether the box has the memory and disk that a job asks for."""
    job = runner.state.jobs.get(action.name)
    if job is None or job.spec is None:
        runner.post(ev.Measured(action.name))  # its file is gone, or changed: the answer is late
        return
    spec = job.spec
    lane = runner.state.lanes[spec.lane].lane
    while True:
        try:
            others = _at_work(runner) if spec.memory else []
            promised = await promised_bytes(runner.systemd, others, without=spec.name)
            found = await asyncio.to_thread(shortage, spec, lane, promised)
        except OSError as error:
            await runner.sit_out(f"memory and disk for {action.name}", error)
        else:
            break
    runner.post(ev.Measured(action.name, found))


def _at_work(runner: Runner) -> list[Job]:
    """List the jobs whose units hold a slot."""
    held = [name for lane in runner.state.lanes.values() for name in lane.occupants.values()]
    return [runner.state.jobs[name] for name in held if name in runner.state.jobs]
