"""Is the table of settings what this machine's systemd says of itself?"""

import subprocess

import pytest
from extract_directives import read
from unitfile_oracle import BINARY

from sdqueue.unitfile.directives import directives
from sdqueue.unitfile.directives_data import VERSIONS


def version() -> int:
    said = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split()[1])


@pytest.mark.skipif(not BINARY.exists(), reason="no systemd to ask")
def test_the_table_is_what_systemd_dumps() -> None:
    checked = version()
    if checked not in VERSIONS:
        pytest.skip(f"systemd {checked} is not one of the checked versions")
    done = subprocess.run(
        [BINARY, "--dump-configuration-items"], capture_output=True, text=True, check=True
    )
    ours = {key for key, each in directives().items() if each.first <= checked <= each.last}
    assert ours == set(read(done.stdout))
