"""`sdqueue plan`: in which order jobs would start, and what each waits for. Starts nothing."""

import time

from sdqueue.cli.client import ask
from sdqueue.cli.listing import cells
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import Column, colours, print_json, print_lines, table
from sdqueue.cli.place import Place
from sdqueue.cli.rows import Told, completed
from sdqueue.cli.times import ago

COLUMNS = (
    Column("#", "number", right=True),
    Column("NAME", "name"),
    Column("LANE", "lane"),
    Column("REASON", "code"),
    Column("", "detail", flexible=True),
    Column("UNTIL", "until", optional=True),
)


def add_arguments(parser: Parser) -> None:
    """Add the options of `plan`."""
    parser.add_argument("--lane", action="append", metavar="LANE", help="only this lane")


def run(args: Arguments) -> int:
    """Print the plan."""
    place = Place(system=args.system)
    for lane in args.lane or ():
        place.check_lane(lane)
    rows = ask(place, lambda client: client.plan())
    rows = completed(rows, Told(rows), place)
    rows = [row for row in rows if not args.lane or row["lane"] in args.lane]
    if args.json != "off":
        print_json(rows, args.json)
        return 0
    now_sec = time.time()
    texts = [
        {
            **cells(row, now_sec),
            "number": str(number),
            **_reason(row["reason"], now_sec),
            "paint": "",
        }
        for number, row in enumerate(rows, 1)
    ]
    lines = table(COLUMNS, texts, legend=not args.no_legend, paint=colours())
    print_lines(lines, pager=not args.no_pager)
    return 0


def _reason(reason: object, now_sec: float) -> dict[str, str]:
    if not isinstance(reason, dict):
        return {"code": "", "detail": ""}
    return {
        "code": str(reason["code"]),
        "detail": str(reason["detail"]),
        "until": ago(reason["until"], now_sec),
    }
