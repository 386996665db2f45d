"""`sdqueue submit`: jobs into the queue, on disk before their names are printed.

Works without a controller. Goes through light modules only: a script may call it a thousand times.
"""

import sys

from sdqueue.cli.compose import Draft, add_job_options, drafts, from_lines
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.say import remark, warn
from sdqueue.spool.add import add, add_numbered
from sdqueue.words.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sdqueue.spool.layout import Spool


def add_arguments(parser: Parser) -> None:
    """Add the options of `submit`."""
    add_job_options(parser)
    parser.add_argument(
        "-0",
        "--null",
        action="store_true",
        help="with -: commands on standard input end in NUL, and may have several lines",
    )


def run(args: Arguments) -> int:
    """Submit, then print the names."""
    place = Place(system=args.system)
    jobs = _from_stdin(args, place) if args.command == ["-"] else _from_words(args, place)
    names = submit(place, jobs)
    _print(names, jobs, args.json)
    return 0


def _from_words(args: Arguments, place: Place) -> list[Draft]:
    if args.null:
        raise UsageError("-0 goes with -, for commands on standard input.")
    return drafts(args, place)


def _from_stdin(args: Arguments, place: Place) -> list[Draft]:
    if args.name is not None or args.script or args.files:
        raise UsageError("- reads many commands: --name, --script and -f do not go with it.")
    data = sys.stdin.buffer.read()
    lines = data.split(b"\0") if args.null else map(_plain_line, data.split(b"\n"))
    jobs = from_lines(filter(bytes.strip, lines), args, place)
    if not jobs:
        raise UsageError("there is no command on standard input.")
    return jobs


def _plain_line(line: bytes) -> bytes:
    """Return a line's command; a line that is a remark has none."""
    if b"\0" in line:
        raise UsageError("there is a NUL in a line of standard input; did you mean -0?")
    return b"" if line.lstrip().startswith(b"#") else line


def submit(place: Place, jobs: list[Draft]) -> list[str]:
    """Put the jobs on disk and return their names; say on stderr what will keep them waiting."""
    spool = place.open()
    names = _add_all(spool, jobs)
    settings = {key for job in jobs for key, _ in job.settings}
    if not settings.isdisjoint(("AFTER", "AFTER_ANY")):
        from sdqueue.cli.order import warn_order

        warn_order(spool, names, jobs)
    if "MEMORY" in settings:
        from sdqueue.cli.order import warn_memory

        warn_memory(jobs)
    if not place.has_controller():
        jobs_wait = "the job waits" if len(names) == 1 else "the jobs wait"
        remark(f"no controller is running, so {jobs_wait}; {place.start_hint()}.")
    return names


def _add_all(spool: "Spool", jobs: list[Draft]) -> list[str]:
    names: list[str] = []
    for job in (job for job in jobs if job.name):
        try:
            add(spool, job.name, job.data)
        except BaseException:
            if names:
                warn(f"submitted before this: {' '.join(names)}")
            raise
        names.append(job.name)
    numbered = [(job.lane, job.word, job.data) for job in jobs if not job.name]
    return names + (add_numbered(spool, numbered) if numbered else [])


def _print(names: list[str], jobs: list[Draft], mode: str) -> None:
    if mode == "off":
        sys.stdout.write("".join(f"{name}\n" for name in names))
        return
    from sdqueue.cli.output import print_json

    print_json(
        [{"name": name, "lane": job.lane} for name, job in zip(names, jobs, strict=True)], mode
    )
