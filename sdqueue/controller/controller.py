"""The controller: one inbox, one loop, one task tree.

Theory of operation. Everything that happens becomes an event in the inbox: spool files that
changed, what PID 1 says, requests over the bus, the passing of time. The loop takes what is there,
asks the core for the next step, and starts a task for each action; the tasks report back through
the inbox. Nothing else changes the queue, and nothing is decided outside the core.

A connection to the bus is a session. Each begins with the same reconciliation, whether the
controller was just started, the bus came back, or PID 1 was reloaded; until it is done the queue is
halted. A session that ends halts the queue again and is followed by the next one; the running jobs
are PID 1's and do not notice.

To be kept in step by hand: a job with which the runner `is_busy` is not judged by a reconciliation,
since a task of the runner will report on it.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass

from sdqueue import __version__
from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import Systemd
from sdqueue.controller.actions import do, hook
from sdqueue.controller.files import Files
from sdqueue.controller.journal import Journal
from sdqueue.controller.pausing import Pausing
from sdqueue.controller.places import Places
from sdqueue.controller.reloading import Reader, Reloading
from sdqueue.controller.runner import Runner
from sdqueue.controller.session import Session
from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.decide import step
from sdqueue.core.model import Code, Job, Phase, QueueState, Reason, new_state
from sdqueue.core.plan import Plan
from sdqueue.core.spec import Config
from sdqueue.notify import notify, watchdog_sec
from sdqueue.words.errors import BusError, SpoolBusy, SpoolError

log = logging.getLogger(__name__)

RECONNECT_SEC = 1.0
DRAIN_SEC = 5.0
LOOK_AT_CLOCK_SEC = 10.0
"""How long to sleep at most where a time is waited for: the clock may be set, the box suspended."""
LEAVING_PHASES = frozenset({Phase.SETTLING, Phase.LEAVING})
NO_BUS = "there is no connection to the service manager"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where the controller works: `address` is the bus of the manager that runs the jobs."""

    address: str
    system: bool
    runtime_unit_dir: str


