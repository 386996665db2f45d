"""`sdqueue move`: another lane, another place in the line. What runs is never moved."""

from collections.abc import Callable

from sdqueue.cli.operating import add_jobs, operate
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, list_names
from sdqueue.cli.written import say_problems
from sdqueue.core.spec import JobSpec
from sdqueue.jobfile import parse
from sdqueue.jobkeys import header_text
from sdqueue.jobtext import render_script
from sdqueue.spool.rewrite import read_content, rewrite
from sdqueue.spool.scan import JobBytes, read_job
from sdqueue.words.errors import SdqueueError, UsageError

PRIORITY_MAX = 1_000_000
REFUSALS = {"running": "it runs, and a running job stays where it is"}
Settings = list[tuple[str, str]]


def add_arguments(parser: Parser) -> None:
    """Add the options of `move`."""
    add_jobs(parser)
    parser.add_argument("--lane", metavar="LANE", help="the lane that it is to run in")
    parser.add_argument("--priority", metavar="N", help="higher goes first within the lane")
    parser.add_argument(
        "--first",
        action="store_true",
        help="before all that wait in its lane now; several go first in their order",
    )


def run(args: Arguments) -> int:
    """Move jobs."""
    settings_of = _first(args) if args.first else _fixed(args)

    def act(place: Place, name: str, state: str) -> str:
        settings = settings_of(place, name, state)
        _set(place, name, state, settings)
        return ", ".join(f"{key} is {text} now" for key, text in settings)

    return operate(args, act, REFUSALS, backwards=args.first)


def _lane(args: Arguments) -> Settings:
    if args.lane is None:
        return []
    return [("LANE", Place(system=args.system).check_lane(args.lane))]


def _fixed(args: Arguments) -> Callable[[Place, str, str], Settings]:
    """Give the same header lines to all."""
    settings = _lane(args)
    if args.priority is not None:
        settings.append(("PRIORITY", _priority(args.priority)))
    if not settings:
        raise UsageError("say where to: --lane LANE, --priority N or --first.")
    return lambda _place, _name, _state: settings


def _priority(text: str) -> str:
    try:
        return header_text("PRIORITY", text)
    except ValueError as error:
        raise UsageError(f"--priority: {error}.") from None


def _first(args: Arguments) -> Callable[[Place, str, str], Settings]:
    """Give each job a higher priority than all that wait in its lane; asked last job first."""
    if args.priority is not None:
        raise UsageError("--first chooses the priority: do not give one.")
    lane = _lane(args)
    highest: dict[str, int] = {}

    def settings(place: Place, name: str, state: str) -> Settings:
        if not highest:
            highest.update(_highest(place))
        own = lane[0][1] if lane else _spec(place, name, state).lane
        highest[own] = min(PRIORITY_MAX, highest.get(own, 0) + 1)
        return [*lane, ("PRIORITY", str(highest[own]))]

    return settings


def _highest(place: Place) -> dict[str, int]:
    """Return the highest priority that a waiting job has, by lane."""
    found: dict[str, int] = {}
    for name in list_names(place.spool, "queued"):
        read = read_job(place.spool, "queue", name)
        if isinstance(read, JobBytes):
            spec = parse(name, read.data, lanes=place.config.lanes).spec
            if spec:
                found[spec.lane] = max(found.get(spec.lane, 0), spec.priority)
    return found


def _spec(place: Place, name: str, state: str) -> JobSpec:
    content = read_content(place.spool, name, DIRECTORY_OF[state])
    return _checked(place, name, content.data)


def _set(place: Place, name: str, state: str, settings: Settings) -> None:
    """Write the header lines, if the file is a good one with them."""
    old = read_content(place.spool, name, DIRECTORY_OF[state])
    data = render_script(settings, old.data)
    _checked(place, name, data)
    rewrite(place.spool, name, DIRECTORY_OF[state], old, data)


def _checked(place: Place, name: str, data: bytes) -> JobSpec:
    found = parse(name, data, lanes=place.config.lanes)
    if found.spec is None:
        say_problems(found)
        raise SdqueueError(f"{name}: mend what is said above, with sdqueue edit {name}.")
    return found.spec
