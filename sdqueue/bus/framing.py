"""Cutting a stream of bytes with descriptors into messages.

Knows the 16 fixed bytes of a message's header and a socket to read from; what is in a message it
does not look at. Reads never run past the end of a message, so descriptors, which the kernel hands
over with the first byte they were sent with, always belong to the message being read.
"""

import array
import os
import socket
import struct

FIXED_BYTES = 16
MESSAGE_BYTES_MAX = 128 * 1024 * 1024
"""The protocol's own limit; a peer that claims more is not read any further."""

_ANCILLARY_BYTES = socket.CMSG_SPACE(253 * array.array("i").itemsize)
_ENDIAN = {ord("l"): "<", ord("B"): ">"}


class BrokenStream(Exception):
    """What comes is no D-Bus, or has ended; nothing after it can be read."""


def message_length(fixed: bytes | bytearray) -> int:
    """Return the whole length in bytes of the message that begins with these 16 bytes."""
    endian = _ENDIAN.get(fixed[0])
    if endian is None or fixed[3] != 1:
        raise BrokenStream("the peer does not speak D-Bus version 1")
    (body_bytes,) = struct.unpack_from(f"{endian}I", fixed, 4)
    (fields_bytes,) = struct.unpack_from(f"{endian}I", fixed, 12)
    total: int = FIXED_BYTES + fields_bytes + (-fields_bytes % 8) + body_bytes
    if total > MESSAGE_BYTES_MAX:
        raise BrokenStream(f"the peer announces a message of {total} bytes")
    return total


class MessageReader:
    """Reads one message at a time from a non-blocking socket, close-on-exec from the start."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._data = bytearray()
        self._fds: list[int] = []
        self._wanted_bytes = FIXED_BYTES

    def read(self) -> tuple[bytes, list[int]] | None:
        """Return the next whole message and its descriptors, now the caller's; None where the
        rest is not there yet. Raise BrokenStream at the end of the stream.
        """
        while True:
            while len(self._data) < self._wanted_bytes:
                if not self._receive(self._wanted_bytes - len(self._data)):
                    return None
            if self._wanted_bytes == FIXED_BYTES:
                self._wanted_bytes = message_length(self._data)
                # A message of 16 bytes has no fields at all, which no message may have.
                if self._wanted_bytes == FIXED_BYTES:
                    raise BrokenStream("the peer sent a message without a header")
                continue
            return self._take()

    def _take(self) -> tuple[bytes, list[int]]:
        message = bytes(self._data), self._fds
        self._data, self._fds, self._wanted_bytes = bytearray(), [], FIXED_BYTES
        return message

    def _receive(self, size: int) -> bool:
        """Read up to `size` bytes more; return False where there is nothing to read now."""
        try:
            data, ancillary, flags, _ = self._sock.recvmsg(
                min(size, 1024 * 1024), _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            raise BrokenStream(error.strerror or str(error)) from None
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._fds.extend(numbers)
        if flags & socket.MSG_CTRUNC:
            raise BrokenStream("descriptors were lost, too many of them are open")
        if not data:
            raise BrokenStream("the bus closed the connection")
        self._data += data
        return True

    def close(self) -> None:
        """Close the descriptors of a message that was never finished."""
        for fd in self._fds:
            os.close(fd)
        self._fds = []
