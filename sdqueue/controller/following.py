"""Following a job's unit from its start to its end, by what the bus says of it.

How it ended is read from the unit while it is loaded, else from what the bus said before, else from
what the unit itself wrote down.
"""

from collections.abc import Mapping
from dataclasses import replace

from sdqueue.controller.records import end_of, find_run
from sdqueue.controller.runner import Runner
from sdqueue.controller.units import Run, run_end
from sdqueue.core import events as ev
from sdqueue.core.results import RunEnd
from sdqueue.core.spec import JobSpec
from sdqueue.words import names
from sdqueue.words.errors import BusError


def follow(runner: Runner, name: str, spec: JobSpec) -> Run:
    """Collect from now on what the bus says of a job's unit, and tell of its start and end."""

    def on_started(run: Run) -> None:
        runner.post(ev.Started(name, run.unit_job, run.invocation, run.pid))

    def on_ended(run: Run, result: str) -> None:
        runner.collecting.add(name)
        runner.spawn(_collect(runner, name, spec, run, result))

    run = Run(names.unit_of_job(name), on_started, on_ended)
    runner.runs[run.unit] = run
    return run


async def _collect(runner: Runner, name: str, spec: JobSpec, run: Run, result: str) -> None:
    """Read how a run ended, and tell the queue."""
    end = None
    try:
        end = await _read_end(runner, name, spec, run, result)
    except BusError:
        pass  # the next reconciliation reads it
    finally:
        runner.collecting.discard(name)
        runner.runs.pop(run.unit, None)
    if end:
        runner.post(ev.Ended(name, end))
    else:
        runner.recheck()


async def _read_end(runner: Runner, name: str, spec: JobSpec, run: Run, result: str) -> RunEnd:
    manager = runner.manager()
    properties: Mapping[str, object] = run.properties
    if result != "done":
        properties = await manager.unit_properties(run.unit) or properties
    end = run_end(properties, result, has_done_if=bool(spec.done_if))
    if result == "canceled":
        going_down = (await manager.manager_properties()).get("SystemState") == "stopping"
        return replace(end, stopping=going_down)
    job = runner.state.jobs.get(name)
    if end.main_code or not job or not job.run:
        return end
    found = await runner.persist(find_run, name, job.run)
    return end_of(found, has_done_if=bool(spec.done_if)) or end
