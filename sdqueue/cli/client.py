"""The controller, asked over the bus: typed questions, plain answers.

Knows the interface org.sdqueue1.Manager. Loads asyncio and the bus, so verbs import it only when
they have to ask. Rows are dicts as `core.view` makes them; a value that does not apply is None
again here.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sdqueue.bus.address import system_bus_address, user_bus_address
from sdqueue.bus.connection import Bus
from sdqueue.bus.wire import Variant
from sdqueue.cli.exits import NO_CONTROLLER
from sdqueue.cli.place import Place
from sdqueue.core.keys import JOB_KEYS, LANE_KEYS, OWNER_KEYS
from sdqueue.words import errors
from sdqueue.words.errors import BusGone, RemoteError, SdqueueError

NAME = "org.sdqueue1"
PATH = "/org/sdqueue1"
MANAGER = f"{NAME}.Manager"
PROPERTIES = "org.freedesktop.DBus.Properties"
ANSWER_SEC, PERSON_SEC, FOR_EVER_SEC = 25.0, 150.0, 1e9
"""How long an answer may take; where a person is asked for leave; where it is waited for."""
NAMES_PER_CALL = 500
"""Jobs asked for at once: the controller does nothing else while it answers."""
TOO_OLD = "the controller that runs is older than this program and can't tell: sdqueue upgrade."
_UNKNOWN_METHOD = "org.freedesktop.DBus.Error.UnknownMethod"
_NOBODY = frozenset(
    f"org.freedesktop.DBus.Error.{name}"
    for name in ("ServiceUnknown", "NameHasNoOwner", "NoReply", "Disconnected")
) | {"org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.systemd1.LoadFailed"}

Row = dict[str, object]
T = TypeVar("T")


class NoController(SdqueueError):
    """Nobody answers for the queue on the bus: start the controller."""

    exit_status = NO_CONTROLLER


class TooOld(SdqueueError):
    """The controller does not know what it is asked for: ask for something else, or upgrade it."""


class Client:
    """Questions to one controller; its errors come out as the classes that it raised."""

    def __init__(self, bus: Bus, place: Place) -> None:
        self._bus = bus
        self._place = place

    async def _call(self, member: str, signature: str = "", *body: object) -> object:
        return await self._ask(MANAGER, member, signature, *body)

    async def _ask(self, interface: str, member: str, signature: str, *body: object) -> object:
        try:
            values = await self._bus.call(NAME, PATH, interface, member, signature, *body)
        except RemoteError as error:
            raise _understood(error, self._place) from None
        return values[0] if values else None

    async def _change(
        self,
        member: str,
        signature: str,
        *body: object,
        timeout_sec: float = ANSWER_SEC,
        reply_fds: bool = False,
    ) -> tuple[object, ...]:
        """Call what may need somebody's leave; a person at a terminal may be asked for it."""
        may_ask = os.isatty(0)
        try:
            return await self._bus.call(
                NAME,
                PATH,
                MANAGER,
                member,
                signature,
                *body,
                timeout_sec=max(timeout_sec, PERSON_SEC) if may_ask else timeout_sec,
                reply_fds=reply_fds,
                interactive=may_ask,
            )
        except RemoteError as error:
            raise _understood(error, self._place) from None

    async def require(self, feature: str) -> None:
        """Raise TooOld unless the controller has a feature: who relies on it does nothing else."""
        features = (await self.properties()).get("Features")
        if not isinstance(features, list) or feature not in features:
            raise TooOld(
                f"the controller that runs is older than this program and has no {feature}:"
                " sdqueue upgrade."
            )

    async def list_jobs(self, names: Sequence[str]) -> list[Row]:
        """Return the rows of those jobs that are queued or running; of all for no names."""
        found: list[Row] = []
        if not names:
            return _rows(await self._call("ListJobs", "as", []), JOB_KEYS)
        for start in range(0, len(names), NAMES_PER_CALL):
            some = list(names[start : start + NAMES_PER_CALL])
            found += _rows(await self._call("ListJobs", "as", some), JOB_KEYS)
        return found

    async def list_aside(self) -> list[Row] | None:
        """Return the rows of queued and running jobs, but for those that only stand behind the head
        of their lane; None from a controller that can't tell these apart.
        """
        try:
            return _rows(await self._call("ListAside"), JOB_KEYS)
        except TooOld:
            return None

    async def list_lanes(self) -> list[Row]:
        """Return the rows of all lanes."""
        return _rows(await self._call("ListLanes"), LANE_KEYS)

    async def list_owners(self, lane: str = "") -> list[Row]:
        """Return who has or uses a lane now; of all lanes for no name."""
        await self.require("owners")
        return _rows(await self._call("ListOwners", "s", lane), OWNER_KEYS)

    async def plan(self) -> list[Row]:
        """Return all queued jobs in the order in which they would start."""
        return _rows(await self._call("Plan"), JOB_KEYS)

    async def why(self, name: str) -> list[Row]:
        """Return the chain of reasons of a job."""
        return _rows(await self._call("Why", "s", name), ())

    async def cancel(self, name: str) -> str:
        """Cancel a job; return what that does: `parked` or `stopping`."""
        (effect,) = await self._change("CancelJob", "s", name)
        return str(effect)

    async def pause(self, lane: str, *, paused: bool) -> None:
        """Pause a lane, or let it go on."""
        await self._change("PauseLane", "sb", lane, paused)

    async def acquire(self, lane: str, who: str, why: str, *, wait: bool) -> tuple[str, int]:
        """Have a lease; return its object's path, and the descriptor that holds it, the caller's.

        With `wait` it is waited for as long as this is not cancelled; else LaneBusy.
        """
        await self.require("leases")
        path, descriptor = await self._change(
            "AcquireLease",
            "sssa{sv}",
            *(lane, who, why, {"wait": Variant("b", wait)}),
            timeout_sec=FOR_EVER_SEC if wait else ANSWER_SEC,
            reply_fds=True,
        )
        if not isinstance(descriptor, int):
            raise SdqueueError("the controller gave no descriptor with the lease.")
        return str(path), descriptor

    async def adopt(self, lane: str, what: str, name: str) -> str:
        """Make a unit or a process the lane's occupant; return the path of the lease's object."""
        await self.require("leases")
        (path,) = await self._change("AdoptOwner", "sss", lane, what, name)
        return str(path)

    async def properties(self) -> Row:
        """Return the manager's properties."""
        found = await self._ask(PROPERTIES, "GetAll", "s", MANAGER)
        return dict(found) if isinstance(found, dict) else {}


