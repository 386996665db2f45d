"""Keeping up with who uses a lane: a look, and another one when the kernel says that it may differ.

Theory of operation. A look is a sweep by the detectors, in a thread, and then the question whose
each process is. The watches for what may change are made before it: the ends of the processes that
were found, their control groups' emptying, the opening and closing of the lane's devices, and
devices that come. Each of these has the lane looked at anew; who used it is never remembered. So
when the child of a model server's router ends, the next look names the router.

Ends are looked after at once, and so is the first opening; more of them come in bursts, so the next
look waits a moment, longer the dearer the last one was. And since a program that has just opened a
device has done nothing with it yet, another look follows. Where nothing changes nothing runs, but
for a slow look at lanes on which somebody could be at all, now and then at every descriptor.

A device gives memory back after its user is gone. So a lane that was used is settling until two
readings agree, at most SETTLE_SEC; what is left then is a note, and no reason to wait.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from asyncinotify import Mask

from sdqueue.bus.systemd import Systemd
from sdqueue.cgroup import UNIFIED_DIRS
from sdqueue.controller.notices import CAME, USED, Notices
from sdqueue.controller.whose import Asker, whose
from sdqueue.core import events as ev
from sdqueue.core.lane import Lane
from sdqueue.core.owner import Owner, Use
from sdqueue.core.reconcile import RUNNING_STATES
from sdqueue.owners import judge
from sdqueue.owners.box import Box, look_at
from sdqueue.owners.locks import owner_files
from sdqueue.owners.sweep import BETWEEN_SEC, HIDDEN, LaneMemory, Seen, Sweep
from sdqueue.owners.units import ActiveUnit
from sdqueue.words.errors import BusError

RECHECK_SEC = 60.0
SETTLE_SEC = 30.0
READING_SEC = 0.25
OPENED_SEC = 0.2
FOLLOW_SEC = 5.0
"""After a device was opened: by then it can be seen what is done with it."""
LATE_SEC = 30.0
LATE = Owner(
    0,
    comm="unknown",
    use=Use.UNKNOWN,
    note=f"it can't be told: a look at who uses it is not over after {LATE_SEC:g} s",
)
"""Who is told to use a lane while a look at it does not come to its end."""
REST_MAX_SEC = 10.0
PRICE = 50
"""Looks for the opening of devices take at most one part in so many of the time."""
TRIES = 3
FULL_EVERY = 10
"""Of the looks that nothing asked for one in so many is at every descriptor."""


NOBODY = Seen(())


@dataclass(slots=True)
class _Watched:
    """A lane, and what is kept of it between two looks.

    `began` counts looks. `cost_sec` is what the last sweep took, `ended_sec` when it was over.
    `settling_since_sec` is 0 while nothing settles.
    """

    lane: Lane
    memory: LaneMemory = field(default_factory=LaneMemory)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    began: int = 0
    seen: Seen = NOBODY
    notices: Notices | None = None
    timer: asyncio.TimerHandle | None = None
    is_full: bool = True
    follow: bool = False
    cost_sec: float = 0.0
    ended_sec: float = 0.0
    settling_since_sec: float = 0.0


class _Files(NamedTuple):
    """The files of a lane that are watched."""

    nodes: list[str]
    directories: list[str]
    locked: list[str]


class OwnerWatch:
    """Looks and watches, for each lane on which somebody could be.

    `asker` says who asks whose a process is, None for a lane that is configured no more; `root` is
    a test's own tree.
    """

    def __init__(
        self,
        post: Callable[[ev.Event], None],
        spawn: Callable[[Coroutine[object, object, None]], None],
        asker: Callable[[Lane], Asker | None],
        *,
        recheck_sec: Callable[[], float] = lambda: RECHECK_SEC,
        root: str = "/",
    ) -> None:
        self._post = post
        self._spawn = spawn
        self._asker = asker
        self._recheck_sec = recheck_sec
        self._root = root
        self._lanes: dict[str, _Watched] = {}

    async def look(self, lane: Lane) -> None:
        """Look who uses a lane, tell the queue, and watch what could change that.

        Nothing is told of a lane that is another, or none, by the end: that one is looked at anew.
        """
        watched = self._lanes.get(lane.name)
        if self._asker(lane) is None:
            if watched and watched.lane == lane:
                self._drop(lane.name)
            return
        if watched is None or watched.lane != lane:
            self._drop(lane.name)
            watched = self._lanes[lane.name] = _Watched(lane)
        before = watched.began
        async with watched.lock:
            if watched.began > before:
                return  # a look that began after this was asked for has told
            watched.began += 1
            if asker := self._asker(lane):
                late = asyncio.get_running_loop().call_later(LATE_SEC, self._is_late, watched)
                try:
                    await self._look(watched, asker)
                finally:
                    late.cancel()
            if self._asker(lane) is None and self._lanes.get(lane.name) is watched:
                self._drop(lane.name)

    def _is_late(self, watched: _Watched) -> None:
        """Have a lane not wait in silence for a look that a dead file system holds up, say."""
        self._post(ev.OwnersSeen(watched.lane.name, (LATE,)))

    def close(self) -> None:
        """Watch nobody any more."""
        for name in list(self._lanes):
            self._drop(name)

    # One look

    async def _look(self, watched: _Watched, asker: Asker) -> None:
        if watched.timer:
            watched.timer.cancel()
        notices, is_full = Notices(), watched.is_full
        try:
            self._watch_devices(watched, await self._files(watched.lane), notices)
            found = await self._found(watched, asker, notices, is_full=is_full)
        except BaseException:
            notices.close()
            raise
        is_present = self._lanes.get(watched.lane.name) is watched
        if not is_present or self._asker(watched.lane) is None:
            notices.close()  # the lane is another now, and is looked at as that
            return
        old, watched.notices = watched.notices, notices
        if old:
            old.close()
        self._tell(watched, found)

    async def _found(
        self, watched: _Watched, asker: Asker, notices: Notices, *, is_full: bool
    ) -> Seen:
        """Sweep until nobody ends under the look: what he had may be another's now."""
        for _ in range(TRIES):
            found = await self._swept(watched, asker, is_full=is_full)
            owners = [await self._belonging(watched, asker, each, notices) for each in found.owners]
            if None not in owners:
                break
        return replace(found, owners=tuple(filter(None, owners)))

    async def _swept(self, watched: _Watched, asker: Asker, *, is_full: bool) -> Seen:
        loop, lane = asyncio.get_running_loop(), watched.lane
        active = await active_units(asker.systemd, lane)
        sweep = Sweep(lane, watched.memory, root=self._root, active=active)
        began = loop.time()
        seen = await asyncio.to_thread(sweep.first_seen, is_full=is_full)
        watched.cost_sec = loop.time() - began
        if seen is not None:
            return seen
        await asyncio.sleep(BETWEEN_SEC)
        return await asyncio.to_thread(sweep.again_seen)

    def _tell(self, watched: _Watched, found: Seen) -> None:
        """Post what was found, and say when to look again if nothing happens."""
        now = asyncio.get_running_loop().time()
        settling = _settles(watched, found, now)
        watched.seen, watched.ended_sec = found, now
        watched.settling_since_sec = (watched.settling_since_sec or now) if settling else 0.0
        follow, watched.follow, watched.is_full = watched.follow, False, False
        self._post(ev.OwnersSeen(watched.lane.name, found.owners, settling))
        if settling:
            self._again(watched, READING_SEC)
        elif follow:
            self._again(watched, FOLLOW_SEC, is_full=True)
        elif self._is_live(watched.lane):
            is_full = watched.began % FULL_EVERY == 0
            self._again(watched, self._recheck_sec(), is_full=is_full)

    def _is_live(self, lane: Lane) -> bool:
        """Say whether somebody could use the lane at all."""
        named = (lane.foreign, lane.ports, lane.owner_files, lane.units)
        try:
            return any(named) or bool(Box(self._root).nodes(lane))
        except OSError:
            return True

    # Whose it is

    async def _belonging(
        self, watched: _Watched, asker: Asker, owner: Owner, notices: Notices
    ) -> Owner | None:
        """Say whose a process is, and watch it; None where it has ended meanwhile."""
        if not owner.pid or self._root != "/":
            return owner
        try:
            pidfd = os.pidfd_open(owner.pid)
        except ProcessLookupError:
            return None
        except OSError:
            return owner  # it can't be watched; a later look says more
        try:
            if not _is_same(owner):
                return None
            placed = await _placed(asker, owner, pidfd)
            if placed is None:
                return None
            owner = judge.excused(placed)
            self._watch(watched, owner, notices, pidfd)
            pidfd = -1
        finally:
            if pidfd >= 0:
                os.close(pidfd)
        return owner

    def _watch(self, watched: _Watched, owner: Owner, notices: Notices, pidfd: int) -> None:
        """Look again when an owner has ended, soon where nobody waits for it."""
        delay_sec = 0.0 if owner.counts else FOLLOW_SEC
        notices.watch_process(pidfd, lambda: self._again(watched, delay_sec))
        if owner.counts and (file := _events_file(owner)):
            notices.watch_files([file], Mask.MODIFY, lambda: self._again(watched, 0.0))

    # Looking again

    async def _files(self, lane: Lane) -> _Files:
        return await asyncio.to_thread(_files, Box(self._root), lane)

    def _watch_devices(self, watched: _Watched, files: _Files, notices: Notices) -> None:
        notices.watch_files(files.nodes, USED, lambda: self._used(watched))
        notices.watch_files(
            files.directories, CAME, lambda: self._again(watched, OPENED_SEC, is_full=True)
        )
        notices.watch_files(files.locked, Mask.CLOSE, lambda: self._again(watched, 0.0))

    def _used(self, watched: _Watched) -> None:
        """A device was opened or closed: look at once, and a moment after the last look if more
        of that comes."""
        watched.follow = True
        rest_sec = max(OPENED_SEC, min(PRICE * watched.cost_sec, REST_MAX_SEC))
        now_sec = asyncio.get_running_loop().time()
        self._again(watched, max(0.0, watched.ended_sec + rest_sec - now_sec))

    def _again(self, watched: _Watched, delay_sec: float, *, is_full: bool = False) -> None:
        """Look again after a while, unless that is to be earlier already."""
        if self._lanes.get(watched.lane.name) is not watched:
            return
        loop = asyncio.get_running_loop()
        rest_sec = watched.ended_sec + 5 * watched.cost_sec - loop.time()
        at = loop.time() + max(delay_sec, min(rest_sec, 1.0))
        watched.is_full = watched.is_full or is_full
        timer = watched.timer
        if timer and not timer.cancelled() and loop.time() < timer.when() <= at:
            return
        if timer:
            timer.cancel()
        watched.timer = loop.call_at(at, lambda: self._spawn(self.look(watched.lane)))

    def _drop(self, name: str) -> None:
        watched = self._lanes.pop(name, None)
        if watched and watched.timer:
            watched.timer.cancel()
        if watched and watched.notices:
            watched.notices.close()


