"""Waits for users of a lane that the queue did not start, and how they are told. Pure.

A job that could start, but for somebody else who uses what its lane is for, waits with the code
`foreign`. Programs that read events.jsonl are told in episodes: `gpu-wait` when one begins,
`gpu-wait-end` when it is over and nothing of the lane has started; a `start` in the lane ends it
without more words. An episode is about one user of the lane: another one is another episode, also
with the same pid. It is not over while a job of an excluded lane runs meanwhile, nor when another
job is the first to wait; where a wait begins again after its end, it is a new episode.
"""

from collections.abc import Iterable

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Log
from sdqueue.core.lease import Lease, Parked
from sdqueue.core.model import Code, Episode, LaneState, QueueState, Reason
from sdqueue.core.owner import Owner, Standing, Use

HOLDING = frozenset({Code.STARTING, Code.TROUBLE, Code.CHECKING})
"""Reasons of a lane that say nothing about whether the wait is over."""


def owners_seen(state: QueueState, event: ev.OwnersSeen, now_sec: float) -> list[Action]:
    """Take note of who uses a lane without being the queue's."""
    lane = state.lanes.get(event.lane)
    if lane:
        lane.users, lane.is_settling = event.owners, event.settling
        lane.looked_sec, lane.is_looking = now_sec, False
        lane.parked = [parked for parked in lane.parked if _is_idle(lane, parked)]
    return []


def _is_idle(lane: LaneState, parked: Parked) -> bool:
    """Say whether somebody who has parked memory is there, and has not worked again."""
    uses = {owner.use for owner in _all_of(lane, parked)}
    return bool(uses) and Use.ACTIVE not in uses


def _all_of(lane: LaneState, parked: Parked) -> list[Owner]:
    return [owner for owner in lane.users if is_holder(parked.lease, owner)]


LOOK_SECONDS = 0.2
"""So long does a look at who uses a lane hold, where it found nobody: who comes meanwhile is missed
where the kernel does not tell of it, as it does not of processes, listeners and locks."""


def needs_look(state: QueueState, lane: LaneState, now_sec: float) -> bool:
    """Say whether to look who uses the lane before a job of it may start, or for how long yet."""
    if not lane.lane.is_watched:
        return False
    holds_sec = state.config.recheck_usec / 1e6 if in_use(lane) else LOOK_SECONDS
    return not lane.looked_sec or not 0.0 <= now_sec - lane.looked_sec <= holds_sec


def look_again_sec(state: QueueState, lane: LaneState, block: Reason | None) -> float:
    """Give the time at which a lane whose job waits for its user is looked at again; 0 if never."""
    waits = block is not None and block.code is Code.FOREIGN
    if not waits or not lane.lane.is_watched or lane.is_looking:
        return 0.0
    return lane.looked_sec + state.config.recheck_usec / 1e6


SETTLING = "who used it is gone, and the device gives the memory back"


def who_counts(lane: LaneState) -> Owner | None:
    """Pick the user whom a job waits for, None if there is none: one that works before others."""
    counting = [owner for owner in lane.users if owner.counts and not is_let_be(lane, owner)]
    return min(counting, key=_precedence, default=None)


def is_let_be(lane: LaneState, owner: Owner) -> bool:
    """Say whether a user has the lane by right: by a lease, or with memory that it said it keeps
    when it let go, for as long as it does not work and has no more than that.

    Who lets go need not be who has the memory: a model server's router speaks for its child.
    """
    if any(has_by(lease, owner) for lease in lane.leases.values()):
        return True
    return owner.use is Use.RESIDENT and any(
        is_holder(parked.lease, owner)
        and sum(each.memory_bytes for each in _all_of(lane, parked)) <= parked.memory_bytes
        for parked in lane.parked
    )


_MANAGERS = ("user@", "capsule@")


def is_holder(lease: Lease, owner: Owner) -> bool:
    """Say whether a user of the lane is who holds a lease on it, or is in the same service.

    Other units have in them what has nothing to do with each other: a person's whole session.
    """
    if lease.pid and lease.identity == owner.identity:
        return True
    is_service = lease.unit.endswith(".service") and not lease.unit.startswith(_MANAGERS)
    return is_service and (lease.unit, lease.uid) == (owner.unit, owner.uid)


