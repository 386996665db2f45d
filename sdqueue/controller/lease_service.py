"""Leases on the bus: asking for one, and org.sdqueue1.Lease, the object that tells its holder who
waits.

What makes a lease is its descriptor; the object lives as long as the lease does and only tells.
Texts and options of a request are a stranger's: they are checked here, at the door.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from sdqueue.bus.interface import Interface, Method, Property, SignalSpec, args
from sdqueue.bus.service import Credentials, Request, Service
from sdqueue.bus.tree import ObjectTree, object_path
from sdqueue.controller import lending
from sdqueue.controller.adopting import find_adopted
from sdqueue.controller.leases import give_up
from sdqueue.controller.lending import describe
from sdqueue.controller.offering import LEASE, LEASES, rows
from sdqueue.controller.permission import permitted
from sdqueue.core.lease import WHO_MAX, WHY_MAX, Lease, lease_row
from sdqueue.core.model import LaneState
from sdqueue.words.errors import LimitsExceeded, SdqueueError, UsageError
from sdqueue.words.names import shown

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller

LEASES_MAX = 16
"""Leases that one user may hold and ask for at a time."""

_OPTIONS: dict[str, type] = {"wait": bool}
_count = itertools.count()


class LeaseObject(NamedTuple):
    """What calls of one lease are answered from."""

    queue: "Controller"
    lane: LaneState
    lease: Lease


def lease_path(lease_id: str) -> str:
    """Return the path of a lease's object."""
    return object_path(LEASES, lease_id)


# Asking for one ---------------------------------------------------------------------------------


async def acquire(
    request: Request, queue: "Controller", lane: str, who: str, why: str, options: dict[str, object]
) -> tuple[str, int]:
    """Have a lease; with the option `wait` it is waited for as long as the caller is there."""
    wait = _options(options).get("wait", False)
    caller = await permitted(request, queue, "acquire-lease")
    lease = await describe(queue.runner, _lease(queue, caller, lane, who, why))
    acquiring = asyncio.ensure_future(have(queue, lease, wait=bool(wait)))
    try:
        if wait:
            await _wait_for_either(acquiring, request)
        return lease_path(lease.id), await acquiring
    except BaseException:
        give_up(acquiring)
        raise


async def have(queue: "Controller", lease: Lease, *, wait: bool) -> int:
    """Have a lease, and give its descriptor; raise LimitsExceeded where its user has too many."""
    _check_room(queue, lease.uid)
    return await queue.runner.leases.acquire(lease, wait=wait)


