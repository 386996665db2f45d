"""`org.sdqueue1` on the bus: which objects there are, and what is told to who listens.

Each interface is a module: `manager_service`, `lane_service`, `job_service`, `lease_service`. Who
may do what is in `permission`, what of another user's job can be seen in `privacy`.
"""

from typing import TYPE_CHECKING

from sdqueue.bus.connection import Bus
from sdqueue.bus.service import Service
from sdqueue.bus.tree import ObjectTree
from sdqueue.controller.job_service import add_jobs
from sdqueue.controller.lane_service import LaneObjects
from sdqueue.controller.lease_service import LeaseObjects
from sdqueue.controller.manager_service import INTERFACE
from sdqueue.controller.offering import NAME, PATH, row
from sdqueue.controller.privacy import public
from sdqueue.core import actions as act
from sdqueue.words.errors import SpoolBusy

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller


class QueueService:
    """Serves one controller on one bus."""

    def __init__(self, controller: "Controller", bus: Bus) -> None:
        self._controller = controller
        self._bus = bus
        tree = ObjectTree()
        tree.add(PATH, controller, INTERFACE)
        add_jobs(controller, tree)
        self._service = Service(bus, tree)
        self._lanes = LaneObjects(controller, tree, self._service)
        self._leases = LeaseObjects(controller, tree, self._service)

    async def open(self) -> None:
        """Serve, then take the name; SpoolBusy if another controller of this bus has it."""
        trusted = (0, self._controller.state.uid)
        if self._controller.options.system:
            self._service.start(is_trusted=lambda uid: uid in trusted)
        else:
            self._service.start()
        if not await self._bus.request_name(NAME):
            raise SpoolBusy(
                f"another controller owns {NAME} on this bus: one bus has one queue. Stop it, or"
                " give this one a user manager of its own"
            )

    def announce(self, action: act.Log) -> None:
        """Tell who listens of one event: as in events.jsonl, but for what is not everybody's."""
        fields = public(action.fields) if self._controller.options.system else action.fields
        self._service.emit(PATH, INTERFACE, "Event", action.event, action.job, row(fields))

    def lane_changed(self, name: str) -> None:
        """Tell who listens how a lane is now, and who waits for its leases."""
        self._lanes.changed(name)
        self._leases.changed(name)

    def lease_revoked(self, unit: str) -> None:
        """Tell the holder of a lease that somebody stopped its unit."""
        self._leases.revoked(unit)
