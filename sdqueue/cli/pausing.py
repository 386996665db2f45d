"""What `pause` and `resume` have in common."""

from typing import TYPE_CHECKING

from sdqueue.cli.client import ask
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import print_json
from sdqueue.cli.place import Place

if TYPE_CHECKING:
    from sdqueue.cli.client import Client


def add_lanes(parser: Parser) -> None:
    """Add the lanes."""
    parser.add_argument("lanes", metavar="LANE", nargs="+", help="lanes' names")


def set_paused(args: Arguments, *, paused: bool) -> int:
    """Pause lanes, or let them go on; all names are looked at before anything is done."""
    place = Place(system=args.system)
    lanes = [place.check_lane(lane) for lane in args.lanes]

    async def question(client: "Client") -> None:
        for lane in lanes:
            await client.pause(lane, paused=paused)

    ask(place, question)
    if args.json != "off":
        print_json([{"lane": lane, "paused": paused} for lane in lanes], args.json)
        return 0
    for lane in lanes:
        print(
            f"lane {lane} is paused: nothing new starts in it, what runs is left alone"
            if paused
            else f"lane {lane} goes on"
        )
    return 0
