"""`sdqueue release`: jobs that were set aside go back to the queue, with the attempts they had."""

from sdqueue.cli.operating import add_jobs, move_to, operate
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place

AGAIN = "it is {}; sdqueue retry {{name}} puts it back in the queue"
REFUSALS = {
    "running": "it runs",
    "queued": "it is in the queue already",
    "done": AGAIN.format("done"),
    "failed": AGAIN.format("failed"),
}


def add_arguments(parser: Parser) -> None:
    """Add the options of `release`."""
    add_jobs(parser)


def run(args: Arguments) -> int:
    """Release."""
    return operate(args, _release, REFUSALS)


def _release(place: Place, name: str, state: str) -> str:
    move_to(place, name, state, "queued")
    return "back in the queue"
