"""`sdqueue wait`: block until jobs have ended; the exit status says how."""

import time
from collections.abc import Callable, Iterable, Iterator

from sdqueue.cli.exits import FAILED, OK, SET_ASIDE, TIMED_OUT
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import print_json
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, expand, file_rows, list_names
from sdqueue.cli.safe import safe
from sdqueue.cli.say import remark
from sdqueue.cli.watching import Watch, settled_state_of
from sdqueue.cli.within import own_job, refuse_deadlock
from sdqueue.words.errors import SdqueueError, UsageError
from sdqueue.words.spans import INFINITY_USEC, parse_timespan

ALIVE = ("running", "queued")
REMOVED = "removed"
STATUS_OF = {"done": OK, "failed": FAILED, "parked": SET_ASIDE, REMOVED: SET_ASIDE}
WORST_FIRST = (FAILED, SET_ASIDE, OK)
MANY, MANY_PAUSE_SEC = 1000, 0.5
"""With so many jobs, changes are looked at together, not one by one."""

Ends = dict[str, str]
Alive = Callable[[], Iterable[str]]


def add_arguments(parser: Parser) -> None:
    """Add the options of `wait`."""
    parser.add_argument("jobs", metavar="JOB", nargs="*", help="names, or globs of names")
    parser.add_argument("--lane", metavar="LANE", help="wait until no job of the lane is left")
    parser.add_argument("--all", action="store_true", help="wait until no job is left")
    parser.add_argument("--timeout", metavar="SPAN", help="give up after this time, such as 2h")


def run(args: Arguments) -> int:
    """Wait."""
    if sum(map(bool, (args.jobs, args.lane, args.all))) != 1:
        raise UsageError("wait for what? Name jobs, or --lane LANE, or --all; one of them.")
    place = Place(system=args.system)
    until_sec = _deadline(args.timeout)
    place.open()
    with Watch(place.spool) as watch:
        alive, ends = _start(args, place)
        _refuse_deadlock(place, alive(), until_sec)
        if next(iter(alive()), None) is not None and not place.has_controller():
            remark(f"no controller is running, so nothing ends; {place.start_hint()}.")
        in_time = _wait(place, watch, alive, ends, until_sec, quiet=args.json != "off")
    if args.json != "off":
        print_json([{"name": name, "state": state} for name, state in ends.items()], args.json)
    if not in_time:
        return TIMED_OUT
    worst = {STATUS_OF[state] for state in ends.values()}
    return next((status for status in WORST_FIRST if status in worst), OK)


def _deadline(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        usec = parse_timespan(text)
    except ValueError as error:
        raise UsageError(f"--timeout: {error}.") from None
    return None if usec == INFINITY_USEC else time.monotonic() + usec / 1e6


def _start(args: Arguments, place: Place) -> tuple[Alive, Ends]:
    """Return which jobs are to be waited for, as a question that can be asked again."""
    ends: Ends = {}
    if args.jobs:
        names = expand(place, args.jobs, DIRECTORY_OF)
        return (lambda: [name for name in names if name not in ends]), ends
    if args.lane:
        place.check_lane(args.lane)
        return (lambda: _of_lane(place, args.lane)), ends
    return (lambda: [name for state in ALIVE for name in list_names(place.spool, state)]), ends


def _of_lane(place: Place, lane: str) -> Iterator[str]:
    for row in file_rows(place, states=ALIVE, wanted=lambda _name: True):
        if row["lane"] == lane:
            yield str(row["name"])


def _refuse_deadlock(place: Place, names: Iterable[str], until_sec: float | None) -> None:
    """Refuse to wait, from within a job, for its own end or for what starts only after it."""
    own = own_job()
    if not own:
        return
    wanted = frozenset(names)
    if own in wanted:
        raise SdqueueError(f"this is {own} itself, and it would wait for its own end for ever.")
    if until_sec is None:
        for row in file_rows(place, states=["queued"], wanted=wanted.__contains__):
            refuse_deadlock(place, "wait", str(row["lane"]))


def _wait(
    place: Place, watch: Watch, alive: Alive, ends: Ends, until_sec: float | None, *, quiet: bool
) -> bool:
    """Wait until none is alive, and note in `ends` how each ended; False when time is up first."""
    pending: dict[str, None] = {}
    while True:
        # What was alive once counts, also when it is gone at the next look.
        pending.update(dict.fromkeys(alive()))
        for name in list(pending):
            state = settled_state_of(place.spool, name, watch)
            if state not in ALIVE:
                del pending[name]
                ends[name] = state or REMOVED
                if not quiet:
                    print(f"{safe(name)} {ends[name]}", flush=True)
        if not pending and next(iter(alive()), None) is None:
            return True
        if not watch.wait(until_sec):
            return False
        if len(pending) > MANY:
            time.sleep(MANY_PAUSE_SEC)
