"""One connection to the service manager, from the reconciliation that opens it to its end.

Subscribe first, then look: what happens while we look comes as a signal after it. The same
`reconcile` runs when the session opens, when the manager owns its name again, and when it has
reloaded; there is no other way to recover.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import (
    JobRemoved,
    ManagerBack,
    ManagerGone,
    Reloading,
    Systemd,
    SystemdEvent,
    UnitChanged,
    UnitListed,
    UnitRemoved,
)
from sdqueue.controller.ending import let_go
from sdqueue.controller.following import follow
from sdqueue.controller.lane_units import ensure_lane_units
from sdqueue.controller.lending import watch
from sdqueue.controller.manager import manager_id, still_starting
from sdqueue.controller.records import end_of, find_run
from sdqueue.controller.service import QueueService
from sdqueue.controller.units import run_end
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.lane import Config
from sdqueue.core.lease import lease_of_unit
from sdqueue.core.model import Code, Job, JobState, Phase, Reason
from sdqueue.core.reconcile import RUNNING_STATES, UnitView, reconcile
from sdqueue.words import names
from sdqueue.words.errors import BusError, BusGone, RemoteError

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller

PREFIX = "sdqueue-"
OURS = (
    "sdqueue-job-*.service",
    "sdqueue-check-*.service",
    "sdqueue-ask-*.service",
    "sdqueue-lease-*.service",
)
JUDGED = frozenset({Phase.UNKNOWN, Phase.CLAIMING, Phase.ACTIVE})
STARTED_POLL_SEC = 1.0
WAITING_FOR = "{} has not finished starting"


class Session:
    """What the controller has while it is connected."""

    def __init__(self, controller: "Controller", bus: Bus) -> None:
        self._controller = controller
        self._runner = controller.runner
        self._bus = bus
        self._systemd = Systemd(bus, self._on_event, prefixes=(PREFIX,))
        self._service = QueueService(controller, bus)
        self._is_reloading = False
        self._is_stale = False
        self._removed: set[str] = set()
        self._reconciling = asyncio.Lock()
        self.is_ready = False

    async def open(self) -> None:
        """Take the bus name, see that the lanes' units are there, reconcile, let jobs start."""
        await self._systemd.subscribe()
        await self._service.open()
        await self.make_lane_units(self._controller.state.config)
        # First, since what is found to have ended is settled at once, and its unit let go.
        self._controller.use(self._systemd)
        async with self._reconciling:
            await self._reconcile()
        self._controller.spawn(self._wait_started())

    async def make_lane_units(self, config: Config, *, regenerate: bool = False) -> None:
        """See that every lane of a configuration has its target and slice."""
        directory = self._controller.options.runtime_unit_dir
        await ensure_lane_units(self._systemd, config, directory, regenerate=regenerate)

    def announce(self, action: act.Log) -> None:
        """Tell who listens on the bus of an event."""
        self._service.announce(action)

    def lane_changed(self, action: act.LaneChanged) -> None:
        """Tell who listens on the bus how a lane is now."""
        self._service.lane_changed(action.lane)

    # Signals

    def _on_event(self, event: SystemdEvent) -> None:
        handler = HANDLERS.get(type(event))
        if handler:
            handler(self, event)

    def _on_changed(self, event: UnitChanged) -> None:
        if run := self._runner.runs.get(event.unit):
            run.changed(event)

    def _on_job_removed(self, event: JobRemoved) -> None:
        if run := self._runner.runs.get(event.unit):
            run.job_removed(event)
        elif event.unit.startswith(names.LEASE_UNIT_PREFIX):
            self._on_lease_removed(event)
        elif job := names.job_of_unit(event.unit):
            self._on_stray_removed(job, event.unit)
        elif not event.unit.startswith(PREFIX):
            self._runner.hooks.job_removed(event)
            # A stranger's: if a lane waits for it, it waits no longer.
            self._controller.post(ev.UnitGone(event.unit))

    def _on_lease_removed(self, event: JobRemoved) -> None:
        if self._runner.leases.is_revoked(event.unit, event.result):
            self._service.lease_revoked(event.unit)
            self._controller.post(ev.LeaseRevoked(event.unit))

    def _on_stray_removed(self, name: str, unit: str) -> None:
        """Have the manager forget a unit whose job is not in the queue any more, if it has failed:
        nobody reads its end, and it would hold its lane for ever."""
        job = self._controller.state.jobs.get(name)
        if not (job and job.state is JobState.RUNNING) and not self._runner.is_busy(name):
            self._controller.spawn(let_go(self._runner, unit))

    def _on_unit_removed(self, event: UnitRemoved) -> None:
        if self._is_reloading:
            return
        if run := self._runner.runs.get(event.unit):
            run.gone()
        if self._reconciling.locked():
            self._removed.add(event.unit)
        self._runner.leases.gone(event.unit)
        self._controller.post(ev.UnitGone(event.unit))

    def _on_reloading(self, event: Reloading) -> None:
        self._is_reloading = event.active
        if not event.active:
            self._controller.spawn(self.reconcile_again())

    def _on_gone(self, _event: ManagerGone) -> None:
        self.is_ready = False
        reason = Reason(Code.STARTING, "the service manager is not on the bus")
        self._controller.post(ev.Halted(reason))

    def _on_back(self, _event: ManagerBack) -> None:
        self._is_reloading = False
        self._controller.spawn(self._resubscribe())

    async def _resubscribe(self) -> None:
        while self._bus.is_open:
            try:
                await self._systemd.subscribe()
            except BusError:
                await asyncio.sleep(STARTED_POLL_SEC)
            else:
                break
        await self.reconcile_again()
        self._controller.spawn(self._wait_started())

    async def reconcile_again(self) -> None:
        """Reconcile once more; requests that come meanwhile are served by one more after it."""
        self._is_stale = True
        async with self._reconciling:
            while self._is_stale and self._bus.is_open:
                self._is_stale = False
                try:
                    await self._reconcile()
                except BusError:
                    # Where the connection ends, the next session reconciles.
                    self._is_stale = True
                    await asyncio.sleep(STARTED_POLL_SEC)

    # Reconciliation

    async def _reconcile(self) -> None:
        """Compare what the queue believes with what the manager has, and tell the difference."""
        places = self._controller.places
        places.manager = await manager_id(self._systemd, places.boot)
        state, post = self._controller.state, self._controller.post
        self._removed.clear()
        # Before the listing: a unit that is started after it would seem to be missing.
        believed = [(job, job.run) for job in state.jobs.values() if self._is_judged(job)]
        listed = {unit.name: unit for unit in await self._systemd.list_units(OURS)}
        for job, run in believed:
            if self._is_same_run(job, run):
                answer = await self._judge(job, listed.get(job.unit))
                if self._is_same_run(job, run):
                    post(answer)
        for unit in listed.values():
            await self._see_stranger(unit)
            await self._let_go_of_ended(unit)
        for lane in state.lanes.values():
            for name, holder in lane.occupants.items():
                if name not in listed and not self._runner.is_busy(holder or name):
                    self._runner.leases.gone(name)
                    post(ev.UnitGone(name))

    def _is_judged(self, job: Job) -> bool:
        return job.phase in JUDGED and not self._runner.is_busy(job.name)

    def _is_same_run(self, job: Job, run: int) -> bool:
        """Say whether the run that was to be judged is still the present one."""
        present = self._controller.state.jobs.get(job.name)
        return present is job and job.run == run and self._is_judged(job)

    async def _judge(self, job: Job, unit: UnitListed | None) -> ev.Event:
        places = self._controller.places
        found = await self._runner.persist(find_run, job.name, job.run)
        has_done_if = bool(job.spec and job.spec.done_if)
        if unit and unit.active_state in RUNNING_STATES:
            self._follow(job, unit)  # before the look: an end that is told beside it is not lost
        view = await self._view(unit, has_done_if=has_done_if) if unit else None
        witness = end_of(found, has_done_if=has_done_if)
        same = found.manager == places.manager
        answer = reconcile(job.name, view, witness, same_manager=same)
        if isinstance(answer, ev.Reattached) and unit:
            self._follow(job, unit)
        else:
            self._runner.runs.pop(job.unit, None)
        return answer

    async def _view(self, unit: UnitListed, *, has_done_if: bool) -> UnitView | None:
        """Look at one listed unit; None where it is gone, or was never more than a name."""
        properties = await self._systemd.unit_properties(unit.name)
        if properties is None:
            return None
        active = str(properties.get("ActiveState", ""))
        end = run_end(properties, "failed", has_done_if=has_done_if)
        return UnitView(active, unit.job_id, end.invocation, end if active == "failed" else None)

    def _follow(self, job: Job, unit: UnitListed) -> None:
        """Collect again what the bus says of a unit that runs since before this session."""
        if job.spec and job.unit not in self._runner.runs:
            run = follow(self._runner, job.name, job.spec)
            run.is_started = True
            if unit.job_type == "start":
                run.accepted(unit.job_id)
            else:
                run.stopped()

    async def _see_stranger(self, unit: UnitListed) -> None:
        """Let a running unit that the queue does not believe in hold its lane."""
        state = self._controller.state
        job = names.job_of_unit(unit.name)
        if unit.active_state not in RUNNING_STATES or (job and job in state.jobs):
            return
        properties = await self._systemd.unit_properties(unit.name) or {}
        if unit.name in self._removed:
            return  # its end is told already, and would not be told again
        if unit.name.startswith(names.LEASE_UNIT_PREFIX):
            self._see_lease(unit.name, properties)
        slice_name = str(properties.get("Slice", ""))
        for lane in state.lanes:
            if slice_name == names.slice_of_lane(lane):
                self._controller.post(ev.UnitSeen(lane, unit.name))

    def _see_lease(self, unit: str, properties: Mapping[str, object]) -> None:
        """Take on a lease that is held since before this session."""
        told = properties.get("Environment", [])
        lease = lease_of_unit(unit, told if isinstance(told, list) else [])
        if lease and not self._runner.leases.is_watched(unit):
            self._controller.post(ev.LeaseSeen(lease))
            watch(self._runner, lease)

    async def _let_go_of_ended(self, unit: UnitListed) -> None:
        """Have the manager forget a failed unit whose result is on disk already.

        A controller that was killed between the two left it, and it would keep its name from the
        job's next run.
        """
        job = self._controller.state.jobs.get(names.job_of_unit(unit.name) or "")
        if unit.active_state != "failed" or (job and job.state is JobState.RUNNING):
            return
        with suppress(RemoteError):
            await self._systemd.reset_failed(unit.name)

    # Starting up

    async def _wait_started(self) -> None:
        """Let the queue start jobs once the box and its manager have finished starting."""
        deadline = asyncio.get_running_loop().time() + (
            self._controller.state.config.startup_wait_usec / 1e6
        )
        while late := await self._still_starting():
            if asyncio.get_running_loop().time() > deadline:
                self._controller.journal.write(
                    "error", "-", {"what": f"{WAITING_FOR.format(late)}; starting all the same"}
                )
                break
            self._controller.post(ev.Halted(Reason(Code.STARTING, WAITING_FOR.format(late))))
            await asyncio.sleep(STARTED_POLL_SEC)
        self.is_ready = self._bus.is_open
        self._controller.ready()

    async def _still_starting(self) -> str | None:
        """Say who has not finished starting; nobody, where the connection ended meanwhile."""
        try:
            return await still_starting(self._systemd, system=self._controller.options.system)
        except BusGone:
            return None
        except BusError:
            return "the service manager"


HANDLERS: dict[type, Callable[[Session, Any], None]] = {
    UnitChanged: Session._on_changed,
    JobRemoved: Session._on_job_removed,
    UnitRemoved: Session._on_unit_removed,
    Reloading: Session._on_reloading,
    ManagerGone: Session._on_gone,
    ManagerBack: Session._on_back,
}
