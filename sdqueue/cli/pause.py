"""`sdqueue pause`: nothing new starts in a lane; what runs is left alone."""

from argparse import ArgumentParser, Namespace

from sdqueue.cli.pausing import add_lanes, set_paused


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `pause`."""
    add_lanes(parser)


def run(args: Namespace) -> int:
    """Pause."""
    return set_paused(args, paused=True)
