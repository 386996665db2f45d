"""`sdqueue check`: what is wrong with job files, with file and line, before they are queued."""

import os

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import print_json, print_lines
from sdqueue.cli.place import Place
from sdqueue.cli.safe import safe
from sdqueue.jobfile import parse
from sdqueue.jobtext import JOB_MAX_BYTES
from sdqueue.spool.files import read_up_to
from sdqueue.spool.layout import Spool
from sdqueue.spool.scan import file_fault
from sdqueue.words.names import SUFFIX
from sdqueue.words.problem import Problem


def add_arguments(parser: Parser) -> None:
    """Add the options of `check`."""
    parser.add_argument("files", metavar="JOBFILE", nargs="+", help="job files")


def run(args: Arguments) -> int:
    """Check every file; 1 if one of them has an error."""
    place = Place(system=args.system)
    problems = [problem for file in args.files for problem in problems_of(file, place)]
    if args.json != "off":
        print_json([_as_json(problem) for problem in problems], args.json)
    else:
        print_lines((safe(str(problem)) for problem in problems), pager=not args.no_pager)
    return int(any(problem.severity == "error" for problem in problems))


def problems_of(file: str, place: Place) -> list[Problem]:
    """Return what is wrong with one job file."""
    data = _read(file, place.spool)
    if isinstance(data, Problem):
        return [data]
    found = list(parse(_name(file), data, lanes=place.config.lanes, file=file).problems)
    if not file.endswith(SUFFIX):
        found.append(Problem(file, 0, "a job file's name ends in .job", "warning"))
    return found


def _name(file: str) -> str:
    return os.path.basename(file).removesuffix(SUFFIX)


def _read(file: str, spool: Spool) -> bytes | Problem:
    """Return a file's bytes; what is no plain file is never waited for."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        return Problem(file, 0, f"can't be read: {error.strerror}")
    try:
        fault = file_fault(spool, os.fstat(fd))
        return Problem(file, 0, fault) if fault else read_up_to(fd, JOB_MAX_BYTES)
    except OSError as error:
        return Problem(file, 0, f"can't be read: {error.strerror}")
    finally:
        os.close(fd)


def _as_json(problem: Problem) -> dict[str, object]:
    return {
        "file": problem.file,
        "line": problem.line,
        "severity": problem.severity,
        "message": problem.message,
    }
