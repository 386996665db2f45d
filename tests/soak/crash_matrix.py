"""The controller killed at every durable system call of a fixed scenario, one after the other.

    python -m tests.soak.crash_matrix                    all calls, at each of their times
    python -m tests.soak.crash_matrix fsync rename       only these
    python -m tests.soak.crash_matrix --step 3 --first 2 every third time
    python -m tests.soak.crash_matrix --error EIO        refused there, twice, instead of killed

For each point: the scenario is played, the first controller dies there, another goes on, and the
end must be that of the undisturbed run. What came out is appended to benchmarks/crash_matrix.log.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.bus.crash_scenario import Round, injected
from tests.harness.manager import PrivateManager

CALLS = ("rename", "fsync", "mkdir", "unlink", "write", "sendmsg", "sendto")
LOG = Path(__file__).parents[2] / "benchmarks/crash_matrix.log"


def at(manager: PrivateManager, call: str, number: int, error: str) -> tuple[bool, list[str]]:
    """Play the scenario with a fault at one point; say whether it came, and what is wrong."""
    played = Round(manager)
    fault = f"error={error}:when={number}..{number + 1}" if error else "signal=SIGKILL:when="
    try:
        played.play(injected(call, fault if error else f"{fault}{number}"))
        return played.deaths > 0 or bool(played.queue.events(event="error")), played.faults()
    except AssertionError as error:
        with suppress(AssertionError, subprocess.TimeoutExpired):
            played.queue.stop()
        return True, [f"{error}: {error.__cause__}", played.queue.said()[-2000:]]


def sweep(call: str, first: int, step: int, error: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each point and what is wrong after it, until the scenario makes the call no more."""
    with PrivateManager() as manager:
        number, is_there = first, True
        while is_there:
            is_there, faults = at(manager, call, number, error)
            if is_there:
                yield number, faults
            number += step


def main() -> int:
    """Sweep, print what is wrong, and write one line for each call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", nargs="*", default=CALLS)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--error", default="")
    options = parser.parse_args()
    all_wrong = 0
    for call in options.calls:
        begun, points, wrong = time.time(), 0, 0
        for number, faults in sweep(call, options.first, options.step, options.error):
            points += 1
            if faults:
                wrong += 1
                print(call, number, *faults, sep="\n    ", flush=True)
        all_wrong += wrong
        stamp = time.strftime("%Y-%m-%dT%H:%M", time.gmtime())
        how = options.error or "killed"
        said = f"{stamp}Z {call}: {how} at {points} points (from {options.first} by"
        said += f" {options.step}), {wrong} of them with another end, {time.time() - begun:.0f} s"
        print(said, flush=True)
        with LOG.open("a") as log:
            log.write(f"{said}\n")
    return 1 if all_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
