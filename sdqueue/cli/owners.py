"""`sdqueue owners`: who has or uses a lane now, as the controller last saw it."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import Column, colours, print_json, print_lines, table
from sdqueue.cli.place import Place
from sdqueue.cli.rows import Row
from sdqueue.cli.safe import safe
from sdqueue.cli.times import ago
from sdqueue.core.owner import Standing
from sdqueue.words.spans import format_size

if TYPE_CHECKING:
    from sdqueue.cli.client import Client

COLUMNS = (
    Column("LANE", "lane"),
    Column("STANDING", "standing"),
    Column("USE", "use", optional=True),
    Column("PID", "pid", optional=True, right=True),
    Column("WHO", "comm"),
    Column("UNIT", "unit", optional=True),
    Column("USER", "user", optional=True),
    Column("MEMORY", "memory", optional=True, right=True),
    Column("SINCE", "since", optional=True),
    Column("SEEN", "seen", optional=True, flexible=True),
)
COLOURS: dict[str, str] = {
    Standing.OURS: "good",
    Standing.LEASED: "good",
    Standing.UNTOUCHABLE: "bad",
}
IN_NOBODYS_WAY = "dim"


def add_arguments(parser: Parser) -> None:
    """Add the options of `owners`."""
    parser.add_argument("lane", metavar="LANE", nargs="?", help="only this lane")


def run(args: Arguments) -> int:
    """Show who has or uses the lanes."""
    wanted = args.lane[0] if args.lane else ""
    lanes, rows = _ask(Place(system=args.system), wanted)
    rows = [row | {"user": user_name(row["uid"])} for row in rows]
    if args.json != "off":
        print_json(rows, args.json)
        return 0
    legend = not args.no_legend
    lines = table(COLUMNS, list(map(_cells, rows)), legend=legend, paint=colours()) if rows else []
    if legend:
        shown = {row["lane"] for row in rows}
        lines += [_nobody(lane) for lane in lanes if lane["name"] not in shown]
    print_lines(lines, pager=not args.no_pager)
    return 0


def _ask(place: Place, lane: str) -> tuple[list[Row], list[Row]]:
    """Return the rows of the lanes that are asked for, and of their owners."""
    from sdqueue.cli.client import ask

    async def question(client: "Client") -> tuple[list[Row], list[Row]]:
        owners = await client.list_owners(lane)
        return await client.list_lanes(), owners

    lanes, owners = ask(place, question)
    return [row for row in lanes if lane in ("", row["name"])], owners


def _cells(row: Row) -> dict[str, str]:
    seen = row["seen"] if isinstance(row["seen"], Sequence) else []
    said = [str(row["detail"] or ""), *map(str, seen)]
    cells = {key: "" if row[key] is None else str(row[key]) for key in row if key != "seen"}
    memory = row["memory"]
    return cells | {
        "comm": str(row["comm"] or "-"),
        "memory": format_size(memory) if isinstance(memory, int) else "",
        "since": ago(row["since"], time.time()),
        "seen": "; ".join(dict.fromkeys(filter(None, said))),
        "paint": COLOURS.get(str(row["standing"]), "") if row["counts"] else IN_NOBODYS_WAY,
    }


def _nobody(lane: Row) -> str:
    detail = f": {lane['detail']}" if lane["detail"] else ""
    return safe(f"nobody is known to use lane {lane['name']}; it is {lane['state']}{detail}")


def user_name(uid: object) -> str | None:
    """Return the name of a user, its number where it has none, None where it is not known."""
    import pwd

    if not isinstance(uid, int):
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)
