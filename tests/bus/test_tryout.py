"""`make try` does what it says, and leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

from tests.harness import manager as managers
from tests.harness.tools import require


def test_make_try_is_content_with_what_it_saw(tmp_path: Path) -> None:
    require(managers.missing())
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": str(tmp_path)}
    tried = subprocess.run(
        [sys.executable, "-m", "tests.tryout"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "all as it should be" in tried.stdout
    assert list(tmp_path.iterdir()) == []
