"""A program that says how a lane is, and reads only events.jsonl and the names in running/.

It knows the rules of sdqueue-events(5) and which lanes exclude each other, and no more.
"""

import json
from pathlib import Path
from typing import Any

from sdqueue.core.owner import Standing, Use

STANDINGS, USES = list(Standing), list(Use)
OPENS = {"owner": ("lane", "pid"), "lease": ("unit",), "lease-wait": ("unit",), "paused": ("lane",)}
ENDS = {"owner-end": "owner", "lease-end": "lease", "lease-wait-end": "lease-wait"}
ENDS |= {"resumed": "paused"}
Event = dict[str, Any]


class LaneReader:
    """What the log says of all lanes; `excludes` are the lanes that exclude each."""

    def __init__(self, spool: Path, excludes: dict[str, set[str]]) -> None:
        self._spool = spool
        self._excludes = excludes
        self._open: dict[tuple[str, ...], Event] = {}
        self._waits: dict[str, Event] = {}
        self._lanes: dict[str, str] = {}
        self._runs = False

    def read(self) -> None:
        """Read the log from its head."""
        self._open, self._waits, self._lanes, self._runs = {}, {}, {}, False
        for line in (self._spool / "events.jsonl").read_text().splitlines():
            self._take(json.loads(line))

    def _take(self, event: Event) -> None:
        word = event["event"]
        if word in ("runner-start", "stopped"):
            self._open, self._waits, self._runs = {}, {}, word == "runner-start"
        elif word in OPENS:
            self._open[self._key(word, event)] = event
        elif word in ENDS:
            self._open.pop(self._key(ENDS[word], event), None)
        elif word == "wait":
            self._waits[event["job"]] = event
        elif event["job"] != "-" and word != "gpu-wait":
            self._waits.pop(event["job"], None)
        if word == "start":
            self._lanes[event["job"]] = event["lane"]

    def _key(self, word: str, event: Event) -> tuple[str, ...]:
        return word, *(str(event[name]) for name in OPENS[word])

    def _of(self, word: str, lane: str) -> list[Event]:
        return [
            event
            for (kind, *_), event in self._open.items()
            if kind == word and event["lane"] == lane
        ]

    def state(self, lane: str) -> str:
        """Say how a lane is, in a word of sdqueue(1)."""
        if not self._runs:
            return "unknown"
        if self._of("paused", lane):
            return "paused"
        if busy := self._busy(lane):
            return busy
        if owners := self._of("owner", lane):
            first = min(owners, key=_precedence)
            is_nobody = first["use"] == Use.UNKNOWN and not first["pid"]
            return "unknown" if is_nobody else "foreign"
        if self._of("lease-wait", lane) or self._is_wanted(lane):
            return "wanted"
        return "excluded" if any(map(self._busy, self._excludes[lane])) else "free"

    def _busy(self, lane: str) -> str:
        running = {file.stem for file in (self._spool / "running").glob("*.job")}
        if self._of("lease", lane):
            return "leased"
        return "running" if any(self._lanes.get(job) == lane for job in running) else ""

    def _is_wanted(self, lane: str) -> bool:
        """Say whether the head of the lane's line waits; whose own gate is closed is in no line."""
        return any(
            event["lane"] == lane and job != "-" and event["reason"] in IN_LINE
            for job, event in self._waits.items()
        )


IN_LINE = ("excluded-lane", "before-lane", "leased", "lane-taken", "refused", "foreign", "paused")


def _precedence(owner: Event) -> tuple[int, int, int]:
    return STANDINGS.index(owner["standing"]), USES.index(owner["use"]), owner["pid"]
