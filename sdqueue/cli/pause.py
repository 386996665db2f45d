"""`sdqueue pause`: nothing new starts in a lane; what runs is left alone."""

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.pausing import add_lanes, set_paused


def add_arguments(parser: Parser) -> None:
    """Add the options of `pause`."""
    add_lanes(parser)


def run(args: Arguments) -> int:
    """Pause."""
    return set_paused(args, paused=True)
