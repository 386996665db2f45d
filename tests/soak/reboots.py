"""Ten reboots of an installed queue under load, on each systemd, one machine after the other.

    python -m tests.soak.reboots                         252, 257 and 262
    python -m tests.soak.reboots 262 --reboots 50

What is held after each reboot is in tests/booted/test_installed.py; every other reboot is a power
cut. What came out is appended to benchmarks/reboots.log.
"""

import argparse
import sys
import time
import traceback
from pathlib import Path

from tests.booted.test_installed import reboot_under_load
from tests.harness.container import VERSIONS, Container

LOG = Path(__file__).parents[2] / "benchmarks/reboots.log"


def reboots_of(version: str, reboots: int) -> tuple[bool, str]:
    """Reboot one machine so often; return whether all was well, and the line that says it."""
    begun = time.time()
    with Container(version) as container:
        systemd = container.run(["systemctl", "--version"]).stdout.splitlines()[0]
        try:
            counts = reboot_under_load(container, reboots)._asdict()
            said = ", ".join(
                f"{name.replace('_', ' ')} {number}" for name, number in counts.items()
            )
        except AssertionError as error:
            traceback.print_exc()
            return False, f"{systemd}: NOT: {str(error).splitlines()[:1]}"
        return True, f"{systemd}: {said}, {time.time() - begun:.0f} s"


def main() -> int:
    """Reboot the machines in turn, and write one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    parser.add_argument("--reboots", type=int, default=10)
    options = parser.parse_args()
    all_well = True
    for version in options.versions:
        well, said = reboots_of(version, options.reboots)
        all_well &= well
        line = f"{time.strftime('%Y-%m-%dT%H:%M', time.gmtime())}Z {said}"
        print(line, flush=True)
        with LOG.open("a") as log:
            log.write(f"{line}\n")
    return 0 if all_well else 1


if __name__ == "__main__":
    sys.exit(main())
