"""A job's output while it comes: journalctl's JSON, read without waiting, written as it was said.

Theory of operation. A follower cannot say that it has seen everything: a job's last lines may still
be on their way through journald when its unit is gone. So at the end journald is asked to catch up
(which only root may), the follower is ended, and a second, finite journalctl goes on after the last
entry's cursor. What the follower had and what that one brings is all there is.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from sdqueue.cli.journal import JOURNALCTL

CATCH_UP_SEC = 0.2
"""How long journald is given where it can't be asked."""
_COMMON = ("--quiet", "--no-pager", "--all", "--output=json")


class Output:
    """What the processes of one unit say, from `since_sec` on."""

    def __init__(self, matches: Sequence[str], since_sec: float) -> None:
        self._matches = list(matches)
        self._from = f"--since=@{since_sec:.6f}"
        self._rest = b""
        self._follower = self._start("--follow", "--lines=all")
        assert self._follower.stdout is not None
        self.fd = self._follower.stdout.fileno()
        os.set_blocking(self.fd, False)
        self.is_open = True

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        # A session of its own: Ctrl-C is for us to hear.
        return subprocess.Popen(
            [JOURNALCTL, *_COMMON, *words, self._from, *self._matches],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def copy(self) -> None:
        """Write what has come since the last call."""
        while self.is_open:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                break
            self.is_open = bool(data)
            self._take(data)
        sys.stdout.buffer.flush()

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            entry = json.loads(line)
            self._from = f"--after-cursor={entry['__CURSOR']}"
            sys.stdout.buffer.write(message(entry) + b"\n")

    def finish(self) -> None:
        """Write everything that there still is; the unit must be gone."""
        synced = subprocess.run([JOURNALCTL, "--sync"], capture_output=True, check=False)
        if synced.returncode != 0:
            time.sleep(CATCH_UP_SEC)
        self.close()
        with self._start() as rest:
            assert rest.stdout is not None
            self._rest = b""
            self._take(rest.stdout.read())
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """End the follower, and write what it had."""
        if self._follower.returncode is None:
            self._follower.terminate()
            os.set_blocking(self.fd, True)
            self.copy()
            self._follower.communicate()


def message(entry: dict[str, object]) -> bytes:
    """Return an entry's text as it was written; bytes that are no UTF-8 come as a list."""
    text = entry.get("MESSAGE")
    if isinstance(text, list):
        return bytes(byte for byte in text if isinstance(byte, int))
    return str(text or "").encode("utf-8", "replace")