def has_by(lease: Lease, owner: Owner) -> bool:
    """Say whether a user has the lane by a lease that is held: as its holder, or as a child of
    that, as what a script starts that somebody runs at a terminal."""
    return is_holder(lease, owner) or (owner.ppid > 0 and owner.ppid == lease.pid)


_USES = tuple(Use)
_STANDINGS = tuple(Standing)


def _precedence(owner: Owner) -> tuple[int, int, int]:
    return _STANDINGS.index(owner.standing), _USES.index(owner.use), owner.pid


def in_use(lane: LaneState) -> Reason | None:
    """Say who keeps a job from starting, None if nobody."""
    owner = who_counts(lane)
    if owner is None:
        return Reason(Code.FOREIGN, SETTLING, "") if lane.is_settling else None
    where = f" in {owner.unit}" if owner.unit else ""
    note = f" ({owner.note})" if owner.note else ""
    detail = f"{owner.comm}, pid {owner.pid}{where}, uses lane {lane.lane.name}{note}"
    return Reason(Code.FOREIGN, detail, owner.unit or owner.comm)


# Episodes


def tell_episodes(
    state: QueueState, actions: Iterable[Action], blocks: dict[str, Reason], now_sec: float
) -> list[Action]:
    """Begin and end episodes as the step that was just planned has it."""
    for action in actions:
        if isinstance(action, Log) and action.event == "start":
            _close(state, str(action.fields["lane"]))
    told: list[Action] = []
    for name, lane in state.lanes.items():
        told += _tell(state, lane, blocks.get(name), now_sec)
    return told


def _close(state: QueueState, name: str) -> None:
    """End an episode by a start; the next start needs a look of its own."""
    if lane := state.lanes.get(name):
        lane.episode, lane.looked_sec = None, 0.0


def _tell(state: QueueState, lane: LaneState, block: Reason | None, now_sec: float) -> list[Action]:
    owner, episode = _stranger(lane, block), lane.episode
    if owner:
        if episode and episode.owner.identity == owner.identity:
            return []
        ended = _end(lane, "another one uses it now") if episode else []
        return [*ended, _begin(state, lane, owner, now_sec)]
    over = episode and _over(lane, block)
    return _end(lane, over) if over else []


def _stranger(lane: LaneState, block: Reason | None) -> Owner | None:
    """Give whom the head of a lane waits for, who is not the queue's: a user, or who leases it."""
    if block and block.code is Code.LEASED and block.blocker in lane.leases:
        return lane.leases[block.blocker].owner
    return who_counts(lane) if block and block.code is Code.FOREIGN else None


def _begin(state: QueueState, lane: LaneState, owner: Owner, now_sec: float) -> Log:
    state.episodes += 1
    lane.episode = Episode(f"{int(now_sec * 1e6):x}-{state.episodes}", owner)
    fields: dict[str, object] = {
        "lane": lane.lane.name,
        "pid": owner.pid,
        "ppid": owner.ppid,
        "cmd": owner.comm,
        "unit": owner.unit,
        "note": owner.note,
        "episode": lane.episode.id,
    }
    return Log("gpu-wait", lane.line.head() or "-", fields)


def _over(lane: LaneState, block: Reason | None) -> str:
    """Say why an episode is over; empty while it is not, or while that is not sure."""
    if lane.occupants or lane.is_looking or (block and block.code in HOLDING):
        return ""
    if block and block.code is Code.PAUSED:
        return "the lane is paused"
    if not len(lane.line):
        return "no job waits for the lane any more"
    return "" if in_use(lane) else "it is gone"


def _end(lane: LaneState, why: str) -> list[Action]:
    episode, lane.episode = lane.episode, None
    assert episode is not None, "an episode that did not begin can't end"
    fields: dict[str, object] = {
        "lane": lane.lane.name,
        "pid": episode.owner.pid,
        "why": why,
        "episode": episode.id,
    }
    return [Log("gpu-wait-end", "-", fields)]
