"""Who uses a lane by a unit that is active. Pure: the manager is asked by the controller.

Such a unit counts though nothing tells what it does, so a service that uses a device on another
box, or now and then, can be waited for.
"""

from typing import NamedTuple

from sdqueue.core.lane import Lane
from sdqueue.owners.sighting import Report, Sighting


class ActiveUnit(NamedTuple):
    """A unit that its manager says is active. `pid` is its main process, 0 where it has none."""

    name: str
    pid: int = 0


def report(lane: Lane, active: tuple[ActiveUnit, ...] | None) -> Report:
    """Make sightings of what the manager said; None: it could not be asked."""
    if active is None and lane.units:
        return Report(cannot_tell="the service manager can't be asked for units")
    return Report(
        tuple(
            Sighting(unit.pid, "unit", f"is {unit.name}, which is active", is_named=True)
            for unit in active or ()
        )
    )
