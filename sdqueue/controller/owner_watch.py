"""Keeping up with who uses a lane: one look, and another when the process that was found ends.

The end of a process is an event of its descriptor, so a wait ends in milliseconds and nothing
polls. Who uses the lane then is looked for anew, and not remembered.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine

from sdqueue import owners
from sdqueue.core import events as ev
from sdqueue.core.lane import Lane


class OwnerWatch:
    """Looks and watches, one process for each lane."""

    def __init__(
        self,
        post: Callable[[ev.Event], None],
        spawn: Callable[[Coroutine[object, object, None]], None],
        ours: Callable[[], set[str]],
    ) -> None:
        self._post = post
        self._spawn = spawn
        self._ours = ours
        self._watched: dict[str, int] = {}

    async def look(self, lane: Lane) -> None:
        """Look who uses a lane, tell the queue, and watch the process that was found."""
        found = await asyncio.to_thread(owners.find, lane.foreign, self._ours())
        self._drop(lane.name)
        if found and found.pidfd >= 0:
            self._watched[lane.name] = found.pidfd
            asyncio.get_running_loop().add_reader(found.pidfd, self._gone, lane)
        self._post(ev.OwnersSeen(lane.name, (found.owner,) if found else ()))

    def _gone(self, lane: Lane) -> None:
        self._drop(lane.name)
        self._spawn(self.look(lane))

    def _drop(self, lane: str) -> None:
        pidfd = self._watched.pop(lane, -1)
        if pidfd >= 0:
            asyncio.get_running_loop().remove_reader(pidfd)
            os.close(pidfd)

    def close(self) -> None:
        """Watch nobody any more."""
        for lane in list(self._watched):
            self._drop(lane)
