"""A clock that a test sets, put in front of PYTHONPATH: `SDQUEUE_CLOCK` names a file of seconds.

The wall clock belongs to the whole machine, so it can't be stepped for one test; what the file says
is added to it, at every look.
"""

import os
import time

_now = time.time


def _stepped() -> float:
    try:
        with open(os.environ["SDQUEUE_CLOCK"], encoding="ascii") as file:
            return _now() + float(file.read() or 0)
    except (OSError, KeyError):
        return _now()


time.time = _stepped
