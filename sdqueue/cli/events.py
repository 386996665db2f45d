"""`sdqueue events`: what has happened, from events.jsonl, and what happens."""

import json
from collections.abc import Callable, Sequence

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import colours, paint_line, print_json, print_lines
from sdqueue.cli.place import Place
from sdqueue.cli.rows import matcher
from sdqueue.cli.safe import padded, safe
from sdqueue.cli.watching import Watch
from sdqueue.spool.eventread import Follower, Record, tail
from sdqueue.words.errors import UsageError
from sdqueue.words.names import SUFFIX

LINES = "100"
ALL = 1 << 62
_STAMP = ("ts", "t", "boot", "seq", "event", "job")
_COLOURS = {"failed": "bad", "error": "bad", "retry": "notice", "start": "good", "done": "good"}

Filter = Callable[[Record], bool]


def add_arguments(parser: Parser) -> None:
    """Add the options of `events`."""
    parser.add_argument("jobs", metavar="JOB", nargs="*", help="only these, names or globs")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what happens")
    parser.add_argument(
        "-n",
        "--lines",
        metavar="N",
        default=LINES,
        help=f"how many of the last events; all; else {LINES}",
    )
    parser.add_argument(
        "--event", action="append", metavar="EVENT", help="only events of this kind, such as wait"
    )


def run(args: Arguments) -> int:
    """Print events."""
    place = Place(system=args.system)
    wanted = _filter(args)
    if args.follow:
        return _follow(args, place, wanted)
    records = _last(place, wanted, _number(args.lines))
    if args.json != "off":
        print_json(records, args.json)
    else:
        style = colours()
        lines = [
            paint_line(line_of(r), _COLOURS.get(str(r.get("event")), ""), style) for r in records
        ]
        print_lines(lines, pager=not args.no_pager)
    return 0


def _filter(args: Arguments) -> Filter:
    is_job = matcher(args.jobs)
    kinds = args.event

    def wanted(record: Record) -> bool:
        job = str(record.get("job", "")).removesuffix(SUFFIX)
        return is_job(job) and (not kinds or record.get("event") in kinds)

    return wanted


def _number(text: str) -> int:
    if text == "all":
        return ALL
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"--lines: {text!r} is no number; write one, or all.")
    return int(text)


def _last(place: Place, wanted: Filter, count: int) -> list[Record]:
    """Return the last events that are wanted, looking back as far as need be."""
    looked = max(count, 1000)
    while count:
        records = tail(place.spool, looked)
        found = list(filter(wanted, records))
        if len(found) >= count or len(records) < looked:
            return found[-count:]
        looked *= 10
    return []


def _follow(args: Arguments, place: Place, wanted: Filter) -> int:
    place.open()
    with Watch(place.spool, log=True) as watch:
        follower = Follower(place.spool)
        try:
            last_seq = 0
            for record in _last(place, wanted, _number(args.lines)):
                last_seq = _seq(record)
                _print(record, args.json)
            while True:
                fresh = [each for each in follower.read() if _seq(each) > last_seq]
                for record in filter(wanted, fresh):
                    _print(record, args.json)
                watch.wait()
        finally:
            follower.close()


def _seq(record: Record) -> int:
    seq = record.get("seq")
    return seq if isinstance(seq, int) else 0


def _print(record: Record, mode: str) -> None:
    # While following there is no end at which an array could be closed: one object a line.
    text = line_of(record) if mode == "off" else json.dumps(record, ensure_ascii=False)
    print(text.encode("utf-8", "backslashreplace").decode(), flush=True)


def line_of(record: Record) -> str:
    """Return an event as a line for people."""
    fields = [f"{key}={_value(value)}" for key, value in record.items() if key not in _STAMP]
    head = padded(safe(str(record.get("event", "?"))), 12)
    job = str(record.get("job", "-")).removesuffix(SUFFIX)
    words: Sequence[str] = (str(record.get("ts", "")), head, job, *fields)
    return safe(" ".join(words)).rstrip()


def _value(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if " " in value or not value else value
    return json.dumps(value, ensure_ascii=False)