class Controller:
    """The queue at work, from `run` to `stop`."""

    def __init__(
        self, options: Options, config: Config, places: Places, journal: Journal, read: Reader
    ) -> None:
        self.options = options
        self.places = places
        self.journal = journal
        journal.on_trouble = self.trouble
        self.state: QueueState = new_state(config, uid=os.getuid())
        self.planned = Plan()
        self.runner = Runner(self)
        self.files = Files(places, self.post, self.trouble)
        self.pausing = Pausing(places.spool, self.post)
        self._reloading = Reloading(self, read)
        self._inbox: list[ev.Event] = []
        self._something = asyncio.Event()
        self._stop = asyncio.Event()
        self._next_turn = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._session: Session | None = None
        self._trouble: dict[str, str] = {}

    # Events in

    def post(self, event: ev.Event) -> None:
        """Give the queue one event; it is taken on in the next turn of the loop."""
        self._inbox.append(event)
        self._something.set()

    def stop(self) -> None:
        """Have `run` return; the jobs run on."""
        self._stop.set()

    def relook(self, name: str) -> None:
        """Look at a job's file again."""
        self.files.relook(name)

    async def wait_turn(self) -> None:
        """Wait until all that was posted so far has been taken on."""
        turn = self._next_turn
        await turn.wait()

    def recheck(self) -> None:
        """Compare again what is believed with what the manager has: an answer did not come."""
        if self._session:
            self.spawn(self._session.reconcile_again())

    def trouble(self, source: str, what: str | None) -> None:
        """Hear that `source` can't be written, or can again: nothing starts meanwhile."""
        if what == self._trouble.get(source):
            return
        if what is None:
            del self._trouble[source]
            self.ready()
        else:
            self._trouble[source] = what
            self.post(ev.Halted(Reason(Code.TROUBLE, what)))

    # The loop

    async def run(self) -> None:
        """Work until `stop`, or until something impossible happens."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: self.spawn(self._reloading.reload()))
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            background = [
                tasks.create_task(work, name=name) for name, work in self._background().items()
            ]
            await self._stop.wait()
            await self._settle_down()
            self.runner.owners.close()
            self.runner.leases.close()
            self.runner.inhibitor.close()
            self._say_goodbye()
            await self._drain()
            for task in background:
                task.cancel()

    async def _settle_down(self) -> None:
        """Have the ends that are on their way to the disk told, unless the disk refuses them: to
        the next controller they would be old news."""
        going = [job for job in self.state.jobs.values() if job.phase in LEAVING_PHASES]

        def is_going(job: Job) -> bool:
            return self.state.jobs.get(job.name) is job and job.phase in LEAVING_PHASES

        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SEC):
                while any(map(is_going, going)):
                    await self.wait_turn()

    async def _drain(self) -> None:
        """Have the last events written, unless the disk refuses them."""
        try:
            async with asyncio.timeout(DRAIN_SEC):
                await self.journal.wait_drained()
        except TimeoutError:
            log.warning("some events could not be written: %s", self.troubles)

    @property
    def troubles(self) -> list[str]:
        """What can't be written now, in words."""
        return list(self._trouble.values())

    def _background(self) -> dict[str, Coroutine[object, object, None]]:
        return {
            "journal": self.journal.run(),
            "files": self.files.run(),
            "loop": self._turn_forever(),
            "sessions": self._sessions(),
            "watchdog": _watchdog(),
        }

    async def _turn_forever(self) -> None:
        while True:
            await self._wait_something()
            events, self._inbox = self._inbox, []
            self._turn(events or [ev.Tick()])

    def _turn(self, events: list[ev.Event]) -> None:
        actions, self.planned = step(self.state, events, time.time())
        for action in actions:
            if isinstance(action, act.Log):
                self.journal.write(action.event, action.job, action.fields)
                self._announce(action)
            elif isinstance(action, act.LaneChanged):
                self._tell_lane(action)
            else:
                self.spawn(do(self.runner, action))
        turn, self._next_turn = self._next_turn, asyncio.Event()
        turn.set()

    async def _wait_something(self) -> None:
        """Wait for an event, or for the time at which the plan changes by itself."""
        wake = self.planned.wake_sec
        limit = min(LOOK_AT_CLOCK_SEC, max(0.0, wake - time.time())) if wake else None
        try:
            async with asyncio.timeout(limit):
                await self._something.wait()
        except TimeoutError:
            return
        self._something.clear()

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Run a task in the controller's tree: if it fails, so does the controller."""
        assert self._tasks is not None, "the controller is not running"
        self._tasks.create_task(work)

    # Sessions

    async def _sessions(self) -> None:
        await self.files.wait_scanned()
        self.journal.write("runner-start", "-", {"version": __version__})
        self.pausing.tell()
        while True:
            try:
                await self._one_session()
            except SpoolBusy:
                raise
            except (BusError, SpoolError) as error:
                what = str(error) if isinstance(error, SpoolError) else f"{NO_BUS}: {error}"
                log.warning("%s", what)
                self._lose_session(what)
            await asyncio.sleep(RECONNECT_SEC)

    async def _one_session(self) -> None:
        async with await Bus.connect(self.options.address) as bus:
            session = Session(self, bus)
            self._session = session
            await session.open()
            notify(f"READY=1\nSTATUS={len(self.state.jobs)} jobs")
            await bus.wait_closed()

    def _lose_session(self, why: str) -> None:
        self._session = None
        self.runner.systemd = None
        self.post(ev.Halted(Reason(Code.TROUBLE, why)))

    def use(self, systemd: Systemd) -> None:
        """Have actions done over this connection from now on."""
        self.runner.systemd = systemd
        for held_back in self.runner.hooks.take_held_back():
            self.spawn(hook(self.runner, held_back))

    async def make_lane_units(self, config: Config) -> None:
        """See that the service manager has the lanes' units of a configuration."""
        if self._session:
            await self._session.make_lane_units(config, regenerate=True)

    def ready(self) -> None:
        """Let the queue start jobs, if everything is reconciled, started and well."""
        if self._session and self._session.is_ready and not self._trouble:
            self.post(ev.Halted(None))

    def _announce(self, action: act.Log) -> None:
        if self._session:
            self._session.announce(action)

    def _tell_lane(self, action: act.LaneChanged) -> None:
        if self._session:
            self._session.lane_changed(action)

    def _say_goodbye(self) -> None:
        notify("STOPPING=1")
        running = [name for name, job in self.state.jobs.items() if job.state == "running"]
        for name in running or ["-"]:
            note = "its unit runs on" if running else ""
            self.journal.write("stopped", name, {"version": __version__, "note": note})


async def _watchdog() -> None:
    """Tell the service manager, as often as it asks, that the loop turns."""
    interval = watchdog_sec()
    while interval:
        notify("WATCHDOG=1")
        await asyncio.sleep(interval)
