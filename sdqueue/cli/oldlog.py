"""What another queue's log says of its jobs: their ends, as records of runs here, and their starts.

Keys that have another type than ours, lines that are broken: as if they were not there.
"""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from math import isfinite

from sdqueue.spool.layout import Spool
from sdqueue.spool.runs import ensure_run_dir, read_record, runs, write_record

Record = dict[str, object]
_ENDS = ("done", "failed", "skipped")
_STARTS = ("start",)
_KEPT: dict[str, tuple[type, ...]] = {
    "lane": (str,),
    "rc": (int,),
    "attempt": (int,),
    "verified": (bool,),
    "result": (str,),
}
_OUTCOMES = {"done": "done", "failed": "failed"}


class Ends:
    """The last end of each job, and from where it was imported."""

    def __init__(self, ends: Mapping[str, Record], source: str) -> None:
        self._ends = ends
        self._source = source

    def record(self, spool: Spool, state: str, name: str) -> None:
        """Write down what became of an imported job there, as a run of its own; not durable: the
        job's directory is its state, and this is for people to read."""
        record: Record = {
            "schema": 1,
            "job": name,
            **self._ends.get(name, {}),
            "outcome": _OUTCOMES.get(state, "parked"),
            "note": f"it was in {state}/ of {self._source}, imported from there",
        }
        last = max(runs(spool, name), default=0)
        if read_record(spool, name, last) != record | {"run": last}:
            ensure_run_dir(spool, name, last + 1)
            write_record(spool, name, last + 1, record | {"run": last + 1}, durable=False)


def read_ends(log: str, source: str) -> Ends:
    """Read the log of the queue at `source`, where there is one."""
    return Ends({job: _record_of(event) for job, event in _events(log, _ENDS)}, source)


def read_starts(log: str) -> dict[str, tuple[int, float]]:
    """Return for each job the pid of its last start, and the unix seconds of that."""
    starts: dict[str, tuple[int, float]] = {}
    for job, event in _events(log, _STARTS):
        pid, sec = event.get("pid"), _time_sec(event)
        if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0 and sec is not None:
            starts[job] = (pid, sec)
    return starts


def _events(log: str, kinds: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Yield (job, event) of these kinds, from the first one on."""
    words = [kind.encode() for kind in kinds]
    try:
        fd = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            for line in file:
                event = _parsed(line) if any(word in line for word in words) else {}
                job = event.get("job")
                if event.get("event") in kinds and isinstance(job, str):
                    yield job.removesuffix(".job").removesuffix(".sh"), event
    except OSError:
        return


def _parsed(line: bytes) -> Record:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _record_of(event: Mapping[str, object]) -> Record:
    record = {key: event[key] for key, kinds in _KEPT.items() if _fits(event.get(key), kinds)}
    end, took = _time_sec(event), event.get("seconds")
    if end is not None:
        record["end"] = end
        if isinstance(took, int | float) and isfinite(took) and took >= 0:
            record["start"] = end - took
    return record


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _time_sec(event: Mapping[str, object]) -> float | None:
    unix, local = event.get("t"), event.get("ts")
    if isinstance(unix, int | float) and not isinstance(unix, bool) and isfinite(unix):
        return float(unix)
    try:
        return datetime.fromisoformat(str(local)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
