"""`sdqueue adopt`: what somebody started by hand becomes a lane's occupant until it ends."""

from typing import TYPE_CHECKING

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import print_json
from sdqueue.cli.place import Place
from sdqueue.cli.safe import safe

if TYPE_CHECKING:
    from sdqueue.cli.client import Client


def add_arguments(parser: Parser) -> None:
    """Add the options of `adopt`."""
    parser.add_argument("lane", metavar="LANE", help="the lane's name")
    parser.add_argument("what", metavar="UNIT|PID", help="a unit of the queue's manager, or a pid")
    parser.add_argument("--name", metavar="NAME", default="", help="what to call it")


def run(args: Arguments) -> int:
    """Have it adopted."""
    from sdqueue.cli.client import ask

    what = args.what if args.what.isdecimal() or "." in args.what else f"{args.what}.service"

    async def question(client: "Client") -> str:
        return await client.adopt(args.lane, what, args.name)

    path = ask(Place(system=args.system), question)
    if args.json != "off":
        print_json({"lane": args.lane, "what": what, "lease": path}, args.json)
    else:
        print(safe(f"lane {args.lane} is held for {args.name or what} until that ends"))
    return 0
