"""`sdqueue park`: jobs that wait or have failed are set aside; what runs is left alone."""

from sdqueue.cli.operating import RUNS, add_jobs, move_to, operate
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place

REFUSALS = {
    "running": RUNS,
    "done": "it is done already",
    "parked": "it is set aside already",
}


def add_arguments(parser: Parser) -> None:
    """Add the options of `park`."""
    add_jobs(parser)


def run(args: Arguments) -> int:
    """Park."""
    return operate(args, _park, REFUSALS)


def _park(place: Place, name: str, state: str) -> str:
    move_to(place, name, state, "parked")
    return "set aside: its file is in parked/ now"
