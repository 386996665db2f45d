"""How fast `sdqueue submit` is: as a process, and with many jobs at once.

    python benchmarks/submit.py [--pairs N] [--jobs N] [--directory DIR]

Prints the median over pairs of (`sdqueue submit -- true`) / (`python3 -I -c pass`), and how many
jobs a second one `submit -` writes durably. DIR must be on a disk: a tmpfs has nothing to sync.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "sdqueue"
RUN = (
    f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); "
    "from sdqueue.cli import main; sys.exit(main())"
)
SUBMIT = ["-I", "-c", RUN, "--user", "submit"]
LIMIT_RATIO, LIMIT_PER_SEC = 3.0, 1000.0


def cost(argv: Sequence[str], env: dict[str, str]) -> tuple[float, float]:
    """Run a program; return its wall clock and its processor time, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, check=True, env=env, capture_output=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def as_a_process(python: str, pairs: int, env: dict[str, str]) -> None:
    """Print how long one submit takes, as a ratio to an interpreter that does nothing."""
    bare, full = [python, "-I", "-c", "pass"], [python, *SUBMIT, "--", "true"]
    found = [(cost(bare, env), cost(full, env)) for _ in range(pairs)]
    for at, what in enumerate(("wall clock", "processor time")):
        ratio = statistics.median(ours[at] / its[at] for its, ours in found)
        ours_ms = 1000 * statistics.median(ours[at] for _, ours in found)
        print(
            f"submit -- true, {what}: {ratio:.2f} times {' '.join(bare)} ({ours_ms:.1f} ms),"
            f" limit {LIMIT_RATIO:g}"
        )


def many_at_once(python: str, jobs: int, env: dict[str, str]) -> None:
    """Print how many jobs a second one submit writes."""
    commands = "".join(f"true {number}\n" for number in range(jobs))
    began = time.perf_counter()
    done = subprocess.run(
        [python, *SUBMIT, "-"], input=commands, check=True, env=env, capture_output=True, text=True
    )
    rate = jobs / (time.perf_counter() - began)
    assert len(done.stdout.splitlines()) == jobs
    print(f"submit - with {jobs} commands: {rate:.0f} jobs a second, limit {LIMIT_PER_SEC:g}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=41)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--directory", default="/var/tmp")
    parser.add_argument(
        "--python", default=shutil.which("python3", path="/usr/bin") or sys.executable
    )
    options = parser.parse_args()
    subprocess.run([options.python, "-m", "compileall", "-q", str(PACKAGE)], check=True)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        env = {**os.environ, "XDG_STATE_HOME": directory, "XDG_CONFIG_HOME": directory}
        as_a_process(options.python, options.pairs, env)
        many_at_once(options.python, options.jobs, env)


if __name__ == "__main__":
    main()
