"""The scripts of .ci and of the package: each is read by its shell, may be run, ends at errors."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def shell_of(file: Path) -> str:
    """Return the shell that a script names in its first line, empty if none."""
    first = file.read_bytes().partition(b"\n")[0].decode("utf-8", "replace")
    shell = first.removeprefix("#!")
    return shell if shell in ("/bin/bash", "/bin/sh") else ""


SCRIPTS = sorted(file for file in (ROOT / ".ci").rglob("*") if file.is_file() and shell_of(file))


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_script_is_well_formed(file: Path) -> None:
    done = subprocess.run([shell_of(file), "-n", file], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(file, os.X_OK)
    # A soak goes on with the next part, and says at its end that one has failed.
    assert "\nset -e" in file.read_text() or file.name == "soak"
