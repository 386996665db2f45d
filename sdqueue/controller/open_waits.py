"""What readers of the log must be able to find: waits, leases, users and pauses that are not over.

Readers look only at the log's tail, so what is open is written again, the same, whenever much of
the log has followed it, and opens a log that is new after a rotation.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

REPEAT_BYTES = 192 * 1024
"""So much of the log may follow an open wait, and with the next line it is less than 256 KiB."""

Record = Mapping[str, object]


class Kind(NamedTuple):
    """An event that opens something; one of `ends` with the same values of `keys` closes it."""

    keys: tuple[str, ...]
    ends: tuple[str, ...]


KINDS: dict[str, Kind] = {
    "gpu-wait": Kind(("lane",), ("gpu-wait-end", "start")),
    "lease": Kind(("unit",), ("lease-end",)),
    "lease-wait": Kind(("unit",), ("lease-wait-end",)),
    "owner": Kind(("lane", "pid"), ("owner-end",)),
    "paused": Kind(("lane",), ("resumed",)),
}
END_OF_ALL = ("runner-start", "stopped")


class OpenWaits:
    """What is open, each with how much had been written when it was written last."""

    def __init__(self) -> None:
        self._open: dict[tuple[object, ...], tuple[Record, int]] = {}

    def note(self, record: Record, written_bytes: int) -> None:
        """Take note of an event that is in the log now."""
        event = record["event"]
        if event in END_OF_ALL:
            self._open.clear()
        for opens, kind in KINDS.items():
            key = (opens, *(record.get(name) for name in kind.keys))
            if event == opens:
                self._open[key] = (record, written_bytes)
            elif event in kind.ends:
                self._open.pop(key, None)

    def due(self, written_bytes: int) -> list[Record]:
        """Return what is to be written again."""
        return [record for record, at in self._open.values() if written_bytes - at >= REPEAT_BYTES]

    def carried(self) -> Sequence[Record]:
        """Return what a new log begins with."""
        return [record for record, _ in self._open.values()]
