"""Doing what the core wants done, and telling it what came of it.

One coroutine for each kind of action; `ACTIONS` joins them. The order of writing is what a crash
at any instant depends on:

    start   run directory → file to running/ (durable) → StartTransientUnit → Claimed, Started
    end     run.json (durable) → memory (durable) → file out of running/ (durable) → Settled

Killed between any two of these, the next controller's reconciliation reaches the same end. When the
disk refuses a step, nothing further is done: the step is tried again until the disk is well.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from sdqueue.bus.systemd import Systemd, reaction
from sdqueue.controller.asking import ask, check_properties
from sdqueue.controller.blockers import find_blocker
from sdqueue.controller.hooks import Hooks
from sdqueue.controller.inhibitor import Inhibitor
from sdqueue.controller.owner_watch import OwnerWatch
from sdqueue.controller.places import Places, end_of
from sdqueue.controller.promised import promised_bytes
from sdqueue.controller.units import Run, run_end
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.checks import UNREACHED, answers, done_if_script, script, verdict
from sdqueue.core.model import Code, Job, JobState, QueueState, Reason
from sdqueue.core.results import RunEnd
from sdqueue.core.spec import JobSpec, Lane
from sdqueue.core.unit import job_properties
from sdqueue.sensors import shortage
from sdqueue.words import names
from sdqueue.words.errors import BusError, BusGone, NoSuchJob, RemoteError, SpoolError, UsageError

RETRY_SEC = 2.0
REFUSAL_SEC = 1.0
"""How long to wait where PID 1 refused, and whoever made it refuse is gone already."""

T = TypeVar("T")


class Shell(Protocol):
    """What the runner needs of the controller around it."""

    state: QueueState
    places: Places

    def post(self, event: ev.Event) -> None: ...

    def spawn(self, work: Coroutine[object, object, None]) -> None: ...

    def trouble(self, source: str, what: str | None) -> None: ...

    def relook(self, name: str) -> None: ...

    def recheck(self) -> None: ...


class Runner:
    """Does actions. `state` is read here, never changed.

    `systemd` is None while there is no bus; `runs` are the units that were started and have not
    ended, by unit name.
    """

    def __init__(self, shell: "Shell") -> None:
        self.state = shell.state
        self.places = shell.places
        self.post = shell.post
        self._shell = shell
        self.systemd: Systemd | None = None
        self.runs: dict[str, Run] = {}
        self.hooks = Hooks(shell.post)
        self.inhibitor = Inhibitor(shell.post)
        self.owners = OwnerWatch(shell.post, shell.spawn, self._own_units)
        self._starting: set[str] = set()
        self._collecting: set[str] = set()

    def is_busy(self, name: str) -> bool:
        """Say whether a task here will report on that job: no reconciliation may judge it now."""
        return name in self._starting or name in self._collecting

    def do(self, action: act.Action) -> Coroutine[object, object, None]:
        """Give the coroutine that does one action to its end; from now on the runner is busy."""
        if isinstance(action, act.Start):
            self._starting.add(action.name)
        return ACTIONS[type(action)](self, action)

    # Starting

    async def start(self, action: act.Start) -> None:
        """Claim a job and start its unit."""
        job = self.state.jobs[action.name]
        try:
            is_known = await self._claim_and_start(job, action.attempt)
        finally:
            self._starting.discard(job.name)
        if not is_known:
            self._shell.recheck()

    async def _claim(self, job: Job, spec: JobSpec) -> int | None:
        """Have the job's file in running/; None if that could not be, which is told."""
        try:
            return await asyncio.to_thread(self.places.claim, spec, job.memory)
        except NoSuchJob:
            self.post(ev.NotClaimed(job.name, gone=True))
        except SpoolError as error:
            if self.places.is_moved(job.name):
                await self._sit_out(f"start of {job.name}", error)
                return await self.persist(self.places.claim, spec, job.memory)
            await self._sit_out(f"start of {job.name}", error)
            self.post(ev.NotClaimed(job.name))
        return None

    async def _claim_and_start(self, job: Job, attempt: int) -> bool:
        """Say whether the outcome is known; if not, the manager must be asked what it has."""
        spec = _spec(job)
        run = await self._claim(job, spec)
        if run is None:
            return True
        self.post(ev.Claimed(job.name, run))
        context = self.places.context(spec, attempt, run)
        lane = self.state.lanes[spec.lane].lane
        tracked = self.track(job.name, spec)
        try:
            answer = await self._manager().start_transient(
                job.unit, job_properties(spec, lane, context)
            )
        except UsageError as error:  # it holds what D-Bus can't carry
            self.runs.pop(job.unit, None)
            self._unbuildable(job, str(error))
        except BusError as error:
            self.runs.pop(job.unit, None)
            if not isinstance(error, RemoteError) or reaction(error) == "later":
                return False
            await self._not_started(job, run, error)
        else:
            tracked.accepted(answer.id)
        return True

    def track(self, name: str, spec: JobSpec) -> Run:
        """Collect from now on what the bus says of a job's unit."""

        def on_started(run: Run) -> None:
            self.post(ev.Started(name, run.unit_job, run.invocation, run.pid))

        run = Run(names.unit_of_job(name), on_started, self._collector(name, spec))
        self.runs[run.unit] = run
        return run

    def _collector(self, name: str, spec: JobSpec) -> Callable[[Run, str], None]:
        def on_ended(run: Run, result: str) -> None:
            self._collecting.add(name)
            self._shell.spawn(self._collect(name, spec, run, result))

        return on_ended

    async def _not_started(self, job: Job, run: int, error: RemoteError) -> None:
        """Take a claim back after a refusal, or fail the job if its unit can't be built."""
        if reaction(error) == "invalid":
            self._unbuildable(job, error.text or error.name)
            return
        if reaction(error) == "exists":
            await self._let_go(job.unit)  # a failed unit that nobody collected keeps the name
        reason = await self._refusal(job.lane, error)
        await self.persist(self.places.unclaim, job.name, run)
        self.post(ev.Refused(job.name, reason))
        await self._look_for_blocker(reason)

    def _unbuildable(self, job: Job, why: str) -> None:
        self.post(ev.Ended(job.name, RunEnd(job_result="unbuildable", service_result=why)))

    async def _refusal(self, lane: str, error: RemoteError) -> Reason:
        """Say who stands in the way. The error's text is only used where nobody is found."""
        lanes = self.state.lanes[lane].lane
        occupied = reaction(error) == "occupied"
        if occupied and (blocker := await self._blocker(lanes)):
            return Reason(Code.REFUSED, f"refused by the service manager: {blocker} runs", blocker)
        again = time.time() + REFUSAL_SEC
        return Reason(Code.REFUSED, f"refused by the service manager: {error.text}", "", again)

    async def _blocker(self, lane: Lane) -> str:
        try:
            return await find_blocker(self._manager(), lane)
        except BusError:
            return ""

    async def _look_for_blocker(self, reason: Reason) -> None:
        """Say that a blocker is gone, if it went before its end could end the wait for it."""
        if not reason.blocker:
            return
        with suppress(BusError):
            there = {job.unit for job in await self._manager().list_unit_jobs()}
            if reason.blocker not in there:
                self.post(ev.UnitGone(reason.blocker))

    # Ending

    async def _collect(self, name: str, spec: JobSpec, run: Run, result: str) -> None:
        """Read how a run ended, from its unit if it is still loaded, and tell the queue."""
        end = None
        try:
            end = await self._read_end(name, spec, run, result)
        except BusError:
            pass  # the next reconciliation reads it
        finally:
            self._collecting.discard(name)
            self.runs.pop(run.unit, None)
        if end:
            self.post(ev.Ended(name, end))
        else:
            self._shell.recheck()

    async def _read_end(self, name: str, spec: JobSpec, run: Run, result: str) -> RunEnd:
        """Read a run's end: from the unit while it is loaded, from what the bus said of it, or
        from what it wrote down itself."""
        manager = self._manager()
        properties: Mapping[str, object] = run.properties
        if result != "done":
            properties = await manager.unit_properties(run.unit) or properties
        end = run_end(properties, result, has_done_if=bool(spec.done_if))
        if result == "canceled":
            going_down = (await manager.manager_properties()).get("SystemState") == "stopping"
            return replace(end, stopping=going_down)
        job = self.state.jobs.get(name)
        if end.main_code or not job or not job.run:
            return end
        found = await self.persist(self.places.find_run, name, job.run)
        return end_of(found, has_done_if=bool(spec.done_if)) or end

    async def settle(self, action: act.Settle) -> None:
        """Write the end of a run down, then let the unit go."""
        superseded = await self.persist(self.places.settle, action)
        await self._let_go(names.unit_of_job(action.name))
        self.post(ev.Settled(action.name, action, superseded))
        if superseded:
            self._shell.relook(action.name)

    async def _let_go(self, unit: str) -> None:
        """Have PID 1 forget a unit that failed; one that ended well is forgotten already."""
        try:
            await self._manager().reset_failed(unit)
        except BusError:
            return

    async def skip(self, action: act.Skip) -> None:
        """Move a queued job to done/."""
        await self._leave(action, JobState.DONE)

    async def park(self, action: act.Park) -> None:
        """Move a queued job to parked/."""
        await self._leave(action, JobState.PARKED)

    async def _leave(self, action: act.Skip | act.Park, to: JobState) -> None:
        moved = await self.persist(self.places.leave, action.name, to)
        self.post(ev.Settled(action.name, action, vanished=not moved))

    async def stop_unit(self, action: act.StopUnit) -> None:
        """Stop a unit; that it is gone already is as good."""
        try:
            await self._manager().stop_unit(action.unit)
        except BusError as error:
            if isinstance(error, RemoteError) and reaction(error) != "later":
                return
            # A reconciliation that finds the unit still running has it stopped again.
            await asyncio.sleep(RETRY_SEC)
            self._shell.recheck()

    async def look(self, action: act.Look) -> None:
        """Look who uses a lane without being ours."""
        if lane := self.state.lanes.get(action.lane):
            await self.owners.look(lane.lane)

    async def keep_awake(self, action: act.KeepAwake) -> None:
        """Keep the box from sleep, or no more."""
        await self.inhibitor.set(awake=action.awake)

    def _own_units(self) -> set[str]:
        return {unit for lane in self.state.lanes.values() for unit in lane.occupants}

    async def hook(self, action: act.Hook) -> None:
        """Start a unit because a job has ended."""
        await self.hooks.start(self.systemd, action)

    async def relook(self, action: act.Relook) -> None:
        """Look at a name in queue/ again."""
        self._shell.relook(action.name)

    # Checking

    async def check(self, action: act.Check) -> None:
        """Ask DONE_IF and REQUIRES of some jobs in one unit of their lane."""
        specs, unit = self._specs(action.names), names.unit_of_checks(action.lane)
        if not specs:
            self.post(ev.UnitGone(unit))  # all went meanwhile: there is none
        try:
            lines = await self._ask(action.lane, unit, specs, script) if specs else []
        except (BusError, SpoolError, OSError) as error:
            await self._not_checked(action, error)
            return
        told = dict(zip((spec.name for spec in specs), answers(specs, lines), strict=True))
        for name in action.names:
            answer = told.get(name, UNREACHED)
            self.post(_as_event(name, answer.reached, answer.done, answer.gate))

    def _specs(self, names: Sequence[str]) -> list[JobSpec]:
        """Give the specs of those jobs that are still there and can be read."""
        jobs = filter(None, (self.state.jobs.get(name) for name in names))
        return [job.spec for job in jobs if job.spec]

    async def _not_checked(self, action: act.Check, error: Exception) -> None:
        unit = names.unit_of_checks(action.lane)
        if not isinstance(error, BusError):
            await self._sit_out(f"checks of lane {action.lane}", error)
            self.post(ev.UnitGone(unit))
        for name in action.names:
            self.post(ev.NotChecked(name))
        if isinstance(error, RemoteError) and reaction(error) != "later":
            reason = await self._refusal(action.lane, error)
            self.post(ev.ChecksRefused(action.lane, reason))
            self.post(ev.UnitGone(unit))
            await self._look_for_blocker(reason)
        elif isinstance(error, BusError):
            self._shell.recheck()

    async def verify(self, action: act.Verify) -> None:
        """Ask DONE_IF of one job whose run failed."""
        spec = _spec(self.state.jobs[action.name])
        unit = names.unit_of_verdict(action.name)
        lines: list[str] | None = None
        while lines is None:
            try:
                lines = await self._ask(spec.lane, unit, [spec], lambda each: done_if_script(*each))
            except BusError:
                lines = []
            except (SpoolError, OSError) as error:
                await self._sit_out(f"DONE_IF of {action.name}", error)
        self.post(ev.Verified(action.name, verdict(lines)))

    async def _ask(
        self, lane: str, unit: str, specs: list[JobSpec], write: Callable[[list[Any]], str]
    ) -> list[str]:
        limit_sec = self.state.config.check_timeout_usec / 1e6
        contexts = [self.places.check_context(spec, limit_sec) for spec in specs]
        properties = check_properties(
            self.state.lanes[lane].lane,
            contexts,
            user=self.places.user_of(specs[0]),
            system=self.places.system,
        )
        return await ask(self._manager(), unit, properties, write(contexts))

    async def measure(self, action: act.Measure) -> None:
        """Look whether the box has the memory and disk that a job asks for."""
        job = self.state.jobs.get(action.name)
        if job is None or job.spec is None:
            self.post(ev.Measured(action.name))  # its file is gone, or changed: the answer is late
            return
        spec = job.spec
        lane = self.state.lanes[spec.lane].lane
        while True:
            try:
                others = self._at_work() if spec.memory else []
                promised = await promised_bytes(self.systemd, others, without=spec.name)
                found = await asyncio.to_thread(shortage, spec, lane, promised)
            except OSError as error:
                await self._sit_out(f"memory and disk for {action.name}", error)
            else:
                break
        self.post(ev.Measured(action.name, found))

    def _at_work(self) -> list[Job]:
        """List the jobs whose units hold a slot."""
        held = [name for lane in self.state.lanes.values() for name in lane.occupants.values()]
        return [self.state.jobs[name] for name in held if name in self.state.jobs]

    # Underneath

    def _manager(self) -> Systemd:
        if self.systemd is None:
            raise BusGone("there is no connection to the service manager now")
        return self.systemd

    async def persist(self, work: Callable[..., T], *arguments: object) -> T:
        """Do a step on disk, again and again until the disk takes it; say so meanwhile."""
        source = f"{work.__name__} of {getattr(arguments[0], 'name', arguments[0])}"
        while True:
            try:
                done = await asyncio.to_thread(work, *arguments)
            except SpoolError as error:
                self._shell.trouble(source, str(error))
                await asyncio.to_thread(self.places.mend)
                await asyncio.sleep(RETRY_SEC)
            else:
                self._shell.trouble(source, None)
                return done

    async def _sit_out(self, what: str, error: Exception) -> None:
        """Have nothing new start for a while, since the disk refused something."""
        said = str(error) if isinstance(error, SpoolError) else f"no {what}: {error}"
        self._shell.trouble(what, said)
        await asyncio.to_thread(self.places.mend)
        await asyncio.sleep(RETRY_SEC)
        self._shell.trouble(what, None)


def _spec(job: Job) -> JobSpec:
    assert job.spec is not None, f"{job.name} has no readable file"
    return job.spec


def _as_event(
    name: str, reached: bool, done: bool, gate: Reason | None
) -> ev.Checked | ev.NotChecked:
    return ev.Checked(name, done, gate) if reached else ev.NotChecked(name)


ACTIONS: dict[type, Callable[[Runner, Any], Coroutine[object, object, None]]] = {
    act.Start: Runner.start,
    act.Check: Runner.check,
    act.Measure: Runner.measure,
    act.Verify: Runner.verify,
    act.Settle: Runner.settle,
    act.Skip: Runner.skip,
    act.Park: Runner.park,
    act.StopUnit: Runner.stop_unit,
    act.Relook: Runner.relook,
    act.Hook: Runner.hook,
    act.Look: Runner.look,
    act.KeepAwake: Runner.keep_awake,
}
