"""Lanes that a person has paused: on disk before it is answered, and told by each controller."""

import asyncio
from collections.abc import Callable

from sdqueue.core import events as ev
from sdqueue.spool import pauses
from sdqueue.spool.layout import Spool


class Pausing:
    """The paused lanes of one spool; `names` are those on disk."""

    def __init__(self, spool: Spool, post: Callable[[ev.Event], None]) -> None:
        self._spool = spool
        self._post = post
        self._one_at_a_time = asyncio.Lock()
        self.names = pauses.load(spool)

    def tell(self) -> None:
        """Have the queue know of those that were paused before, as far as it has such lanes."""
        for name in sorted(self.names):
            self._post(ev.LanePaused(name, paused=True))

    async def change(self, name: str, *, paused: bool) -> None:
        """Pause a lane, or let it go on; SpoolError where that can't be written, and is not so."""
        async with self._one_at_a_time:
            names = self.names | {name} if paused else self.names - {name}
            if names != self.names:
                await asyncio.to_thread(pauses.save, self._spool, names)
                self.names = names
        self._post(ev.LanePaused(name, paused))
