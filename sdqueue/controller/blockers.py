"""Who makes PID 1 refuse a start: the unit to wait for, found among units and unit jobs."""

from sdqueue.bus.systemd import Systemd
from sdqueue.core.spec import Lane
from sdqueue.words import names
from sdqueue.words.errors import BusError


async def find_blocker(systemd: Systemd, lane: Lane) -> str:
    """Name a unit with a start job that a start in `lane` would have to stop; empty if none.

    A start in the lane stops the targets of excluded lanes, and with them whatever requires these:
    a unit with a pending start job among them makes the transaction destructive. A unit of the lane
    itself stands in the way where its slice has a ConcurrencyHardMax=.
    """
    try:
        starting = {job.unit for job in await systemd.list_unit_jobs() if job.type == "start"}
        for other in (*sorted(lane.excludes), lane.name):
            target = names.target_of_lane(other)
            found = await systemd.unit_properties(target)
            requiring = found.get("RequiredBy", []) if found else []
            for unit in (*_texts(requiring), target):
                if unit in starting:
                    return unit
    except BusError:
        return ""
    return ""


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
