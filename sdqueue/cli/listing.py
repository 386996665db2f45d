"""`sdqueue list`: jobs, one a line, from files; reasons from the controller where it is there."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import STATE_COLOURS, Column, colours, print_json, print_lines, table
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, Row, Told, completed, file_rows, matcher, only_told
from sdqueue.cli.times import ago
from sdqueue.core.model import Code
from sdqueue.words.errors import UsageError
from sdqueue.words.names import did_you_mean, shown

if TYPE_CHECKING:
    from sdqueue.cli.client import Client

COLUMNS = (
    Column("NAME", "name"),
    Column("LANE", "lane"),
    Column("STATE", "state"),
    Column("ATTEMPT", "attempt", optional=True),
    Column("RC", "rc", optional=True, right=True),
    Column("VERIFIED", "verified", optional=True),
    Column("SINCE", "since"),
    Column("WHY", "why", optional=True, flexible=True),
    Column("DESCRIPTION", "description", optional=True, flexible=True),
)
EACH_MAX = 200
"""With more jobs than this the controller is not asked for each of them."""
# A script that counts the word for a state must not count reasons.
SHORT_CODES = {Code.AFTER_NOT_DONE: "after", Code.CHECK_FAILED: "check-error"}


def add_arguments(parser: Parser) -> None:
    """Add the options of `list`."""
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="names, or globs of names")
    parser.add_argument(
        "--state",
        action="append",
        metavar="STATE,…",
        help=f"only jobs in these states: {', '.join(DIRECTORY_OF)}",
    )
    parser.add_argument("--lane", action="append", metavar="LANE,…", help="only these lanes' jobs")


def run(args: Arguments) -> int:
    """List."""
    place = Place(system=args.system)
    rows = collect(place, states_in(args.state), args.patterns)
    lanes = _split(args.lane)
    for lane in lanes:
        place.check_lane(lane)
    rows = [row for row in rows if not lanes or row["lane"] in lanes]
    if args.json != "off":
        print_json(rows, args.json)
        return 0
    lines = table(COLUMNS, _cells(rows), legend=not args.no_legend, paint=colours())
    if not args.no_legend:
        lines += ["", f"{len(rows)} job{'' if len(rows) == 1 else 's'} listed."]
    print_lines(lines, pager=not args.no_pager)
    return 0


def collect(place: Place, states: Sequence[str], patterns: Sequence[str]) -> list[Row]:
    """Return the rows of jobs in those states whose names fit, as complete as can be had."""
    if not place.is_readable:
        from sdqueue.cli.client import ask

        told = ask(place, lambda client: client.list_jobs([]))
        return only_told(told, states, matcher(patterns))
    rows = file_rows(place, states=states, wanted=matcher(patterns))
    alive = [str(row["name"]) for row in rows if row["state"] in ("queued", "running")]
    if not alive or not place.has_controller():
        return rows
    from sdqueue.cli.client import ask_if_there

    return completed(rows, ask_if_there(place, lambda client: _tell(client, alive)), place)


async def _tell(client: "Client", names: Sequence[str]) -> Told:
    """Ask for each job, or where that would be long, for those that do not just stand in line."""
    aside = await client.list_aside() if len(names) > EACH_MAX else None
    if aside is None:
        return Told(await client.list_jobs(names))
    lanes = await client.list_lanes()
    return Told(aside, {str(lane["name"]): str(lane["next"]) for lane in lanes if lane["next"]})


def states_in(given: Sequence[str] | None) -> list[str]:
    """Return the states that `--state` names, in the order of listing; all without it."""
    wanted = _split(given)
    for state in wanted:
        if state not in DIRECTORY_OF:
            near = did_you_mean(state, list(DIRECTORY_OF)) or "."
            raise UsageError(
                f"there is no state {shown(state)}{near} The states are {', '.join(DIRECTORY_OF)}."
            )
    return [state for state in DIRECTORY_OF if not wanted or state in wanted]


def _split(given: Sequence[str] | None) -> list[str]:
    return [word for text in given or () for word in text.split(",") if word]


def _cells(rows: Sequence[Row]) -> list[dict[str, str]]:
    now_sec = time.time()
    return [cells(row, now_sec) for row in rows]


def cells(row: Row, now_sec: float) -> dict[str, str]:
    """Return a job's row as texts."""
    attempt = row["attempt"]
    is_first = attempt in (None, 1)
    return {
        "name": str(row["name"]),
        "lane": str(row["lane"] or "-"),
        "state": str(row["state"]),
        "attempt": "" if is_first else f"{attempt}/{row['attempts_max']}",
        "rc": "" if row["rc"] is None else str(row["rc"]),
        "verified": {True: "yes", False: "no"}.get(row["verified"], ""),  # type: ignore[call-overload]
        "since": ago(row["since"], now_sec),
        "why": why_text(row["reason"]),
        "description": str(row["description"] or ""),
        "paint": STATE_COLOURS.get(str(row["state"]), ""),
    }


def why_text(reason: object) -> str:
    """Return a reason in a word or two: its code, and who stands in the way."""
    if not isinstance(reason, dict):
        return ""
    code = str(reason["code"])
    return f"{SHORT_CODES.get(code, code)} {reason.get('blocker') or ''}".rstrip()  # type: ignore[call-overload]
