"""The journal of a job's runs: which matches find it, and running journalctl with them.

A job is known by its unit, a run by its invocation id, which its record keeps. In the machine's
queue that is all. In a user's queue journald learns both from the cgroup of the process that wrote
a line, and of a process that is gone by then it learns nothing: the last words of a short job have
only the identifier that their stream began with, which is the job's name. (LogExtraFields= does not
help either: a user manager of systemd 252 does not pass it on.) So there the identifier is asked
for too, and which run a line belongs to is told by time.
"""

import json
import os
import subprocess
from collections.abc import Sequence

from sdqueue.cli.place import Place
from sdqueue.words.errors import SdqueueError
from sdqueue.words.names import unit_of_job

JOURNALCTL = "journalctl"


def of_job(place: Place, name: str) -> list[str]:
    """Return journalctl's words for all that a job, and the manager about it, ever said."""
    unit = unit_of_job(name)
    if place.system:
        return [f"--unit={unit}"]
    mine = f"_UID={os.geteuid()}"
    return [*output_of(place, name), "+", f"USER_UNIT={unit}", mine]


def output_of(place: Place, name: str) -> list[str]:
    """Return journalctl's words for what a job's own processes said."""
    unit = unit_of_job(name)
    if place.system:
        return [f"_SYSTEMD_UNIT={unit}"]
    mine = f"_UID={os.geteuid()}"
    return [f"_SYSTEMD_USER_UNIT={unit}", mine, "+", *_by_identifier(name), mine]


def _by_identifier(name: str) -> list[str]:
    return [f"SYSLOG_IDENTIFIER={name}", "_TRANSPORT=stdout"]


def of_run(
    place: Place, name: str, invocation: str, since_sec: float, until_sec: float | None
) -> list[str]:
    """Return journalctl's words for one run, from its start to the start of the next one."""
    manager = "INVOCATION_ID" if place.system else "USER_INVOCATION_ID"
    matches = [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"{manager}={invocation}"]
    if place.system:
        return matches
    until = [f"--until=@{until_sec:.6f}"] if until_sec else []
    mine = f"_UID={os.geteuid()}"
    return [f"--since=@{since_sec:.6f}", *until, *matches, "+", *_by_identifier(name), mine]


def last_lines(place: Place, name: str, count: int) -> list[str]:
    """Return the last lines of a job's journal, [] where there is none to be had."""
    argv = [JOURNALCTL, "--quiet", "--no-pager", f"--lines={count}", *of_job(place, name)]
    try:
        answer = subprocess.run(argv, capture_output=True, check=False)
    except OSError:
        return []
    return answer.stdout.decode("utf-8", "replace").splitlines()


DROPPED_MESSAGE = "MESSAGE_ID=a596d6fe7bfa4994828e72309e95d61e"
"""What journald says when its rate limit has dropped lines of a unit."""


def dropped_lines(place: Place, names: Sequence[str], since_sec: float) -> int:
    """Count the lines of these jobs that journald dropped since then, as far as it says.

    It counts a user's units together, under the user's own one.
    """
    argv = [JOURNALCTL, "--quiet", "--no-pager", "--output=json", f"--since=@{since_sec:.6f}"]
    try:
        answer = subprocess.run([*argv, DROPPED_MESSAGE], capture_output=True, check=False)
    except OSError:
        return 0
    units = list(map(unit_of_job, names)) if place.system else [f"user@{os.geteuid()}.service"]
    total = 0
    for line in answer.stdout.splitlines():
        entry = json.loads(line)
        if str(entry.get("MESSAGE", "")).endswith(tuple(units)):
            dropped = str(entry.get("N_DROPPED", ""))
            total += int(dropped) if dropped.isdecimal() else 1
    return total


def missing() -> SdqueueError:
    """Return the error for a machine without journalctl."""
    return SdqueueError(f"there is no {JOURNALCTL} here, and the journal is where jobs' output is.")


def argv_of(words: Sequence[str]) -> list[str]:
    """Return the whole command line of journalctl."""
    return [JOURNALCTL, *words]
