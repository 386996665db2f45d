"""From a command line to job files: what `submit` and `run` have in common.

Options are the keys of `jobkeys`: a key that is added there is an option here. A command is written
into a job file of its own, with the caller's directory; scripts and job files are kept byte for
byte, and only the header lines that options name are changed. Loads nothing slow: a job file that
a person wrote is read by `jobfile`, which is loaded then.
"""

import os
import sys

from sdqueue.cli.options import REST, Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.say import warn
from sdqueue.jobkeys import KEYS, header_text
from sdqueue.jobtext import render, render_script
from sdqueue.jobvalues import looks_secret
from sdqueue.words.errors import UsageError
from sdqueue.words.names import command_word, job_name, second_word, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sdqueue.jobkeys import Key

Settings = list[tuple[str, str]]

METAVARS = {
    "DONE_IF": "COMMAND",
    "REQUIRES": "COMMAND",
    "RETRIES": "N",
    "RETRY_DELAY": "SPAN",
    "TIMEOUT": "SPAN",
    "MEMORY": "SIZE",
    "DISK": "SIZE[ DIR]",
    "NICE": "N",
    "CPU_WEIGHT": "N",
    "NOT_BEFORE": "TIME",
    "AFTER": "JOB",
    "AFTER_ANY": "JOB",
    "PRIORITY": "N",
    "ON_SUCCESS": "UNIT",
    "ON_FAILURE": "UNIT",
    "ENV": "NAME[=VALUE]",
    "CWD": "DIR",
    "ON_CALENDAR": "SPEC",
    "DESCRIPTION": "TEXT",
}
"""What stands for an option's value in help and manual, where it is not the key's name."""


class Draft:
    """A job that is about to be submitted: `name` is empty where `submit` is to number it."""

    __slots__ = ("data", "lane", "name", "settings", "word")

    def __init__(self, name: str, lane: str, word: str, data: bytes, settings: Settings) -> None:
        self.name = name
        self.lane = lane
        self.word = word
        self.data = data
        self.settings = settings


def option_of(key: "Key") -> str:
    """Return the option that stands for a header key."""
    return f"--{key.name.lower().replace('_', '-')}"


def add_job_options(parser: Parser) -> None:
    """Add what describes a job: its name, one option for each header key, and what to run."""
    group = parser.add_argument_group("The job")
    group.add_argument("--name", help="its name; else NNN-LANE-COMMAND with the next number")
    for key in KEYS:
        group.add_argument(
            option_of(key),
            dest=key.field,
            metavar=METAVARS.get(key.name, key.name),
            action="append" if key.many else "store",
            help=key.help,
        )
    what = parser.add_argument_group("What to run")
    what.add_argument("--script", metavar="FILE", help="a script; its #! line is followed")
    what.add_argument(
        "-f",
        "--file",
        dest="files",
        metavar="JOBFILE",
        nargs="+",
        action="extend",
        help="job files; the name of each is the job's",
    )
    what.add_argument("command", metavar="COMMAND", nargs=REST, help="a program, arguments")


def drafts(args: Arguments, place: Place) -> list[Draft]:
    """Return the jobs that the command line describes, or raise UsageError."""
    command = args.command
    ways = [way for way in (args.script, args.files, command) if way]
    if len(ways) != 1:
        raise UsageError(
            "say what to run: a command after --, --script FILE, or -f JOBFILE"
            f"{'; not two of them' if ways else ''}."
        )
    settings = _settings_of(args)
    if args.files:
        return [_from_job_file(file, args, settings, place) for file in args.files]
    if args.script:
        return [_from_script(args, settings, place)]
    return [_from_command(command, args, settings, place)]


def _settings_of(args: Arguments) -> Settings:
    """Return the header lines that the options ask for, in the order of the table."""
    settings: Settings = []
    for key in KEYS:
        given = getattr(args, key.field)
        if given is None:
            continue
        for text in given if key.many else (given,):
            settings.append((key.name, _text(key, text)))
    return settings


def _text(key: "Key", text: str) -> str:
    try:
        return header_text(key.name, _completed(key, text), now_sec=_now_sec())
    except ValueError as error:
        raise UsageError(f"{option_of(key)}: {error}.") from None


