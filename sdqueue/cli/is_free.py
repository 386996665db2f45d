"""`sdqueue is-free`: whether a lane can be had now. Everything but 0 is a no.

The controller answers from what it keeps, so this looks at no process. What the answer is worth
ends with it: who wants to take the lane asks for a lease.
"""

from typing import TYPE_CHECKING

from sdqueue.cli.exits import CANNOT_TELL, FAILED, OK
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import print_json
from sdqueue.cli.place import Place
from sdqueue.cli.safe import safe
from sdqueue.core.verdict import LaneWord
from sdqueue.words.errors import SdqueueError, UsageError
from sdqueue.words.names import did_you_mean, shown

if TYPE_CHECKING:
    from sdqueue.cli.client import Client
    from sdqueue.cli.rows import Row

STATUS_OF: dict[str, int] = {
    **dict.fromkeys(LaneWord, FAILED),
    LaneWord.FREE: OK,
    LaneWord.UNKNOWN: CANNOT_TELL,
}
NOT_TOLD = "the controller that runs is older than this program and can't tell: sdqueue upgrade"


def add_arguments(parser: Parser) -> None:
    """Add the options of `is-free`."""
    parser.add_argument("lane", metavar="LANE", help="the lane's name")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")


def run(args: Arguments) -> int:
    """Say whether the lane is free."""
    answer = _answer(Place(system=args.system), args.lane)
    if args.json != "off":
        print_json(answer, args.json)
    elif not args.quiet:
        detail = f": {answer['detail']}" if answer["detail"] else ""
        print(safe(f"lane {answer['lane']} is {answer['state']}{detail}"))
    return STATUS_OF[str(answer["state"])]


def _answer(place: Place, lane: str) -> "Row":
    """Ask the controller; where it does not answer, that can't be told is the answer."""
    try:
        rows = _lanes(place)
    except SdqueueError as error:
        return _untold(place.check_lane(lane), str(error).rstrip("."))
    names = [str(row["name"]) for row in rows]
    for row in rows:
        if row["name"] == lane:
            return _told(row)
    near = did_you_mean(lane, names) or "."
    raise UsageError(
        f"there is no lane {shown(lane)}{near} The lanes are {', '.join(names) or 'none'}."
    )


def _lanes(place: Place) -> "list[Row]":
    from sdqueue.cli.client import ask

    async def question(client: "Client") -> "list[Row]":
        return await client.list_lanes()

    return ask(place, question)


def _told(row: "Row") -> "Row":
    """Give the answer; a word that this program does not know is no yes."""
    lane = str(row["name"])
    if row["generation"] is None or row["state"] not in STATUS_OF:
        return _untold(lane, NOT_TOLD)
    return {
        "lane": lane,
        "free": row["state"] == LaneWord.FREE,
        "state": row["state"],
        "holder": row["holder"] or "",
        "detail": row["detail"] or "",
        "generation": row["generation"],
    }


def _untold(lane: str, detail: str) -> "Row":
    word = str(LaneWord.UNKNOWN)
    return {
        "lane": lane,
        "free": False,
        "state": word,
        "holder": "",
        "detail": detail,
        "generation": None,
    }