async def _wait_for_either(acquiring: "asyncio.Future[int]", request: Request) -> None:
    """Wait for the lease, or until nobody waits for it any more: then it is not asked for."""
    gone = asyncio.ensure_future(request.service.bus.wait_gone(request.sender))
    try:
        await asyncio.wait((acquiring, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    if not acquiring.done():
        raise SdqueueError("whoever asked for the lease is gone")


async def adopt(request: Request, queue: "Controller", lane: str, what: str, name: str) -> str:
    """Make a unit or a process that runs already the lane's occupant until it is gone."""
    caller = await permitted(request, queue, "acquire-lease")
    adopted = await find_adopted(queue.runner, what, caller, queue.state.uid)
    try:
        lease = _lease(queue, caller, lane, name or what[:WHO_MAX], "adopted")
        found = await describe(queue.runner, adopted.holds(lease))
        _check_room(queue, caller.uid)
        await queue.runner.leases.adopt(found, adopted.descriptor)
    finally:
        os.close(adopted.descriptor)
    return lease_path(lease.id)


def list_leases(_request: Request, queue: "Controller") -> object:
    """List all leases that are held."""
    found = [(lane, lease) for lane in queue.state.lanes.values() for lease in lane.leases.values()]
    return rows([lease_row(lease, lane.waiters) for lane, lease in found])


def _options(options: dict[str, object]) -> dict[str, object]:
    """Read the options of a request. Who relies on one that is not known is told, not ignored."""
    found = {key: getattr(value, "value", value) for key, value in options.items()}
    for key, value in found.items():
        if not isinstance(value, _OPTIONS.get(key, ())):
            known = ", ".join(f"{name} ({kind.__name__})" for name, kind in _OPTIONS.items())
            raise UsageError(f"there is no such option {shown(key)}; there are {known}")
    return found


def _lease(queue: "Controller", caller: Credentials, lane: str, who: str, why: str) -> Lease:
    if lane not in queue.state.config.lanes:
        lanes = ", ".join(queue.state.config.lanes)
        raise UsageError(f"there is no lane {shown(lane)}; the lanes are {lanes}")
    _check_text("who", who, WHO_MAX, must_be=True)
    _check_text("why", why, WHY_MAX)
    now_sec = time.time()
    number = f"l{int(now_sec * 1e6):x}{next(_count) % 0x100:02x}"
    return Lease(number, lane, who, why, caller.uid, caller.pid, since_sec=now_sec)


def _check_text(name: str, text: str, longest: int, *, must_be: bool = False) -> None:
    if len(text) > longest or not text.isprintable() or (must_be and not text.strip()):
        some = "some" if must_be else "any"
        raise UsageError(f"{name} is {some} text of one line, at most {longest} characters")


def _check_room(queue: "Controller", uid: int) -> None:
    lanes = queue.state.lanes.values()
    held = {lease.id: lease.uid for lane in lanes for lease in lane.leases.values()}
    asked = {key: each.uid for key, each in queue.runner.leases.asked.items()}
    if list((held | asked).values()).count(uid) >= LEASES_MAX:
        raise LimitsExceeded(f"uid {uid} holds or asks for {LEASES_MAX} leases already")


LEASE_METHODS = (
    Method(
        "AcquireLease",
        acquire,
        args("lane:s", "who:s", "why:s", "options:a{sv}"),
        args("lease:o", "fd:h"),
    ),
    Method("AdoptOwner", adopt, args("lane:s", "what:s", "name:s"), args("lease:o")),
    Method("ListLeases", list_leases, gives=args("leases:aa{sv}")),
)
"""Methods of the manager's interface."""


# The object -------------------------------------------------------------------------------------


async def release(request: Request, found: LeaseObject, parked_bytes: int) -> None:
    """Let a lease go, as closing its descriptor does; the holder may say what memory it keeps."""
    await permitted(request, found.queue, "manage-lanes", owner=found.lease.uid)
    await lending.release(found.queue.runner, found.lease, parked_bytes)


def _of(get: Callable[[Lease], object]) -> Callable[[LeaseObject], object]:
    return lambda found: get(found.lease)


LEASE_INTERFACE = Interface(
    LEASE,
    methods=(Method("Release", release, args("parked_bytes:t")),),
    properties=(
        Property("Lane", "s", _of(lambda lease: lease.lane), "const"),
        Property("Who", "s", _of(lambda lease: lease.who), "const"),
        Property("Why", "s", _of(lambda lease: lease.why), "const"),
        Property("SinceUSec", "t", _of(lambda lease: int(lease.since_sec * 1e6)), "const"),
        Property("Unit", "s", _of(lambda lease: lease.backing_unit), "const"),
        Property("Adopted", "s", _of(lambda lease: lease.adopted), "const"),
        Property("UID", "u", _of(lambda lease: lease.uid), "const"),
        Property("PID", "u", _of(lambda lease: lease.pid), "false"),
        Property("HolderUnit", "s", _of(lambda lease: lease.unit), "false"),
        Property("Waiters", "a(ss)", lambda found: list(found.lane.waiters)),
    ),
    signals=(SignalSpec("Revoked", args("reason:s")),),
)

STOPPED = "its unit was stopped"


class LeaseObjects:
    """The leases of one controller on one bus; `told` is who listeners know to wait for each."""

    def __init__(self, queue: "Controller", tree: ObjectTree, service: Service) -> None:
        self._queue = queue
        self._service = service
        self._told: dict[str, tuple[tuple[str, str], ...]] = {}
        tree.add_family(LEASES, self._find, self._names, LEASE_INTERFACE)

    def _all(self) -> Iterable[LeaseObject]:
        for lane in self._queue.state.lanes.values():
            for lease in lane.leases.values():
                yield LeaseObject(self._queue, lane, lease)

    def _find(self, lease_id: str) -> LeaseObject | None:
        return next((found for found in self._all() if found.lease.id == lease_id), None)

    def _names(self) -> Iterable[str]:
        return [found.lease.id for found in self._all()]

    def changed(self, lane: str) -> None:
        """Tell the holders of a lane's leases who waits now, where that is not what they know."""
        there = {found.lease.id: found for found in self._all()}
        self._told = {key: told for key, told in self._told.items() if key in there}
        for key, found in there.items():
            if found.lease.lane == lane and self._told.get(key, ()) != found.lane.waiters:
                self._told[key] = found.lane.waiters
                self._service.changed(lease_path(key), LEASE_INTERFACE, "Waiters")

    def revoked(self, unit: str) -> None:
        """Tell the holder of a lease that somebody else ended it."""
        for found in self._all():
            if found.lease.backing_unit == unit:
                path = lease_path(found.lease.id)
                self._service.emit(path, LEASE_INTERFACE, "Revoked", STOPPED)
