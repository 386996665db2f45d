"""The D-Bus wire format: plain Python values to bytes and back.

Knows the library that does the marshalling, and is the only module that does: of dbus-next (or
dbus-fast, SDQUEUE_BUS_LIBRARY=dbus_fast) we use the message and its codec, nothing that owns a
socket. Sockets, serials and time are not its business.

Theory of operation. Plain values are str, int, bool, float, bytes (`ay`), list (arrays), tuple
(structs), dict, and, outgoing only, `Variant`; incoming variants are unwrapped. A descriptor (`h`)
is its number. Everything outgoing is checked against its signature *here*, because a message bus
throws a peer out that sends a NUL in a string or a seventeenth descriptor, and with it everything
else that peer was doing. `Any` stops at the end of this file.
"""

import functools
import importlib
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sdqueue.words.errors import UsageError

LIBRARIES = ("dbus_next", "dbus_fast")

_library: Any = None
_Unmarshaller: Any = None


def use_library(name: str) -> None:
    """Marshal with this library from now on; raise ImportError where it is not to be had."""
    global _library, _Unmarshaller
    if name not in LIBRARIES:
        raise ImportError(f"{name}: the D-Bus library must be one of {', '.join(LIBRARIES)}")
    _library = importlib.import_module(name)
    _Unmarshaller = importlib.import_module(f"{name}._private.unmarshaller").Unmarshaller
    _types.cache_clear()


MESSAGE_BYTES_MAX = 16 * 1024 * 1024
"""Largest message that we send; the system bus disconnects at 32 MiB."""

FDS_MAX = 16
"""Most descriptors in one message that a bus with its default limits forwards."""


SIGNATURE_BYTES_MAX = 255
DEPTH_MAX = 32
"""What a bus lets a signature be; it counts arrays and structs apart, we need neither limit."""


class Kind(IntEnum):
    """The four message types."""

    CALL = 1
    RETURN = 2
    ERROR = 3
    SIGNAL = 4


NO_REPLY_EXPECTED = 1
ALLOW_INTERACTIVE_AUTHORIZATION = 4


@dataclass(frozen=True, slots=True)
class Variant:
    """A value that carries its own signature (`v`), outgoing only."""

    signature: str
    value: object


@dataclass(frozen=True, slots=True)
class Message:
    """One message, either way, with a plain body; "" and 0 stand for a header field left out.

    `fds` of an incoming message are those its body names; they are open and belong to whoever holds
    the message.
    """

    kind: Kind
    serial: int
    path: str = ""
    interface: str = ""
    member: str = ""
    destination: str = ""
    sender: str = ""
    error_name: str = ""
    reply_serial: int = 0
    signature: str = ""
    body: tuple[object, ...] = ()
    fds: tuple[int, ...] = ()
    flags: int = 0

    def close_fds(self) -> None:
        """Close every descriptor that came with the message; call it once."""
        for fd in self.fds:
            os.close(fd)


@functools.lru_cache(maxsize=512)
def _types(signature: str) -> tuple[Any, ...]:
    """Parse a signature into complete types; raise UsageError where it is none."""
    try:
        if len(signature) > SIGNATURE_BYTES_MAX:
            raise ValueError(f"longer than {SIGNATURE_BYTES_MAX} bytes")
        types = tuple(_library.SignatureTree(signature).types)
        if max(map(_depth, types), default=0) > DEPTH_MAX:
            raise ValueError(f"nested deeper than {DEPTH_MAX}")
    except Exception as error:
        raise UsageError(f"{signature[:80]!r} is not a D-Bus signature: {error}") from None
    return types


def _depth(kind: Any) -> int:
    return 1 + max(map(_depth, kind.children), default=0) if kind.token in "a({" else 0


use_library(os.environ.get("SDQUEUE_BUS_LIBRARY") or LIBRARIES[0])


def signature_types(signature: str) -> tuple[str, ...]:
    """Split a signature into its complete types: "sa{sv}" into ("s", "a{sv}")."""
    return tuple(each.signature for each in _types(signature))


# -- outgoing --------------------------------------------------------------------------------------

_INTEGERS = {
    "y": (0, 2**8 - 1),
    "n": (-(2**15), 2**15 - 1),
    "q": (0, 2**16 - 1),
    "i": (-(2**31), 2**31 - 1),
    "u": (0, 2**32 - 1),
    "x": (-(2**63), 2**63 - 1),
    "t": (0, 2**64 - 1),
}
_OBJECT_PATH = re.compile(r"/|(/[A-Za-z0-9_]+)+", re.ASCII)


