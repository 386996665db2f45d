"""`make install DESTDIR=`: everything at its place, and nothing that points into the checkout."""

import subprocess
from pathlib import Path

from tests.harness.tools import require

ROOT = Path(__file__).parents[2]


def test_make_install_puts_all_in_one_place(tmp_path: Path) -> None:
    done = subprocess.run(
        [".ci/install", tmp_path, "/usr"], cwd=ROOT, capture_output=True, text=True
    )
    if "No matching distribution" in done.stderr:
        require("the dependencies can't be fetched: no network, or no mirror")
    assert done.returncode == 0, done.stdout + done.stderr
    generator = (tmp_path / "usr/lib/systemd/system-generators/sdqueue-generator").read_text()
    assert "LIBRARY = '/usr/lib/sdqueue'\nPROGRAM = '/usr/bin/sdqueue'\n" in generator
    assert (tmp_path / "usr/lib/systemd/system/sdqueue.service").exists()
    assert (tmp_path / "usr/share/dbus-1/system.d/org.sdqueue1.conf").exists()
    assert (tmp_path / "usr/share/polkit-1/actions/org.sdqueue1.policy").exists()
    assert not list(tmp_path.rglob("10-program.conf")), "systemd finds /usr/bin/sdqueue by itself"
    library = tmp_path / "usr/lib/sdqueue"
    argv = ["/usr/bin/python3", "-P", "-m", "sdqueue", "--version"]
    subprocess.run(argv, env={"PYTHONPATH": str(library)}, check=True)
