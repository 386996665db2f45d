"""`sdqueue retry`: jobs that have ended are queued anew; for those that wait, the wait is over."""

from sdqueue.cli.listing import states_in
from sdqueue.cli.operating import add_jobs, move_to, operate
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.jobtext import render_script
from sdqueue.spool import meta
from sdqueue.spool.rewrite import read_content, rewrite

REFUSALS = {"running": "it runs"}
DEFAULT_STATES = ("failed",)


def add_arguments(parser: Parser) -> None:
    """Add the options of `retry`."""
    add_jobs(parser)
    parser.add_argument(
        "--state",
        action="append",
        metavar="STATE,…",
        help="which jobs a glob means; failed ones where nothing is said",
    )


def run(args: Arguments) -> int:
    """Have jobs tried again."""
    states = states_in(args.state) if args.state else DEFAULT_STATES
    return operate(args, _retry, REFUSALS, states=states)


def _retry(place: Place, name: str, state: str) -> str:
    if state == "queued":
        return _start_now(place, name)
    meta.drop(place.spool, name)
    move_to(place, name, state, "queued")
    return "in the queue again, with all its attempts"


def _start_now(place: Place, name: str) -> str:
    """End what is a matter of time: RETRY_DELAY and NOT_BEFORE."""
    old = read_content(place.spool, name, "queue")
    meta.drop(place.spool, name)
    # Also where nothing is left out: the new file is what the controller notices.
    rewrite(place.spool, name, "queue", old, render_script([], old.data, without=["NOT_BEFORE"]))
    return "waits for no time any more, and has all its attempts"
