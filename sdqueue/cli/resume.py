"""`sdqueue resume`: a paused lane goes on."""

from argparse import ArgumentParser, Namespace

from sdqueue.cli.pausing import add_lanes, set_paused


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `resume`."""
    add_lanes(parser)


def run(args: Namespace) -> int:
    """Resume."""
    return set_paused(args, paused=False)