def _files(box: Box, lane: Lane) -> _Files:
    """List what of a lane's files is watched; directories also above, for those to come."""
    directories = {os.path.dirname(pattern) for pattern in lane.devices}
    above = {os.path.dirname(each) for each in directories if each != "/dev"}
    came = [box.path(each) for each in sorted(directories | above)]
    try:
        nodes = [box.path(node.path) for node in box.nodes(lane)]
        return _Files(nodes, came, list(owner_files(box, lane).values()))
    except OSError:
        return _Files([], came, [])  # the sweep says that it can't be told


def _is_same(owner: Owner) -> bool:
    """Say whether a pid is still that of the process that was found."""
    try:
        process = look_at(owner.pid)
    except OSError:
        return True
    return not owner.started or (process is not None and process.started == owner.started)


async def _placed(asker: Asker, owner: Owner, pidfd: int) -> Owner | None:
    """Add whose a process is; None where it has ended."""
    told = await whose(asker, owner.pid, pidfd)
    if told is None:
        return None
    note = "; ".join(filter(None, (told.note, owner.note)))
    return replace(owner, standing=told.standing, unit=told.unit, uid=told.uid, note=note)


def _settles(watched: _Watched, found: Seen, now_sec: float) -> bool:
    """Say whether the devices still give memory back that somebody had who is gone."""
    if not found.gauges or any(_is_somebody(owner) for owner in found.owners):
        return False
    if not watched.settling_since_sec:
        there = {owner.identity for owner in found.owners}
        gone = [owner for owner in watched.seen.owners if owner.identity not in there]
        return any(map(_had_memory, gone))
    if now_sec - watched.settling_since_sec >= SETTLE_SEC:
        return False
    return not judge.agree(watched.seen.gauges, found.gauges)


