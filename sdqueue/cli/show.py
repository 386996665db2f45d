"""`sdqueue show`: everything that is known of jobs, from their files and from the controller."""

from sdqueue.cli.detail import detailed, lines_of
from sdqueue.cli.listing import collect
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import colours, print_json, print_lines
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, Row, expand


def add_arguments(parser: Parser) -> None:
    """Add the options of `show`."""
    parser.add_argument("jobs", metavar="JOB", nargs="+", help="names, or globs of names")


def run(args: Arguments) -> int:
    """Show."""
    place = Place(system=args.system)
    jobs = details(place, args.jobs)
    if args.json != "off":
        print_json(jobs, args.json)
        return 0
    lines: list[str] = []
    for job in jobs:
        lines += [*([""] if lines else []), *lines_of(job, style=colours())]
    print_lines(lines, pager=not args.no_pager)
    return 0


def details(place: Place, patterns: list[str]) -> list[Row]:
    """Return the detailed rows of the jobs that are meant; NoSuchJob where one is not there."""
    names = expand(place, patterns, DIRECTORY_OF)
    rows: dict[str, Row] = {}
    for row in collect(place, list(DIRECTORY_OF), names):
        # A name in two directories counts as what runs, or else waits.
        rows.setdefault(str(row["name"]), row)
    return [detailed(place, rows[name]) for name in names if name in rows]
