"""Names as parts of object paths, as systemd escapes them.

Knows the escaping only. Re-enacts bus_label_escape() and bus_label_unescape(),
src/basic/bus-label.c, v252.
"""

import re

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_DIGITS = frozenset("0123456789")
_ESCAPED = re.compile(r"_([0-9A-Fa-f]{2})")


def escape_label(name: str) -> str:
    """Return one object path element for a name: a leading digit and all but letters and digits
    become `_XX`, byte by byte.
    """
    if not name:
        return "_"
    return "".join(
        _escaped(each, is_plain=each in (_PLAIN if index else _PLAIN - _DIGITS))
        for index, each in enumerate(name)
    )


def _escaped(character: str, *, is_plain: bool) -> str:
    if is_plain:
        return character
    return "".join(f"_{byte:02x}" for byte in character.encode(errors="surrogateescape"))


def unescape_label(label: str) -> str:
    """Return the name that an object path element stands for; what is no escape stays."""
    if label == "_":
        return ""
    parts = _ESCAPED.split(label)
    data = b"".join(
        bytes([int(part, 16)]) if index % 2 else part.encode() for index, part in enumerate(parts)
    )
    return data.decode(errors="surrogateescape")
