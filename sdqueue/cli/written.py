"""Job files that a person wrote: reading them, and saying what is wrong with file and line.

Kept apart from `compose`, since `jobfile` is slow to load and a plain `submit` needs none of it.
"""

import os
from typing import NamedTuple

from sdqueue.cli.place import Place
from sdqueue.cli.say import remark
from sdqueue.jobfile import JobFile, parse
from sdqueue.jobtext import JOB_MAX_BYTES, read_header
from sdqueue.spool.files import read_up_to
from sdqueue.words.errors import SdqueueError, UsageError


class Written(NamedTuple):
    """What a job file itself says that `submit` would otherwise add."""

    lane: str
    has_lane: bool
    has_cwd: bool


def read_file(file: str) -> bytes:
    """Return a file's bytes, or raise UsageError that says why it can't be read."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = read_up_to(fd, JOB_MAX_BYTES + 1)
        finally:
            os.close(fd)
    except OSError as error:
        raise UsageError(f"can't read {file!r}: {error.strerror}.") from None
    if len(data) > JOB_MAX_BYTES:
        raise UsageError(
            f"{file!r} has more than {JOB_MAX_BYTES >> 20} MiB; put its data in a file of its own."
        )
    return data


def read_spec(data: bytes, file: str, *, lane: str, place: Place) -> Written:
    """Read a job file whose lane is `lane` if it names none; raise after errors in it are said."""
    keys = {key for _, key, _ in read_header(data).lines}
    found = parse(f"job-{lane}", data, lanes=place.config.lanes, file=file, uid=os.geteuid())
    say_problems(found)
    if found.spec is None:
        raise SdqueueError(f"{file} was not submitted: mend what is said above.")
    return Written(found.spec.lane, b"LANE" in keys, b"CWD" in keys)


def say_problems(found: JobFile) -> None:
    """Say what is wrong with a job file, a line for each problem."""
    for problem in found.problems:
        remark(str(problem))
