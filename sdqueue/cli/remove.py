"""`sdqueue remove`: jobs' files are deleted, with `--purge` all that their runs left too."""

from sdqueue.cli.operating import RUNS, add_jobs, operate
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF
from sdqueue.spool import meta, moves, runs

REFUSALS = {"running": RUNS}


def add_arguments(parser: Parser) -> None:
    """Add the options of `remove`."""
    add_jobs(parser)
    parser.add_argument(
        "--purge",
        action="store_true",
        help="also the records and scripts of its runs, and its STATE_DIRECTORY",
    )


def run(args: Arguments) -> int:
    """Remove."""
    return operate(args, _purge if args.purge else _remove, REFUSALS)


def _remove(place: Place, name: str, state: str) -> str:
    moves.remove(place.spool, name, DIRECTORY_OF[state])
    meta.drop(place.spool, name)
    return f"removed from {DIRECTORY_OF[state]}/"


def _purge(place: Place, name: str, state: str) -> str:
    removed = _remove(place, name, state)
    runs.forget_runs(place.spool, name)
    return f"{removed}, with its runs and what it kept"
