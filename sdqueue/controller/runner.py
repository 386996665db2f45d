"""What the doing of every action needs: the queue's state, the spool, the service manager.

The actions themselves are in `actions` (the table), `starting`, `following`, `ending` and
`checking`: coroutines whose first argument is the `Runner`. They read `state` and never change it;
what came of an action is posted as an event.

When the disk refuses a step, nothing further is done: the step is tried again until the disk is
well, and nothing new starts meanwhile.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sdqueue.bus.systemd import Systemd
from sdqueue.controller.hooks import Hooks
from sdqueue.controller.inhibitor import Inhibitor
from sdqueue.controller.leases import Leases
from sdqueue.controller.owner_watch import OwnerWatch
from sdqueue.controller.places import Places
from sdqueue.controller.units import Run
from sdqueue.controller.whose import Asker
from sdqueue.core import events as ev
from sdqueue.core.lane import Lane
from sdqueue.core.model import QueueState
from sdqueue.words.errors import BusGone, SpoolError

RETRY_SEC = 2.0

T = TypeVar("T")
P = ParamSpec("P")


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
    """What actions are done with.

    `systemd` is None while there is no bus; `runs` are the units that were started and have not
    ended, by unit name; `starting` and `collecting` name the jobs of which a task will report.
    """

    def __init__(self, shell: Shell) -> None:
        self.state = shell.state
        self.places = shell.places
        self.post = shell.post
        self.spawn = shell.spawn
        self.relook = shell.relook
        self.recheck = shell.recheck
        self._trouble = shell.trouble
        self.systemd: Systemd | None = None
        self.runs: dict[str, Run] = {}
        self.starting: set[str] = set()
        self.collecting: set[str] = set()
        self.hooks = Hooks(shell.post)
        self.inhibitor = Inhibitor(shell.post)
        self.leases = Leases(shell.post)
        self.owners = OwnerWatch(
            shell.post,
            shell.spawn,
            self._asker,
            recheck_sec=lambda: self.state.config.recheck_usec / 1e6,
        )

    def is_busy(self, name: str) -> bool:
        """Say whether a task here will report on that job, or on that unit of a lease: no
        reconciliation may judge it now."""
        return name in self.starting or name in self.collecting or name in self.leases.granting

    def manager(self) -> Systemd:
        """Give the service manager, or raise BusGone while there is no connection to it."""
        if self.systemd is None:
            raise BusGone("there is no connection to the service manager now")
        return self.systemd

    async def persist(
        self, step: Callable[Concatenate[Places, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do a step on disk, again and again until the disk takes it; say so meanwhile."""
        source = f"{step.__name__} of {getattr(args[0], 'name', args[0])}"
        while True:
            try:
                done = await asyncio.to_thread(step, self.places, *args, **kwargs)
            except SpoolError as error:
                self._trouble(source, str(error))
                await self._mend()
            else:
                self._trouble(source, None)
                return done

    async def sit_out(self, what: str, error: Exception) -> None:
        """Have nothing new start for a while, since the disk refused something."""
        said = str(error) if isinstance(error, SpoolError) else f"no {what}: {error}"
        self._trouble(what, said)
        await self._mend()
        self._trouble(what, None)

    async def _mend(self) -> None:
        await asyncio.to_thread(self.places.mend)
        await asyncio.sleep(RETRY_SEC)

    def _asker(self, lane: Lane) -> Asker | None:
        """Say who asks whose a process is that uses a lane; None where it is configured no more."""
        present = self.state.lanes.get(lane.name)
        if present is None or present.lane != lane:
            return None
        return Asker(self.systemd, self.places.system, self._own_units(), lane.yielding)

    def _own_units(self) -> set[str]:
        return {unit for lane in self.state.lanes.values() for unit in lane.occupants}