def _is_somebody(owner: Owner) -> bool:
    return owner.counts and owner.note != HIDDEN


def _had_memory(owner: Owner) -> bool:
    return owner.pid > 0 and owner.use is not Use.HOLDER and owner.memory_bytes > 0


async def active_units(systemd: Systemd | None, lane: Lane) -> tuple[ActiveUnit, ...] | None:
    """Ask the manager which of the lane's `units` are active; None where it does not answer."""
    if not lane.units:
        return ()
    if systemd is None:
        return None
    found = []
    try:
        for unit in await systemd.list_units(lane.units, sorted(RUNNING_STATES)):
            properties = await systemd.unit_properties(unit.name) or {}
            found.append(ActiveUnit(unit.name, _pid(properties.get("MainPID"))))
    except BusError:
        return None
    return tuple(found)


def _pid(value: object) -> int:
    return value if isinstance(value, int) else 0


def _events_file(owner: Owner) -> str:
    """Find the file that tells when the control group of an owner's unit is empty, "" for none."""
    with suppress(OSError):
        with open(f"/proc/{owner.pid}/cgroup", errors="surrogateescape") as lines:
            path = next((line.rstrip("\n")[3:] for line in lines if line.startswith("0::")), "")
        parts = path.split("/")
        if owner.unit in parts and not owner.unit.endswith(".slice"):
            inside = "/".join(parts[: parts.index(owner.unit) + 1])
            files = [f"{each}{inside}/cgroup.events" for each in UNIFIED_DIRS]
            return next(filter(os.path.exists, files), "")
    return ""
