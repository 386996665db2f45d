"""How fast `sdqueue lint-units` is: against systemd's own single draw, and as units become many.

    python benchmarks/lint.py [--pairs N] [--sizes SMALL,LARGE]

Prints the median over pairs of (lint of the whole stock tree with two new files, cold process) /
(one `systemd-analyze verify default.target` of the same tree, which is one random draw and knows no
[Install]); the same against the 100 draws that would give the same answer; and, for generated
trees, time and memory of one process, and how they grow with the number of units.
"""

import argparse
import os
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
LINT = [sys.executable, "-I", "-c", RUN, "lint-units"]
VERIFY = ["systemd-analyze", "verify", "--man=no", "default.target"]
DRAWS, LIMIT_RATIO, LIMIT_GROWTH = 100, 5.0, 1.3
NEW = {
    "first.service": "[Unit]\nAfter=multi-user.target\n[Service]\nExecStart=/bin/true\n"
    "[Install]\nWantedBy=multi-user.target\n",
    "second.service": "[Unit]\nAfter=first.service\n[Service]\nExecStart=/bin/true\n"
    "[Install]\nWantedBy=multi-user.target\n",
}
UNIT = """[Unit]
After={after}
Wants={wants}
[Service]
ExecStart=/bin/true
StateDirectory=unit{number}
[Install]
WantedBy=multi-user.target
"""
STOCK = "/usr/lib/systemd/system"


def cost(argv: Sequence[str]) -> tuple[float, float, int]:
    """Run a program; return its wall clock and processor time in seconds, its peak in KiB."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss


def against_verify(pairs: int, directory: Path) -> None:
    """Print the ratios to systemd-analyze verify of this machine's tree."""
    for name, text in NEW.items():
        (directory / name).write_text(text)
    lint = [*LINT, *(str(directory / name) for name in NEW)]
    cost(lint), cost(VERIFY)
    ours, theirs = [], []
    for _ in range(pairs):
        ours.append(cost(lint))
        theirs.append(cost(VERIFY))
    for what, at in (("wall clock", 0), ("processor", 1)):
        ratio = statistics.median(o[at] / t[at] for o, t in zip(ours, theirs, strict=True))
        mine = statistics.median(o[at] for o in ours)
        print(f"stock tree and two files, {what}: {ratio:.2f} x verify (limit {LIMIT_RATIO:.0f}), "
              f"{ratio / DRAWS:.3f} x {DRAWS} draws, {mine * 1e3:.0f} ms")  # fmt: skip


def growth(sizes: tuple[int, int], pairs: int, directory: Path) -> None:
    """Print how time and memory grow from the smaller to the larger number of units."""
    trees = [(size, _tree(directory / str(size), size)) for size in sizes]
    # What an empty tree costs is taken off: that is the interpreter, not the units.
    empty = _tree(directory / "empty", 0)
    times: dict[int, list[float]] = {size: [] for size in (0, *sizes)}
    peaks = dict.fromkeys(times, 0)
    for _ in range(pairs):
        for size, root in ((0, empty), *trees):
            _, processor, peak = cost([*LINT, "--root", str(root)])
            times[size].append(processor)
            peaks[size] = max(peaks[size], peak)
    took = {size: statistics.median(found) for size, found in times.items()}
    for size in sizes:
        print(f"{size} units: {took[size]:.2f} s processor, {peaks[size] / 1024:.0f} MiB")
    small, large = sizes
    factor = large / small
    in_time = (took[large] - took[0]) / (took[small] - took[0]) / factor
    in_memory = (peaks[large] - peaks[0]) / max(1, peaks[small] - peaks[0]) / factor
    print(f"growth per unit from {small} to {large}: time {in_time:.2f}, memory {in_memory:.2f} "
          f"(1 is linear, limit {LIMIT_GROWTH})")  # fmt: skip


def _tree(root: Path, size: int) -> Path:
    """Write a root with so many services, each wanted by boot and after two earlier ones."""
    system, wants = root / STOCK.lstrip("/"), root / "etc/systemd/system/multi-user.target.wants"
    system.mkdir(parents=True)
    wants.mkdir(parents=True)
    for name in ("default.target", "multi-user.target", "basic.target", "sysinit.target"):
        text = "" if name == "sysinit.target" else "Requires=sysinit.target\n"
        (system / name).write_text(f"[Unit]\nAllowIsolate=yes\n{text}")
    (system / "default.target").unlink()
    (system / "default.target").symlink_to("multi-user.target")
    for number in range(size):
        name = f"unit{number}.service"
        before = [f"unit{number - step}.service" for step in (1, 7) if number >= step]
        text = UNIT.format(
            after=" ".join(before), wants=before[-1] if before else "", number=number
        )
        (system / name).write_text(text)
        (wants / name).symlink_to(f"{STOCK}/{name}")
    return root


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--sizes", default="500,5000")
    wish = parser.parse_args()
    small, large = (int(size) for size in wish.sizes.split(","))
    with tempfile.TemporaryDirectory(prefix="sdqueue-bench-") as directory:
        against_verify(wish.pairs, Path(directory))
        growth((small, large), max(1, wish.pairs // 5), Path(directory))


if __name__ == "__main__":
    main()
