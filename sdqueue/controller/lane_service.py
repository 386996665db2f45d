"""org.sdqueue1.Lane: one lane on the bus, how it is now, and who listens is told.

Of a lane's properties those are announced that say whether it can be had: its verdict and who waits
for its leases. The rest follows from every job's way and is for reading.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from sdqueue.bus.interface import Interface, Method, Property
from sdqueue.bus.service import Request, Service
from sdqueue.bus.tree import ObjectTree, object_path
from sdqueue.controller.offering import LANE, LANES, row
from sdqueue.controller.permission import permitted
from sdqueue.controller.privacy import public
from sdqueue.core.model import LaneState
from sdqueue.core.view import reason_row
from sdqueue.words.errors import UsageError
from sdqueue.words.names import shown

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller


class LaneObject(NamedTuple):
    """What calls of one lane are answered from."""

    queue: "Controller"
    name: str

    @property
    def state(self) -> LaneState:
        return self.queue.state.lanes[self.name]


def lane_path(name: str) -> str:
    """Return the path of a lane's object."""
    return object_path(LANES, name)


def lane_named(queue: "Controller", name: str) -> str:
    """Return the name of a lane that there is; raise UsageError for another."""
    if name not in queue.state.lanes:
        lanes = ", ".join(queue.state.lanes)
        raise UsageError(f"there is no lane {shown(name)}; the lanes are {lanes}")
    return name


def get_lane(_request: Request, queue: "Controller", name: str) -> str:
    """Return the path of a lane's object."""
    return lane_path(lane_named(queue, name))


async def set_paused(request: Request, queue: "Controller", name: str, paused: bool) -> None:
    """Start nothing new in a lane, or let it go on."""
    await permitted(request, queue, "manage-lanes")
    await queue.pausing.change(lane_named(queue, name), paused=paused)


async def _pause(request: Request, lane: LaneObject) -> None:
    await set_paused(request, lane.queue, lane.name, True)


async def _resume(request: Request, lane: LaneObject) -> None:
    await set_paused(request, lane.queue, lane.name, False)


def _reason(lane: LaneObject) -> object:
    told = reason_row(lane.queue.planned.blocks.get(lane.name)) or {}
    return row(public(told) if lane.queue.options.system else told)


def _of(get: Callable[[LaneState], object]) -> Callable[[LaneObject], object]:
    return lambda lane: get(lane.state)


LANE_INTERFACE = Interface(
    LANE,
    methods=(Method("Pause", _pause), Method("Resume", _resume)),
    properties=(
        Property("Name", "s", lambda lane: lane.name, "const"),
        Property("State", "s", _of(lambda lane: str(lane.verdict.word))),
        Property("Holder", "s", _of(lambda lane: lane.verdict.holder)),
        Property("Detail", "s", _of(lambda lane: lane.verdict.detail)),
        Property("Generation", "t", _of(lambda lane: lane.verdict.generation)),
        Property("Paused", "b", _of(lambda lane: lane.paused)),
        Property("Waiters", "a(ss)", _of(lambda lane: list(lane.waiters))),
        Property("Queued", "u", _of(lambda lane: len(lane.line) + len(lane.gated)), "false"),
        Property("Next", "s", _of(lambda lane: lane.line.head() or ""), "false"),
        Property("Reason", "a{sv}", _reason, "false"),
        Property("Occupants", "as", _of(lambda lane: list(lane.occupants)), "false"),
        Property("Slots", "u", _of(lambda lane: lane.lane.slots), "false"),
        Property("Excludes", "as", _of(lambda lane: sorted(lane.lane.excludes)), "false"),
    ),
)


class LaneObjects:
    """The lanes of one controller on one bus; `told` is what listeners know of each."""

    def __init__(self, queue: "Controller", tree: ObjectTree, service: Service) -> None:
        self._queue = queue
        self._service = service
        self._told = {name: _announced(LaneObject(queue, name)) for name in queue.state.lanes}
        tree.add_family(LANES, self._find, self._names, LANE_INTERFACE)

    def _find(self, name: str) -> LaneObject | None:
        return LaneObject(self._queue, name) if name in self._queue.state.lanes else None

    def _names(self) -> Iterable[str]:
        return list(self._queue.state.lanes)

    def changed(self, name: str) -> None:
        """Tell in one signal what of a lane is not what listeners know; nothing if all is."""
        lane = self._find(name)
        if lane is None:
            return
        before, self._told[name] = self._told.get(name, {}), (now := _announced(lane))
        news = [key for key, value in now.items() if before.get(key) != value or key not in before]
        self._service.changed(lane_path(name), LANE_INTERFACE, *news)


def _announced(lane: LaneObject) -> dict[str, object]:
    """Give the values of the properties whose changes are told."""
    return {each.name: each.get(lane) for each in LANE_INTERFACE.properties if each.emits == "true"}