def _rows(found: object, keys: "Sequence[str] | dict[str, str]") -> list[Row]:
    if not isinstance(found, list):
        return []
    blank: Row = dict.fromkeys(keys)
    return [{**blank, **row} for row in found if isinstance(row, dict)]


def _understood(error: RemoteError, place: Place) -> SdqueueError:
    """Return the error as its own class, or NoController."""
    if error.name in _NOBODY:
        return NoController(f"no controller is running; {place.start_hint()}.")
    if error.name == _UNKNOWN_METHOD:
        return TooOld(TOO_OLD)
    kind = ERRORS.get(error.name)
    return kind(error.text) if kind else error


ERRORS: dict[str, type[SdqueueError]] = {
    kind.bus_name: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, SdqueueError) and kind is not RemoteError
}
"""The classes by their names on the bus."""


def ask(place: Place, question: Callable[[Client], Awaitable[T]]) -> T:
    """Connect, ask, and return the answer; NoController where nobody is there to ask."""

    async def asking() -> T:
        async with await Bus.connect(_address(place)) as bus:
            return await question(Client(bus, place))

    try:
        return asyncio.run(asking())
    except BusGone as error:
        raise NoController(
            f"the controller can't be asked, since {error}; {place.start_hint()}."
        ) from None


def ask_if_there(place: Place, question: Callable[[Client], Awaitable[T]]) -> T | None:
    """Ask if there is a controller, for verbs that can do without; None if there is none."""
    if os.access(place.spool.root, os.R_OK) and not place.has_controller():
        return None
    try:
        return ask(place, question)
    except NoController:
        return None


def _address(place: Place) -> str:
    address = system_bus_address if place.system else user_bus_address
    return address(os.environ)
