"""One random set of units before the judge."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agreement import Bench, agree
from graph_oracle import Manager, Systemd
from random_units import PROBE, TARGET, Files, write


def bench_of(systemd: Systemd, scope: Manager = "system") -> Bench:
    """Return the bench that random sets are examined on."""
    return Bench(systemd, TARGET, PROBE, scope=scope)


@contextmanager
def written(files: Files) -> Iterator[Path]:
    """Keep a set in a directory of its own."""
    directory = Path(tempfile.mkdtemp(prefix="sdqueue-random-"))
    try:
        write(files, directory)
        yield directory
    finally:
        shutil.rmtree(directory)


def examine(bench: Bench, files: Files) -> list[str]:
    """Return all differences between the judge and us over one set; [] is agreement."""
    with written(files) as directory:
        return agree(bench, directory)[0]
