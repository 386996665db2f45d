"""Random sets of units against systemd, for as long as you like: the same graph, the same verdict.

    python tests/soak/random_unit_sets.py [--version 252|257|262] [--count N] [--first SEED]
                                          [--user]

A disagreement is shrunk to the few files and lines that it takes and written to
tests/cases/random_sets/VERSION-SEED/, where `make test` plays it again ever after. Exit status 1 if
there was one.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "oracle"), str(HERE.parents[2])]

import random_units  # noqa: E402
from agreement import Bench  # noqa: E402
from graph_oracle import Systemd  # noqa: E402
from random_sets import bench_of, examine  # noqa: E402

from tests.harness import images  # noqa: E402

CASES = HERE.parents[1] / "cases" / "random_sets"
PROGRESS_EVERY = 100
KEPT = frozenset({random_units.TARGET, random_units.PROBE})
Files = random_units.Files


def main() -> int:
    """Play the sets and tell what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", choices=tuple(images.SUITES), default="252")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--user", action="store_true", help="ask a user manager")
    wish = parser.parse_args()
    if missing := images.missing(wish.version):
        print(f"can't: {missing}")
        return 2
    root = images.root_of(wish.version)
    systemd = Systemd(None if str(root) == "/" else root)
    bench = bench_of(systemd, "user" if wish.user else "system")
    found = play(bench, wish.version, range(wish.first, wish.first + wish.count))
    print(f"{wish.count} sets on {wish.version}: {len(found)} disagreements {found or ''}")
    return 1 if found else 0


def play(bench: Bench, version: str, seeds: range) -> list[int]:
    """Examine each seed's set; shrink and keep those over which we disagree, return their seeds."""
    bad, begun = [], time.monotonic()
    for done, seed in enumerate(seeds, 1):
        files = random_units.make(seed)
        differences = examine(bench, files)
        if differences:
            bad.append(seed)
            print(f"seed {seed}: {differences[0]} ({len(differences)} lines)", flush=True)
            keep(bench, version, seed, files)
        if done % PROGRESS_EVERY == 0:
            rate = done / (time.monotonic() - begun)
            print(f"{done} sets, {len(bad)} bad, {rate:.1f} a second", flush=True)
    return bad


def keep(bench: Bench, version: str, seed: int, files: Files) -> None:
    """Shrink a set and write it down as a case."""
    small = shrink(files, lambda candidate: bool(examine(bench, candidate)))
    directory = CASES / f"{version}-{seed}"
    directory.mkdir(parents=True, exist_ok=True)
    found = {"version": version, "seed": seed, "files": small}
    (directory / "case.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"  {len(files)} files shrunk to {len(small)}: {directory}", flush=True)


def shrink(files: Files, fails: Callable[[Files], bool]) -> Files:
    """Return the least of these files and lines that still fails, as far as one at a time goes."""
    again = True
    while again:
        again = False
        for candidate in _smaller(files):
            if fails(candidate):
                files, again = candidate, True
                break
    return files


def _smaller(files: Files) -> Iterator[Files]:
    names = [name for name in files if name not in KEPT]
    for part in (len(names) // 2, len(names) // 4):
        for at in range(0, len(names), part) if part > 1 else ():
            gone = set(names[at : at + part])
            yield {name: text for name, text in files.items() if name not in gone}
    for gone_name in names:
        yield {name: text for name, text in files.items() if name != gone_name}
    for name, text in files.items():
        if text.startswith(random_units.LINK) or name == random_units.PROBE:
            continue
        lines = text.splitlines(keepends=True)
        for at, line in enumerate(lines):
            if not line.startswith("["):
                yield files | {name: "".join(lines[:at] + lines[at + 1 :])}


if __name__ == "__main__":
    sys.exit(main())
