"""Tell the service manager how we are: sd_notify(3) and the watchdog.

Ten lines of socket code rather than libsystemd: it is never worth a compiler at install time.
"""

import os
import socket
from collections.abc import Mapping


def notify(message: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send one message (`READY=1`, `STATUS=…`, `WATCHDOG=1`); False where nobody listens."""
    address = environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            sock.sendto(message.encode(), address.replace("@", "\0", 1))
        except OSError:
            return False
    return True


def watchdog_sec(environ: Mapping[str, str] = os.environ) -> float | None:
    """Say how often to send `WATCHDOG=1`: half of what the manager allows, None where it is off."""
    usec = environ.get("WATCHDOG_USEC", "")
    pid = environ.get("WATCHDOG_PID", str(os.getpid()))
    if not usec.isdigit() or int(usec) == 0 or pid != str(os.getpid()):
        return None
    return int(usec) / 2e6
