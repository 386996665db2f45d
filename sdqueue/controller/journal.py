"""Writing events down, in order, without holding up the loop.

Events are handed over at once and written by one task; a batch is one visit to a thread. When the
disk says no, the events wait here, the queue is told, and the writing is tried again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from sdqueue.controller.open_waits import OpenWaits
from sdqueue.spool.eventlog import EventLog
from sdqueue.words.errors import SpoolError

RETRY_SEC = 2.0


class Journal:
    """The queue's event log, fed from the loop. `on_trouble` hears what is wrong, or None again."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._waits = OpenWaits()
        log.carried = self._waits.carried
        self.on_trouble: Callable[[str, str | None], None] = lambda _source, _what: None
        self._waiting: deque[Mapping[str, object]] = deque()
        self._something = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()

    def write(self, event: str, job: str, fields: Mapping[str, object]) -> None:
        """Take one event; it is on its way to the file."""
        self._waiting.append({"event": event, "job": job, **fields})
        self._drained.clear()
        self._something.set()

    def resize(self, max_bytes: int) -> None:
        """Have the log rotated at another size from now on."""
        self._log.max_bytes = max_bytes

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            while self._waiting:
                await self._write_batch()
            self._drained.set()

    async def wait_drained(self) -> None:
        """Wait until every event that was taken is in the file."""
        await self._drained.wait()

    async def _write_batch(self) -> None:
        try:
            await asyncio.to_thread(self._append)
        except SpoolError as error:
            self.on_trouble("events.jsonl", str(error))
            await asyncio.sleep(RETRY_SEC)
        else:
            self.on_trouble("events.jsonl", None)

    def _append(self) -> None:
        """Write what waits; an event leaves the line only when it is in the file."""
        while self._waiting:
            self._write_one(self._waiting[0])
            self._waiting.popleft()
            for record in self._waits.due(self._log.written_bytes):
                self._write_one(record)

    def _write_one(self, record: Mapping[str, object]) -> None:
        self._log.append(record)
        self._waits.note(record, self._log.written_bytes)