def _now_sec() -> float:
    from time import time

    return time()


def _completed(key: "Key", text: str) -> str:
    """Fill in what the caller has and the job will not: its directory, its environment."""
    if key.name == "CWD":
        return text if text == "~" or text.startswith("~/") else os.path.abspath(text)
    if key.name != "ENV":
        return text
    name, equals, _ = text.partition("=")
    if looks_secret(name):
        warn(f"{name} looks like a secret, and stands in the job's file and its unit now")
    if equals:
        return text
    if name not in os.environ:
        raise ValueError(f"{shown(name)} is not set here, and no value is given")
    from sdqueue.jobvalues import quoted

    return f"{name}={quoted(os.environ[name])}"


def lane_in(settings: Settings, name: str, place: Place) -> str:
    """Return the lane of a job with these settings, which is added to them where it is missing."""
    lane = dict(settings).get("LANE", "")
    if not lane:
        word = second_word(name)
        lane = word if word in place.lane_names() else place.default_lane()
    return place.check_lane(lane)


def _complete(settings: Settings, name: str, place: Place) -> tuple[str, Settings]:
    """Return the lane, and the settings with it and the caller's directory."""
    lane = lane_in(settings, name, place)
    given = dict(settings)
    first = [] if "LANE" in given else [("LANE", lane)]
    last = [] if "CWD" in given else [("CWD", _here())]
    return lane, [*first, *settings, *last]


def _here() -> str:
    try:
        return header_text("CWD", os.getcwd())
    except FileNotFoundError:
        raise UsageError("this directory does not exist any more; give --cwd.") from None
    except ValueError as error:
        raise UsageError(
            f"the present directory can't be the job's: {error}; give --cwd."
        ) from None


def _given_name(args: Arguments) -> str:
    return job_name(args.name) if args.name is not None else ""


def _from_command(
    command: "Sequence[str]", args: Arguments, settings: Settings, place: Place
) -> Draft:
    if any("\0" in word for word in command) or not command[0]:
        raise UsageError("the command's first word is empty.")
    name = _given_name(args)
    lane, settings = _complete(settings, name, place)
    return Draft(name, lane, command_word(command), render(settings, command), settings)


def from_lines(lines: "Iterable[bytes]", args: Arguments, place: Place) -> list[Draft]:
    """Return the jobs that run one line (or one text) of bash each."""
    lane, settings = _complete(_settings_of(args), "", place)
    head = render_script(settings, b"#!/bin/bash\n") + b"\n"
    return [
        Draft("", lane, command_word(_first_word(line)), head + line + b"\n", settings)
        for line in lines
    ]


def _first_word(line: bytes) -> list[str]:
    return line.decode("utf-8", "replace").split(None, 1)[:1]


def _from_script(args: Arguments, settings: Settings, place: Place) -> Draft:
    script = _read(args.script)
    word = command_word([args.script]).rpartition(".")[0] or command_word([args.script])
    return _from_written(_given_name(args), word, script, args.script, settings, place)


def _from_job_file(file: str, args: Arguments, settings: Settings, place: Place) -> Draft:
    if args.name is not None and len(args.files) > 1:
        raise UsageError("--name names one job, and there are several job files.")
    name = _given_name(args) or job_name(os.path.basename(file))
    return _from_written(name, "", _read(file), file, settings, place)


def _from_written(
    name: str, word: str, data: bytes, file: str, settings: Settings, place: Place
) -> Draft:
    """Return the job of a file that a person wrote: read in full, its problems said."""
    from sdqueue.cli.written import read_spec

    given = dict(settings)
    guess = given.get("LANE") or lane_in([], name, place)
    own = read_spec(data, file, lane=guess, place=place)
    lane = given.get("LANE") or own.lane
    added = settings if "LANE" in given or own.has_lane else [("LANE", lane), *settings]
    if "CWD" not in given and not own.has_cwd:
        added = [*added, ("CWD", _here())]
    return Draft(name, place.check_lane(lane), word, render_script(added, data), added)


def _read(file: str) -> bytes:
    from sdqueue.cli.written import read_file

    return sys.stdin.buffer.read() if file == "-" else read_file(file)
