"""Running a program to its end, the same way inside a sandbox, a container and outside."""

import subprocess
from collections.abc import Sequence


def finish(
    process: subprocess.Popen[str],
    argv: Sequence[str],
    given: str | None,
    limit_sec: float,
    *,
    check: bool,
) -> subprocess.CompletedProcess[str]:
    """Feed it, wait for its end, and kill it if that does not come; `check` raises on failure."""
    with process:
        try:
            out, err = process.communicate(given, timeout=limit_sec)
        except BaseException:
            process.kill()
            raise
    if check and process.returncode != 0:
        raise AssertionError(f"{list(argv)} exited {process.returncode}\n{out or ''}{err or ''}")
    return subprocess.CompletedProcess(list(argv), process.returncode, out, err)
