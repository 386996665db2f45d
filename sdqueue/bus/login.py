"""Getting from an address to an authenticated socket.

Knows the D-Bus handshake (EXTERNAL, with descriptors) and nothing of messages. Every way in which
the other end can fail to answer is a BusGone with the address in it, and takes a bounded time: the
caller puts the limit around it.
"""

import asyncio
import socket

from sdqueue.bus.address import unix_sockets
from sdqueue.words.errors import BusGone

_RETRY_SEC = 0.01
_LINE_BYTES_MAX = 4096
# The kernel says who we are, so no uid is sent: in a user namespace ours is not the bus's. All of
# it goes out at once, as in sd-bus, which saves three round trips.
_REQUEST = b"\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"
_ANSWERS = ("DATA", "OK", "AGREE_UNIX_FD")


async def open_socket(address: str) -> socket.socket:
    """Connect to the first socket of the address that answers, authenticate, and return it."""
    failures: list[str] = []
    for name in unix_sockets(address):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        sock.setblocking(False)
        try:
            await _connect(sock, name)
            await _authenticate(sock)
        except OSError as error:
            sock.close()
            failures.append(error.strerror or str(error))
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise BusGone(f"no message bus at {address}: {'; '.join(failures)}")


async def _connect(sock: socket.socket, name: bytes) -> None:
    """Connect, and wait while the listener's backlog is full.

    asyncio's own takes that EAGAIN for a connection under way, which it is not for Unix sockets.
    """
    while True:
        try:
            sock.connect(name)
        except BlockingIOError:
            await asyncio.sleep(_RETRY_SEC)
        else:
            return


async def _authenticate(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, _REQUEST)
    received = b""
    for expected in _ANSWERS:
        while b"\r\n" not in received:
            if len(received) > _LINE_BYTES_MAX:
                raise OSError("it does not speak D-Bus")
            # The bus says nothing after its last line before our Hello, so this can't read too far.
            data = await loop.sock_recv(sock, _LINE_BYTES_MAX)
            if not data:
                raise OSError("it closed the connection during authentication")
            received += data
        line, _, received = received.partition(b"\r\n")
        if line.split(b" ")[0] != expected.encode():
            raise OSError(f"it answered {line[:80].decode(errors='replace')!r}, not {expected}")
    if received:
        raise OSError("it does not speak D-Bus")
