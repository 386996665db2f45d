"""The journal of a job's runs: which matches find it, and running journalctl with them.

A run is known by its invocation id, which its record keeps; a job by its unit. What a *user*
manager puts into LogExtraFields= does not reach the journal on systemd 252, so SDQUEUE_JOB= is a
match for the machine's queue only, and is not used here.
"""

import subprocess
from collections.abc import Sequence

from sdqueue.cli.place import Place
from sdqueue.words.errors import SdqueueError

JOURNALCTL = "journalctl"


def of_unit(place: Place, unit: str) -> list[str]:
    """Return journalctl's words for all that a unit, and its manager about it, ever said."""
    return [f"--unit={unit}" if place.system else f"--user-unit={unit}"]


def of_run(place: Place, invocation: str) -> list[str]:
    """Return journalctl's words for one run: what it said, and its manager about it."""
    manager = "INVOCATION_ID" if place.system else "USER_INVOCATION_ID"
    return [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"{manager}={invocation}"]


def output_of(place: Place, unit: str) -> list[str]:
    """Return journalctl's words for what the unit's own processes said."""
    return [f"_SYSTEMD_UNIT={unit}" if place.system else f"_SYSTEMD_USER_UNIT={unit}"]


def last_lines(place: Place, unit: str, count: int) -> list[str]:
    """Return the last lines of a unit's journal, [] where there is none to be had."""
    argv = [JOURNALCTL, "--quiet", "--no-pager", f"--lines={count}", *of_unit(place, unit)]
    try:
        answer = subprocess.run(argv, capture_output=True, check=False)
    except OSError:
        return []
    return answer.stdout.decode("utf-8", "replace").splitlines()


def missing() -> SdqueueError:
    """Return the error for a machine without journalctl."""
    return SdqueueError(f"there is no {JOURNALCTL} here, and the journal is where jobs' output is.")


def argv_of(words: Sequence[str]) -> list[str]:
    """Return the whole command line of journalctl."""
    return [JOURNALCTL, *words]
