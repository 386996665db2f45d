"""How long the generator takes, against the bare interpreter of its own `#!` line.

    python benchmarks/generator.py [ROUNDS]

systemd waits for all generators at boot and at every daemon-reload. The limit is four bare
interpreters (`python3 -I -S -c pass`); the pairs are run in turn, so that what else the machine
does hits both. Printed are ratios of medians: of the processor time, which a busy machine does not
bend, and of the wall clock.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PROGRAM = Path(__file__).resolve().parents[1] / "generators" / "sdqueue-generator"
LIMIT = 4
CONFIGURATION = """\
default_lane = "cpu"
[lane.gpu]
slots = 2
excludes = ["net", "big_cpu"]
devices = ["/dev/kfd"]
[lane.gpu.slice]
CPUWeight = 200
MemoryMax = "79%"
[lane.big_cpu]
before = ["cpu"]
"""
JOB = "#!/bin/bash\n# LANE: net\n# ON_CALENDAR: Mon..Fri 22:00\n./fetch\n"


class Cost(NamedTuple):
    """What one run took, in seconds."""

    cpu: float
    wall: float


def cost(argv: list[str], env: dict[str, str]) -> Cost:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, env=env, check=True, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


def measure(home: Path, rounds: int) -> tuple[Cost, Cost]:
    """Return the medians of the bare interpreter and of the generator."""
    out = str(home / "out")
    os.makedirs(out, exist_ok=True)
    env = {"PATH": os.environ["PATH"], "SYSTEMD_SCOPE": "user", "XDG_CONFIG_HOME": str(home)}
    interpreter = PROGRAM.read_text().splitlines()[0].removeprefix("#!").split()[0]
    subprocess.run([interpreter, "-m", "compileall", "-q", PROGRAM.parents[1] / "sdqueue"])
    bare, ours = [interpreter, "-I", "-S", "-c", "pass"], [str(PROGRAM), out, out, out]
    pairs = [(cost(bare, env), cost(ours, env)) for _ in range(rounds)]
    return median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as directory:
        for name, files in {
            "no configuration": {},
            "a configuration": {"sdqueue.toml": CONFIGURATION},
            "and ten jobs": {f"jobs.d/{n}-net-fetch.job": JOB for n in range(10)},
        }.items():
            for path, text in files.items():
                file = Path(directory, "sdqueue", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            bare, ours = measure(Path(directory), rounds)
            print(
                f"{name:17} {ours.cpu / bare.cpu:4.2f} times the processor time,"
                f" {ours.wall / bare.wall:4.2f} times the wall clock of a bare interpreter"
                f" ({bare.cpu * 1e3:.1f} ms, {bare.wall * 1e3:.1f} ms); at most {LIMIT}"
            )


if __name__ == "__main__":
    main()
