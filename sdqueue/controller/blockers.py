"""Who makes PID 1 refuse a start: the unit to wait for, found among units and unit jobs."""

import time
from contextlib import suppress

from sdqueue.bus.systemd import Systemd, reaction
from sdqueue.controller.runner import Runner
from sdqueue.core import events as ev
from sdqueue.core.model import Code, Reason
from sdqueue.core.spec import Lane
from sdqueue.words import names
from sdqueue.words.errors import BusError, RemoteError

REFUSAL_SEC = 1.0
"""How long to wait where PID 1 refused, and whoever made it refuse is gone already."""


async def refusal(runner: Runner, lane: str, error: RemoteError) -> Reason:
    """Say who stands in the way. The error's text is only used where nobody is found."""
    blocker = ""
    present = runner.state.lanes.get(lane)  # it may be configured no more, and gone
    if present and reaction(error) == "occupied":
        with suppress(BusError):
            blocker = await find_blocker(runner.manager(), present.lane)
    if blocker:
        return Reason(Code.REFUSED, f"refused by the service manager: {blocker} runs", blocker)
    again = time.time() + REFUSAL_SEC
    return Reason(Code.REFUSED, f"refused by the service manager: {error.text}", "", again)


async def tell_if_gone(runner: Runner, reason: Reason) -> None:
    """Say that a blocker is gone, if it went before its end could end the wait for it."""
    if not reason.blocker:
        return
    with suppress(BusError):
        there = {job.unit for job in await runner.manager().list_unit_jobs()}
        if reason.blocker not in there:
            runner.post(ev.UnitGone(reason.blocker))


async def find_blocker(systemd: Systemd, lane: Lane) -> str:
    """Name a unit with a start job that a start in `lane` would have to stop; empty if none.

    A start in the lane stops the targets of excluded lanes, and with them whatever requires these:
    a unit with a pending start job among them makes the transaction destructive. A unit of the lane
    itself stands in the way where its slice has a ConcurrencyHardMax=.
    """
    starting = {job.unit for job in await systemd.list_unit_jobs() if job.type == "start"}
    for other in (*sorted(lane.excludes), lane.name):
        target = names.target_of_lane(other)
        found = await systemd.unit_properties(target)
        requiring = found.get("RequiredBy", []) if found else []
        for unit in (*_texts(requiring), target):
            if unit in starting:
                return unit
    return ""


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
