"""`sdqueue logs`: the journal of a job's runs; what is shown, and how, is journalctl's."""

import os
import subprocess
import sys

from sdqueue.cli import journal
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.records import record_of
from sdqueue.cli.rows import DIRECTORY_OF, expand
from sdqueue.spool.runs import runs
from sdqueue.words.errors import NoSuchJob, SdqueueError, UsageError
from sdqueue.words.names import job_name, unit_of_job

_OUTPUT_OF_JSON = {"short": "json", "pretty": "json-pretty"}


def add_arguments(parser: Parser) -> None:
    """Add the options of `logs`."""
    parser.add_argument("job", metavar="JOB", help="the job's name")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes")
    parser.add_argument("-n", "--lines", metavar="N", help="only the last lines")
    parser.add_argument(
        "--run", type=int, metavar="N", help="only this run; -1 is the last one, -2 the one before"
    )
    parser.add_argument(
        "-o", "--output", metavar="MODE", help="as journalctl's --output=, such as cat"
    )


def run(args: Arguments) -> int:
    """Become journalctl."""
    place = Place(system=args.system)
    words = [*_options(args), *_matches(place, _known(place, args.job), args.run)]
    sys.stdout.flush()
    try:
        os.execvp(journal.JOURNALCTL, journal.argv_of(words))
    except OSError:
        raise journal.missing() from None


def _known(place: Place, text: str) -> str:
    """Return the job's name; its file may be gone, as long as there are runs."""
    name = job_name(text)
    try:
        return expand(place, [name], DIRECTORY_OF)[0]
    except NoSuchJob:
        if runs(place.spool, name):
            return name
        raise


def _options(args: Arguments) -> list[str]:
    if args.output and args.json != "off":
        raise UsageError("--json and --output are two ways to say the same; give one.")
    output = args.output or _OUTPUT_OF_JSON.get(args.json, "")
    return [
        *(["--follow"] if args.follow else []),
        *([f"--lines={args.lines}"] if args.lines else []),
        *([f"--output={output}"] if output else []),
        *(["--no-pager"] if args.no_pager else []),
        *(["--quiet"] if args.no_legend or args.json != "off" else []),
    ]


def _matches(place: Place, name: str, number: int | None) -> list[str]:
    if number is None:
        return journal.of_job(place, name)
    known = runs(place.spool, name)
    number = known[number] if number < 0 and -number <= len(known) else number
    if number not in known:
        there = f"its runs are {', '.join(map(str, known))}" if known else "it has not run yet"
        raise NoSuchJob(f"{name} has no run {number}; {there}.")
    later = [each for each in known if each > number]
    invocation = _invocation(place, name, number, is_last=not later)
    since_sec = _start(place, name, number) or 0.0
    return journal.of_run(
        place, name, invocation, since_sec, _start(place, name, later[0]) if later else None
    )


def _start(place: Place, name: str, number: int) -> float | None:
    start = record_of(place.spool, name, number).get("start")
    return float(start) if isinstance(start, int | float) else None


def _invocation(place: Place, name: str, number: int, *, is_last: bool) -> str:
    """Return the run's invocation id: from its record, or from the manager while it runs."""
    found = record_of(place.spool, name, number).get("invocation") or (
        _running(place, unit_of_job(name)) if is_last else ""
    )
    if not found:
        raise SdqueueError(
            f"run {number} of {name} has no invocation id in its record, since it was cut off;"
            f" see all runs with: sdqueue logs {name}"
        )
    return str(found)


def _running(place: Place, unit: str) -> str:
    ask = ["systemctl", place.manager_option, "show", "--property=InvocationID", "--value", unit]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
