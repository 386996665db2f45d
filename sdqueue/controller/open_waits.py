"""The gpu-waits that readers of the log must be able to find: those that are not over.

Readers look only at the log's tail, so an open wait is written again, with the same episode,
whenever much of the log has followed it, and opens a log that is new after a rotation.
"""

from collections.abc import Mapping, Sequence

REPEAT_BYTES = 192 * 1024
"""So much of the log may follow an open wait, and with the next line it is less than 256 KiB."""

Record = Mapping[str, object]


class OpenWaits:
    """Open waits by lane, each with how much had been written when it was written last."""

    def __init__(self) -> None:
        self._open: dict[object, tuple[Record, int]] = {}

    def note(self, record: Record, written_bytes: int) -> None:
        """Take note of an event that is in the log now."""
        event, lane = record["event"], record.get("lane")
        if event == "gpu-wait":
            self._open[lane] = (record, written_bytes)
        elif event in ("gpu-wait-end", "start"):
            self._open.pop(lane, None)
        elif event in ("runner-start", "stopped"):
            self._open.clear()

    def due(self, written_bytes: int) -> list[Record]:
        """Return the waits that are to be written again."""
        return [record for record, at in self._open.values() if written_bytes - at >= REPEAT_BYTES]

    def carried(self) -> Sequence[Record]:
        """Return the waits with which a new log begins."""
        return [record for record, _ in self._open.values()]
