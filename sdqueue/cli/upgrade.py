"""`sdqueue upgrade`: this version's files in the place of the last one's; jobs run on."""

from sdqueue.cli.install import settle
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.settling import Settling, add_force, add_place
from sdqueue.cli.shipped import SERVICE


def add_arguments(parser: Parser) -> None:
    """Add the options of `upgrade`."""
    add_place(parser)
    add_force(parser)


def run(args: Arguments) -> int:
    """Upgrade: the same as an installation, but that the controller is started anew."""
    settling = Settling(args)
    settle(settling, force=args.force, start=lambda: settling.manage("restart", SERVICE))
    return 0
