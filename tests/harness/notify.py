"""The receiving end of sd_notify: how a daemon says that it is ready.

with NotifySocket(directory) as notify:
    …start it with NOTIFY_SOCKET=notify.address…
    words = notify.wait_for("READY", alive=pid)     {"READY": "1", …}, all that it said so far
"""

import os
import select
import socket
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.harness.waiting import LIMIT_SEC


class NotifySocket:
    """A datagram socket at a short path of its own in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.address = tempfile.mktemp(prefix="notify-", dir=directory)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.bind(self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        os.unlink(self.address)

    def wait_for(self, key: str, *, alive: int, limit_sec: float = LIMIT_SEC) -> dict[str, str]:
        """Return everything said once `key` was; fail when process `alive` ends before that."""
        said: dict[str, str] = {}
        deadline = time.monotonic() + limit_sec
        pidfd = os.pidfd_open(alive)
        try:
            while key not in said:
                left = deadline - time.monotonic()
                ready, _, _ = select.select([self._socket.fileno(), pidfd], [], [], max(left, 0))
                if self._socket.fileno() not in ready:
                    raise TimeoutError(f"{key}= was not said: {'ended' if ready else 'time is up'}")
                for line in self._socket.recv(65536).decode().splitlines():
                    name, _, value = line.partition("=")
                    said[name] = value
        finally:
            os.close(pidfd)
        return said
