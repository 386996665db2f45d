"""Looking at a message's header without unmarshalling its body.

Pure. Most signals on a busy bus are of no interest, and a unit's PropertiesChanged costs the
library a third of a millisecond to read: so what a match rule asks of a signal is read from the
bytes here, and the body only when somebody looks at it.
"""

import struct
from dataclasses import dataclass

_ENDIAN = {ord("l"): "<", ord("B"): ">"}
_FIELDS = {1: "path", 2: "interface", 3: "member", 7: "sender", 8: "signature"}
_FIXED_BYTES = 16


@dataclass(slots=True)
class Header:
    """What a match rule looks at, and what an answer needs; "" stands for what is not there.

    `arg0` is the body's first value where that is a string, else None.
    """

    kind: int
    path: str = ""
    interface: str = ""
    member: str = ""
    sender: str = ""
    signature: str = ""
    arg0: str | None = None
    flags: int = 0
    serial: int = 0


def peek(data: bytes) -> Header | None:
    """Return the header of a whole message; None where only unmarshalling can tell."""
    try:
        return _peek(data)
    except (IndexError, KeyError, ValueError, struct.error):
        return None


def _peek(data: bytes) -> Header:
    u32 = struct.Struct(_ENDIAN[data[0]] + "I")
    header = Header(kind=data[1], flags=data[2])
    (header.serial,) = u32.unpack_from(data, 8)
    (fields_bytes,) = u32.unpack_from(data, 12)
    position, end = _FIXED_BYTES, _FIXED_BYTES + fields_bytes
    while position < end:
        position += -position % 8
        code, kind = data[position], data[position + 2]
        if data[position + 1] != 1:
            raise ValueError("a field of no simple type")
        position, value = _value(data, position + 4, kind, u32)
        if name := _FIELDS.get(code):
            setattr(header, name, value)
    if header.signature.startswith("s"):
        _, header.arg0 = _value(data, end + -end % 8, ord("s"), u32)
    return header


def _value(data: bytes, position: int, kind: int, u32: struct.Struct) -> tuple[int, str]:
    """Return where a string, path, signature or number ends, and what it says ("" a number)."""
    if kind == ord("g"):
        size, position = data[position], position + 1
    else:
        position += -position % 4
        (size,) = u32.unpack_from(data, position)
        position += 4
        if kind == ord("u"):
            return position, ""
        if kind not in b"so":
            raise ValueError("a field of no simple type")
    if position + size >= len(data):
        raise ValueError("a string that goes past the end")
    return position + size + 1, data[position : position + size].decode()