def _wrong(kind: Any, value: object, why: str = "") -> UsageError:
    """Say what does not fit, without repeating a value that may be long or hostile."""
    shown = f" {value!r:.60}" if isinstance(value, (int, float, str)) else ""
    return UsageError(
        f"{type(value).__name__}{shown} can't be sent as D-Bus type {kind.signature}"
        + (f": {why}" if why else "")
    )


def _integer(kind: Any, value: object, _fds: list[int]) -> object:
    low, high = _INTEGERS[kind.token]
    if not isinstance(value, int) or not low <= value <= high:
        raise _wrong(kind, value, f"must be from {low} to {high}")
    return int(value)


def _boolean(kind: Any, value: object, _fds: list[int]) -> object:
    if not isinstance(value, bool):
        raise _wrong(kind, value)
    return value


def _double(kind: Any, value: object, _fds: list[int]) -> object:
    if not isinstance(value, (int, float)):
        raise _wrong(kind, value)
    return float(value)


def _string(kind: Any, value: object, _fds: list[int]) -> object:
    if not isinstance(value, str):
        raise _wrong(kind, value)
    if "\0" in value:
        raise _wrong(kind, value, "it contains a NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(kind, value, "it is not UTF-8") from None
    # Not a subclass: what marshals it looks at the exact type.
    return str(value)


def _object_path(kind: Any, value: object, _fds: list[int]) -> object:
    if not isinstance(value, str) or not _OBJECT_PATH.fullmatch(value):
        raise _wrong(kind, value, "it is not an object path")
    return str(value)


def _signature(kind: Any, value: object, _fds: list[int]) -> object:
    if not isinstance(value, str):
        raise _wrong(kind, value)
    _types(value)
    return str(value)


def _descriptor(kind: Any, value: object, fds: list[int]) -> object:
    """Put the descriptor aside and return its index, which is what goes into the body."""
    if not isinstance(value, int) or value < 0:
        raise _wrong(kind, value, "it is not a file descriptor")
    fds.append(value)
    return len(fds) - 1


def _variant(kind: Any, value: object, fds: list[int]) -> object:
    if not isinstance(value, Variant):
        raise _wrong(kind, value, "a Variant is needed")
    types = _types(value.signature)
    if len(types) != 1:
        raise _wrong(kind, value, f"{value.signature!r} is not one complete type")
    return _library.Variant(value.signature, _outgoing(types[0], value.value, fds))


def _struct(kind: Any, value: object, fds: list[int]) -> object:
    if not isinstance(value, (tuple, list)) or len(value) != len(kind.children):
        raise _wrong(kind, value, f"it needs {len(kind.children)} members")
    return [_outgoing(child, each, fds) for child, each in zip(kind.children, value, strict=True)]


def _array(kind: Any, value: object, fds: list[int]) -> object:
    child = kind.children[0]
    if child.token == "{":
        if not isinstance(value, Mapping):
            raise _wrong(kind, value)
        key_type, value_type = child.children
        return {
            _outgoing(key_type, key, fds): _outgoing(value_type, each, fds)
            for key, each in value.items()
        }
    if child.token == "y":
        if not isinstance(value, (bytes, bytearray)):
            raise _wrong(kind, value)
        return bytes(value)
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise _wrong(kind, value)
    return [_outgoing(child, each, fds) for each in value]


_Outgoing = Callable[[Any, object, list[int]], object]
_OUTGOING: dict[str, _Outgoing] = {
    **dict.fromkeys(_INTEGERS, _integer),
    "b": _boolean,
    "d": _double,
    "s": _string,
    "o": _object_path,
    "g": _signature,
    "h": _descriptor,
    "v": _variant,
    "(": _struct,
    "a": _array,
}


def _outgoing(kind: Any, value: object, fds: list[int]) -> object:
    return _OUTGOING[kind.token](kind, value, fds)


def encode(message: Message) -> tuple[bytes, list[int]]:
    """Marshal a message; return its bytes and the descriptors named in its body, still the
    caller's. Raise UsageError where the bus would throw us out, or could not carry it.
    """
    types = _types(message.signature)
    if len(types) != len(message.body):
        raise UsageError(
            f"{message.member or message.error_name}: {len(message.body)} values "
            f"for the signature {message.signature!r}"
        )
    fds: list[int] = []
    body = [_outgoing(kind, value, fds) for kind, value in zip(types, message.body, strict=True)]
    if len(fds) > FDS_MAX:
        raise UsageError(f"{len(fds)} descriptors in one message, at most {FDS_MAX} are possible")
    data = _marshal(message, body, fds)
    if len(data) > MESSAGE_BYTES_MAX:
        raise UsageError(f"a message of {len(data)} bytes, at most {MESSAGE_BYTES_MAX} can be sent")
    return data, fds


def _marshal(message: Message, body: Sequence[object], fds: Sequence[int]) -> bytes:
    try:
        native = _library.Message(
            destination=message.destination or None,
            path=message.path or None,
            interface=message.interface or None,
            member=message.member or None,
            message_type=_library.MessageType(int(message.kind)),
            flags=_library.MessageFlag(message.flags),
            error_name=message.error_name or None,
            reply_serial=message.reply_serial or None,
            unix_fds=list(fds),
            signature=message.signature,
            body=list(body),
            serial=message.serial,
        )
        return bytes(native._marshall(True))
    except Exception as error:
        # Names that are none, nesting too deep, an array over 64 MiB: all say it in their words.
        raise UsageError(f"can't be sent over D-Bus: {error}") from None


def escaped(value: object) -> object:
    """Return the value with every text in it as D-Bus can carry it: NULs and bytes that are no
    UTF-8 are spelled out.
    """
    match value:
        case str():
            return value.replace("\0", "\\0").encode(errors="backslashreplace").decode()
        case Variant(signature, inner):
            return Variant(signature, escaped(inner))
        case list() | tuple():
            return type(value)(map(escaped, value))
        case dict():
            return {escaped(key): escaped(each) for key, each in value.items()}
        case _:
            return value


# -- incoming --------------------------------------------------------------------------------------


class Malformed(ValueError):
    """Bytes that are no message, or one that the library can't read."""


class _Descriptors:
    """The descriptors of one message: each can be named once in the body."""

    def __init__(self, fds: Sequence[int]) -> None:
        self._left = dict(enumerate(fds))
        self.named: list[int] = []

    def take(self, index: int) -> int:
        """Return the descriptor of an index; -1 for one that is not there or named before."""
        fd = self._left.pop(index, -1)
        if fd >= 0:
            self.named.append(fd)
        return fd

    def close_unnamed(self) -> None:
        """Close what the body does not speak of: nobody could."""
        for fd in self._left.values():
            os.close(fd)


def _incoming(kind: Any, value: Any, fds: _Descriptors) -> object:
    """Unwrap variants, make structs tuples, and descriptors' indices numbers (-1 where none is)."""
    match kind.token:
        case "v":
            return _incoming(value.type, value.value, fds)
        case "a":
            return _incoming_array(kind.children[0], value, fds)
        case "(":
            return tuple(
                _incoming(child, each, fds)
                for child, each in zip(kind.children, value, strict=True)
            )
        case "h":
            return fds.take(value)
        case _:
            return value


def _incoming_array(child: Any, value: Any, fds: _Descriptors) -> object:
    if child.token == "y":
        return bytes(value)
    if child.token == "{":
        key_type, value_type = child.children
        return {
            _incoming(key_type, key, fds): _incoming(value_type, each, fds)
            for key, each in value.items()
        }
    if child.token in "v(ah":
        return [_incoming(child, each, fds) for each in value]
    return list(value)


def decode(data: bytes, fds: Sequence[int] = ()) -> Message:
    """Unmarshal the bytes of exactly one message, closing descriptors that its body does not name.

    Raise Malformed where that is impossible; then all descriptors are still the caller's.
    """
    descriptors = _Descriptors(fds)
    try:
        native = _Unmarshaller(io.BytesIO(data)).unmarshall()
        types = native.signature_tree.types if native.body else ()
        body = tuple(
            _incoming(kind, value, descriptors)
            for kind, value in zip(types, native.body, strict=True)
        )
        message = Message(
            kind=Kind(native.message_type.value),
            serial=native.serial,
            path=native.path or "",
            interface=native.interface or "",
            member=native.member or "",
            destination=native.destination or "",
            sender=native.sender or "",
            error_name=native.error_name or "",
            reply_serial=native.reply_serial or 0,
            signature=native.signature,
            body=body,
            fds=tuple(descriptors.named),
            flags=int(native.flags.value),
        )
    except Exception as error:
        raise Malformed(f"{type(error).__name__}: {error}") from None
    descriptors.close_unnamed()
    return message
