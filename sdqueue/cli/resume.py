"""`sdqueue resume`: a paused lane goes on."""

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.pausing import add_lanes, set_paused


def add_arguments(parser: Parser) -> None:
    """Add the options of `resume`."""
    add_lanes(parser)


def run(args: Arguments) -> int:
    """Resume."""
    return set_paused(args, paused=False)
