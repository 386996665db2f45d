"""The queue at one look, as values: what files say, and the controller where it answers.

The cost does not grow with the number of waiting jobs: they are counted by name, and only the ones
that can be shown are read.
"""

import os
from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from sdqueue.cli.place import Place
from sdqueue.cli.rows import (
    CLIENT_CODES,
    DIRECTORY_OF,
    NO_ANSWER,
    Row,
    Told,
    completed,
    count,
    file_rows,
    list_names,
    no_controller,
    only_told,
    texts,
)
from sdqueue.core.keys import LANE_KEYS
from sdqueue.words.names import sort_key

if TYPE_CHECKING:
    from sdqueue.cli.client import Client

WAITING_SHOWN = 20
ASKED_MAX = 500
"""With more waiting jobs than this, the controller is not asked for each of them."""


class Answers(NamedTuple):
    """What the controller says."""

    properties: Row
    lanes: list[Row]
    jobs: list[Row]


class Health(NamedTuple):
    """How the controller is; `start` says how to start it, where it does not run."""

    running: bool
    version: object
    halted: str
    trouble: list[str]
    notices: list[str]
    start: str


class Overall(NamedTuple):
    """The queue at one look."""

    spool: str
    system: bool
    controller: Health
    counts: dict[str, int]
    lanes: list[Row]
    running: list[Row]
    waiting: list[Row]
    dropped: int

    def as_json(self) -> Row:
        """Return what `status --json` prints."""
        return {
            **self._asdict(),
            "controller": self.controller._asdict(),
            "safe_to_reboot": self.counts["running"] == 0,
        }


def overall(place: Place) -> Overall:
    """Look at the queue."""
    if not place.is_readable:
        return _from_the_bus(place)
    spool = place.spool
    queued = list_names(spool, "queued")
    queued = nsmallest(ASKED_MAX + 1, queued, key=sort_key)
    told = _ask(place, list_names(spool, "running"), queued)
    rows = _rows(place, told, queued)
    running = [row for row in rows if row["state"] == "running"]
    return Overall(
        spool.root,
        place.system,
        _health(place, told),
        count(spool),
        told.lanes if told else _lanes(place, rows),
        running,
        [row for row in rows if row["state"] == "queued"][:WAITING_SHOWN],
        _dropped(place, running),
    )


def _ask(place: Place, running: Sequence[str], queued: Sequence[str]) -> Answers | None:
    if os.access(place.spool.root, os.R_OK) and not place.has_controller():
        return None
    from sdqueue.cli.client import ask_if_there

    async def question(client: "Client") -> Answers:
        lanes = await client.list_lanes()
        jobs = await client.list_aside() if len(queued) > ASKED_MAX else None
        if jobs is None:
            few = queued if len(queued) <= ASKED_MAX else [str(lane["next"]) for lane in lanes]
            names = [*running, *(name for name in few if name)]
            jobs = await client.list_jobs(names) if names else []
        return Answers(await client.properties(), lanes, jobs)

    return ask_if_there(place, question)


def _from_the_bus(place: Place) -> Overall:
    """Look at a queue whose files can't be read: what has ended is not known then."""
    from sdqueue.cli.client import ask

    async def question(client: "Client") -> Answers:
        jobs = await client.list_aside()
        jobs = await client.list_jobs([]) if jobs is None else jobs
        return Answers(await client.properties(), await client.list_lanes(), jobs)

    told = ask(place, question)
    rows = only_told(told.jobs, ("running", "queued"), lambda _name: True)
    counts = dict.fromkeys(DIRECTORY_OF, 0)
    for state in ("running", "queued"):
        known = told.properties.get(state.capitalize())
        counts[state] = known if isinstance(known, int) else 0
    waiting = [row for row in rows if row["state"] == "queued"][:WAITING_SHOWN]
    running = [row for row in rows if row["state"] == "running"]
    health = _health(place, told)
    return Overall(place.spool.root, place.system, health, counts, told.lanes, running, waiting, 0)


def _rows(place: Place, told: Answers | None, queued: Sequence[str]) -> list[Row]:
    """Return the rows of what runs, and of the waiting jobs that can be shown."""
    shown = set(queued[:WAITING_SHOWN])
    if told:
        heads = [str(row["name"]) for row in told.jobs if row["state"] == "queued"]
        first = {str(lane["next"]) for lane in told.lanes}
        ordered = sorted(heads, key=lambda name: (name not in first, sort_key(name)))
        shown = set(ordered[:WAITING_SHOWN])
    rows = file_rows(place, states=["running"], wanted=lambda _name: True)
    rows += file_rows(place, states=["queued"], wanted=shown.__contains__)
    return completed(rows, Told(told.jobs) if told else None, place)


def _dropped(place: Place, running: Sequence[Row]) -> int:
    """Count the lines of the running jobs that the journal did not keep."""
    if not running:
        return 0
    from sdqueue.cli.journal import dropped_lines

    since = [row["since"] for row in running if isinstance(row["since"], int | float)]
    return dropped_lines(place, [str(row["name"]) for row in running], min(since, default=0.0))


def _health(place: Place, told: Answers | None) -> Health:
    if told is None:
        if place.has_controller():
            return Health(True, None, "", [CLIENT_CODES[NO_ANSWER]], [], "")
        return Health(False, None, "", [], [], place.start_hint())
    return Health(
        True,
        told.properties.get("Version"),
        str(told.properties.get("Halted") or ""),
        texts(told.properties.get("Trouble")),
        texts(told.properties.get("Notices")),
        "",
    )


def _lanes(place: Place, rows: Sequence[Row]) -> list[Row]:
    """Return the lanes as files know them; how many wait in each is not counted then."""
    found: list[Row] = []
    for lane in place.config.lanes.values():
        holders = [row for row in rows if row["state"] == "running" and row["lane"] == lane.name]
        known: Row = {
            "name": lane.name,
            "state": "running" if holders else None,
            "slots": lane.slots,
            "occupants": [row["unit"] for row in holders],
            "holders": [row["name"] for row in holders],
            "since": holders[0]["since"] if holders else None,
            "reason": no_controller(),
            "excludes": sorted(lane.excludes),
        }
        found.append(dict.fromkeys(LANE_KEYS) | known)
    return found
