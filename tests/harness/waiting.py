"""Waiting for something that is seen only from outside: a predicate, the end of a process.

    eventually(lambda: path.exists(), "the witness")   -> the predicate's first true answer
    wait_exit(pid)                                     -> when that process is gone

Inside a test prefer what announces itself: a signal, inotify, a pipe, `m.run` that returns.
Every limit is generous and is there against hangs only; no test may assert a duration.
"""

import os
import select
import time
from collections.abc import Callable
from typing import TypeVar

LIMIT_SEC = 60.0
T = TypeVar("T")


def eventually(
    predicate: Callable[[], T],
    what: str = "",
    *,
    limit_sec: float = LIMIT_SEC,
    every_sec: float = 0.01,
) -> T:
    """Ask until the answer is true, and return it; fail after `limit_sec` and name `what`.

    An AssertionError of the predicate counts as "not yet", and is what the failure shows.
    """
    deadline = time.monotonic() + limit_sec
    while True:
        trouble: AssertionError | None = None
        try:
            if answer := predicate():
                return answer
        except AssertionError as error:
            trouble = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit_sec:g} s: {what or predicate}") from trouble
        time.sleep(every_sec)


def wait_exit(pid: int, *, limit_sec: float = LIMIT_SEC) -> None:
    """Wait until the process is gone; whose child it is does not matter."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not select.select([pidfd], [], [], limit_sec)[0]:
            raise AssertionError(f"process {pid} is still there after {limit_sec:g} s")
    finally:
        os.close(pidfd)
