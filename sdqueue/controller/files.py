"""The spool's directories, watched: files that come, change and go become events.

Watch first, then list; afterwards only names come from inotify, and each name is looked up anew:
compare, do not remember. A name is looked at once for many changes, and an overflow of the kernel's
queue is a new listing.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from asyncinotify import Inotify, Mask

from sdqueue.controller.looking import Seen, list_names, look, look_queued, look_running
from sdqueue.controller.places import Places
from sdqueue.core import events as ev
from sdqueue.core.model import JobState
from sdqueue.words.errors import SpoolError
from sdqueue.words.names import SUFFIX

WATCHED = (
    Mask.MOVED_FROM
    | Mask.MOVED_TO
    | Mask.CLOSE_WRITE
    | Mask.CREATE
    | Mask.DELETE
    | Mask.ATTRIB
    | Mask.DELETE_SELF
    | Mask.MOVE_SELF
    | Mask.ONLYDIR
)
LOST = Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.IGNORED | Mask.Q_OVERFLOW | Mask.UNMOUNT
ENDED = frozenset({JobState.DONE, JobState.FAILED, JobState.PARKED})
RETRY_SEC = 1.0
Look = Callable[[Places, list[str], Mapping[str, tuple[int, ...]]], list[Seen]]
LOOKS_MAX = 2000
"""Names looked at in one visit to a thread, so that the first of many are seen soon."""


class Files:
    """Follows the spool; `post` hears of its files, `trouble` of what stops that."""

    def __init__(
        self,
        places: Places,
        post: Callable[[ev.Event], None],
        trouble: Callable[[str, str | None], None],
    ) -> None:
        self._places = places
        self._post = post
        self._trouble = trouble
        self._identity: dict[str, tuple[int, ...]] = {}
        self._changed: set[str] = set()
        self._is_lost = False
        self._something = asyncio.Event()
        self._scanned = asyncio.Event()

    async def wait_scanned(self) -> None:
        """Wait until every file that was there at the start is in the queue."""
        await self._scanned.wait()

    def relook(self, name: str) -> None:
        """Look at a name again, whatever is remembered of it."""
        self._identity.pop(name, None)
        self._changed.add(name)
        self._something.set()

    def relook_queued(self) -> None:
        """Read all queued files again: what they mean may have changed."""
        self._changed.update(self._identity)
        self._identity.clear()
        self._something.set()

    async def run(self) -> None:
        """Follow the spool until cancelled; begin anew whenever a directory was lost."""
        while True:
            try:
                await asyncio.to_thread(self._places.ensure)
                with Inotify(cache_size=200) as inotify:
                    for directory in self._places.state_dirs():
                        inotify.add_watch(directory, WATCHED)
                    await self._scan()
                    self._trouble("watch of the spool", None)
                    await self._follow(inotify)
            except (OSError, SpoolError) as error:
                self._trouble("watch of the spool", f"the spool cannot be watched: {error}")
                await asyncio.sleep(RETRY_SEC)

    async def _scan(self) -> None:
        """Read all directories: at the start, and when changes may have been missed."""
        first = not self._scanned.is_set()
        found = await asyncio.to_thread(list_names, self._places)
        self._tell(Seen(*each) for each in found.items() if each[1] in ENDED)
        if first:
            # Files in running/ are news only now: later it was ourselves who moved them.
            running = sorted(name for name, where in found.items() if where is JobState.RUNNING)
            for seen in await asyncio.to_thread(look_running, self._places, running):
                self._post(_running(seen))
        queued = sorted(name for name, where in found.items() if where is JobState.QUEUED)
        await self._look(queued, look_queued)
        gone = set(self._identity) - set(queued)
        await self._look(sorted(gone), look)
        self._scanned.set()

    async def _follow(self, inotify: Inotify) -> None:
        """Look at what changes, until a directory is lost."""
        self._is_lost = False
        reader = asyncio.create_task(self._collect(inotify), name="inotify")
        reader.add_done_callback(lambda _reader: self._lose())
        try:
            while not self._is_lost:
                await self._something.wait()
                self._something.clear()
                names, self._changed = self._changed, set()
                await self._look(sorted(names), look)
        finally:
            reader.cancel()
            with suppress(asyncio.CancelledError):
                await reader

    async def _collect(self, inotify: Inotify) -> None:
        async for event in inotify:
            if event.mask & LOST:
                self._lose()
            elif event.name and event.name.name.endswith(SUFFIX):
                self._changed.add(event.name.name.removesuffix(SUFFIX))
            self._something.set()

    def _lose(self) -> None:
        """Have everything listed anew: changes were missed, or nobody reads them any more."""
        self._is_lost = True
        self._something.set()

    async def _look(self, names: list[str], looking: Look) -> None:
        for start in range(0, len(names), LOOKS_MAX):
            chunk = names[start : start + LOOKS_MAX]
            known = {name: self._identity[name] for name in chunk if name in self._identity}
            self._tell(await asyncio.to_thread(looking, self._places, chunk, known))

    def _tell(self, found: Iterable[Seen]) -> None:
        for seen in found:
            for event in self._events(seen):
                self._post(event)

    def _events(self, seen: Seen) -> list[ev.Event]:
        """Say what a look at one name means."""
        name = seen.name
        if seen.is_same:
            return []  # where it was to be forgotten meanwhile, it is among the changed
        if seen.where is JobState.QUEUED:
            if self._identity.get(name) == seen.identity:
                return []
            self._identity[name] = seen.identity
            return [ev.FileQueued(name, seen.spec, seen.problem, seen.memory)]
        self._identity.pop(name, None)
        if seen.where is JobState.RUNNING:
            return []
        # In this order: where it was, the queue knows until it is told that the file is gone.
        return [ev.FileEnded(name, seen.where), ev.FileGone(name)]


def _running(seen: Seen) -> ev.FileRunning:
    return ev.FileRunning(
        seen.name, seen.spec, seen.run, seen.memory, seen.started_sec, seen.cancel_uid
    )
