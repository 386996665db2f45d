"""What readers of the log are told of who uses a lane without being the queue's. Pure.

`gpu-wait` tells whom a job waits for; this is told whether a job waits, runs, or neither: `owner`
when somebody comes who counts, again when what he does is another, `owner-end` when he goes or has
the lane by right from then on. So an overlap with a job is told while it happens.
"""

from collections.abc import Iterator

from sdqueue.core.actions import Action, Log
from sdqueue.core.foreign import SETTLING, is_let_be
from sdqueue.core.model import LaneState, QueueState
from sdqueue.core.owner import Identity, Owner

NOBODY = Owner(0, note=SETTLING)
"""Who is told to use a lane while a device gives memory back."""


def tell_owners(state: QueueState) -> Iterator[Action]:
    """Tell of those who came, went, or do something else since the last step."""
    for name, lane in state.lanes.items():
        told, lane.told_owners = lane.told_owners, _counting(lane)
        for identity, owner in told.items():
            if identity not in lane.told_owners:
                yield Log("owner-end", "-", _fields(name, owner))
        for identity, owner in lane.told_owners.items():
            if _fields(name, owner) != _fields(name, told.get(identity)):
                yield Log("owner", "-", _fields(name, owner))


def _counting(lane: LaneState) -> dict[Identity, Owner]:
    users = [owner for owner in lane.users if owner.counts and not is_let_be(lane, owner)]
    if not users and lane.is_settling:
        users = [NOBODY]
    return {owner.identity: owner for owner in users}


def _fields(lane: str, owner: Owner | None) -> dict[str, object]:
    if owner is None:
        return {}
    return {
        "lane": lane,
        "pid": owner.pid,
        "ppid": owner.ppid,
        "cmd": owner.comm,
        "unit": owner.unit,
        "standing": str(owner.standing),
        "use": str(owner.use),
        "note": owner.note,
    }
