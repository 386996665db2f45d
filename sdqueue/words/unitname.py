"""Unit names: which are valid, what they are made of, how text and paths become one.

Knows systemd's rules for names and nothing of files or of what a unit does. Functions that take
apart a name take a valid one and raise ValueError for another; `kind_of` is how to ask first.
Names are text; where bytes matter (escaping) text is UTF-8 with surrogate escapes.
"""

import re
from enum import StrEnum
from functools import lru_cache

UNIT_TYPES = (
    "service",
    "mount",
    "swap",
    "socket",
    "target",
    "device",
    "automount",
    "timer",
    "path",
    "slice",
    "scope",
)
MAY_ALIAS = frozenset(("service", "socket", "target", "device", "timer", "path"))
MAY_TEMPLATE = frozenset(("service", "socket", "target", "timer", "path"))
NAME_MAX = 255
PATH_MAX = 4096
ROOT_SLICE = "-.slice"

_CHARS = r"[A-Za-z0-9:_.\\-]"
_NAME = re.compile(rf"(?!@)(?:{_CHARS}|@)+\.(?:{'|'.join(UNIT_TYPES)})")
_PREFIX = re.compile(rf"{_CHARS}+")
_INSTANCE = re.compile(rf"(?:{_CHARS}|@)+")
_PLAIN_BYTES = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:_.")
_HASHED = re.compile(r".+_[0-9a-f]{16}\.[a-z]+")
_HASH_KEY = bytes.fromhex("ecf237fb58324a32849f069b0d21eb9a")
_HASH_CHARS = 16


class NameKind(StrEnum):
    """`a.service` is plain, `a@b.service` an instance, `a@.service` a template."""

    PLAIN = "plain"
    INSTANCE = "instance"
    TEMPLATE = "template"


@lru_cache(maxsize=65536)
def kind_of(name: str) -> NameKind | None:
    """Return the kind of a valid unit name, None for anything else.

    Re-enacts unit_name_is_valid(), src/basic/unit-name.c, v252.
    """
    if len(name) > NAME_MAX or not _NAME.fullmatch(name):
        return None
    at, dot = name.find("@"), name.rfind(".")
    if at < 0:
        return NameKind.PLAIN
    return NameKind.TEMPLATE if dot == at + 1 else NameKind.INSTANCE


def is_valid(name: str) -> bool:
    """Say whether `name` is the name of a unit of any kind."""
    return kind_of(name) is not None


def is_template(name: str) -> bool:
    """Say whether `name` is a valid template name."""
    return kind_of(name) is NameKind.TEMPLATE


def is_instance(name: str) -> bool:
    """Say whether `name` is a valid instance name."""
    return kind_of(name) is NameKind.INSTANCE


def prefix_is_valid(text: str) -> bool:
    """Say whether `text` may stand before the "@" or the suffix."""
    return _PREFIX.fullmatch(text) is not None


def instance_is_valid(text: str) -> bool:
    """Say whether `text` may stand between "@" and the suffix."""
    return _INSTANCE.fullmatch(text) is not None


def type_of(name: str) -> str:
    """Return the unit type, such as "service"."""
    return _valid(name).rpartition(".")[2]


def prefix_and_instance(name: str) -> str:
    """Return the name without its suffix."""
    return _valid(name).rpartition(".")[0]


def prefix_of(name: str) -> str:
    """Return what stands before the "@", or before the suffix."""
    return prefix_and_instance(name).partition("@")[0]


def instance_of(name: str) -> str | None:
    """Return the instance, "" for a template, None for a plain name."""
    _, at, instance = prefix_and_instance(name).partition("@")
    return instance if at else None


def template_of(name: str) -> str:
    """Return the template of an instance, a template itself; ValueError for a plain name."""
    if kind_of(name) not in (NameKind.INSTANCE, NameKind.TEMPLATE):
        raise ValueError(f"{name}: has no template")
    return f"{prefix_of(name)}@.{type_of(name)}"


def with_instance(name: str, instance: str) -> str:
    """Return the name with another instance; ValueError where that makes no valid name."""
    made = f"{template_of(name).partition('@')[0]}@{instance}.{type_of(name)}"
    if not instance_is_valid(instance) or not is_instance(made):
        raise ValueError(f"{made}: not a valid unit name")
    return made


def build(prefix: str, instance: str | None, unit_type: str) -> str:
    """Put a name together; ValueError where that makes no valid name.

    Re-enacts unit_name_build_from_type(), src/basic/unit-name.c, v252.
    """
    if not prefix_is_valid(prefix) or (instance is not None and not instance_is_valid(instance)):
        raise ValueError(f"{prefix}: not a valid prefix")
    middle = "" if instance is None else f"@{instance}"
    return _valid(f"{prefix}{middle}.{unit_type}")


def less_specific(name: str) -> str | None:
    """Return the next name whose drop-ins a unit also gets (`a-b.service` has `a-.service`).

    None where no dash is left. Re-enacts the dash rule of unit_file_find_dirs(),
    src/shared/dropin.c, v252: a dash at the end is taken off once.
    """
    prefix = prefix_of(name)
    if prefix.endswith("-") and prefix.rfind("-") > 0:
        prefix = prefix[:-1]
    cut = prefix.rfind("-")
    if cut <= 0 or cut == len(prefix) - 1:
        return None
    instance = instance_of(name) or None
    try:
        return build(prefix[: cut + 1], instance, type_of(name))
    except ValueError:
        return None


def escape(text: str) -> str:
    """Return text as it can stand in a unit name: "/" becomes "-", the rest `\\xHH`.

    Re-enacts unit_name_escape(), src/basic/unit-name.c, v252.
    """
    data = text.encode("utf-8", "surrogateescape")
    return "".join(_escaped(byte, first=not i) for i, byte in enumerate(data))


def _escaped(byte: int, *, first: bool) -> str:
    if byte == ord("/"):
        return "-"
    if byte in _PLAIN_BYTES and not (first and byte == ord(".")):
        return chr(byte)
    return f"\\x{byte:02x}"


def unescape(text: str) -> str:
    """Undo `escape`; ValueError for a backslash that begins no `\\xHH`."""
    data = text.encode("utf-8", "surrogateescape")
    pieces = data.replace(b"-", b"/").split(b"\\")
    out = bytearray(pieces[0])
    for piece in pieces[1:]:
        if not re.match(rb"x[0-9A-Fa-f]{2}", piece):
            raise ValueError(f"{text}: a backslash that begins no \\xHH")
        out.append(int(piece[1:3], 16))
        out += piece[3:]
    return bytes(out).partition(b"\0")[0].decode("utf-8", "surrogateescape")


def simplify_path(path: str) -> str:
    """Take "." and doubled slashes out of a path; ".." stays.

    Re-enacts path_simplify(), src/basic/path-util.c, v252.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/"):
        return "/" + "/".join(parts)
    return "/".join(parts) or ("." if path else "")


def path_is_normalized(path: str) -> bool:
    """Say whether a path is not empty, not too long and has no ".", ".." or empty part.

    Re-enacts path_is_normalized(), src/basic/path-util.c, v252: a slash at the end is accepted.
    """
    data = path.encode("utf-8", "surrogateescape")
    parts = data.split(b"/")
    return (
        0 < len(data) < PATH_MAX
        and b"//" not in data
        and not any(part in (b".", b"..") or len(part) > NAME_MAX for part in parts)
    )


def path_escape(path: str) -> str:
    """Return a path as the prefix of a mount or device unit; ValueError for one with "..".

    Re-enacts unit_name_path_escape(), src/basic/unit-name.c, v252.
    """
    simple = simplify_path(path)
    if simple in ("", "/"):
        return "-"
    if not path_is_normalized(simple):
        raise ValueError(f"{path}: not a normalized path")
    return escape(simple.strip("/"))


def path_unescape(text: str) -> str:
    """Undo `path_escape`; ValueError for what no path would become."""
    if text == "-":
        return "/"
    path = unescape(text)
    if not text or path.startswith("/") or path.endswith("/"):
        raise ValueError(f"{text}: not an escaped path")
    if not path_is_normalized(f"/{path}"):
        raise ValueError(f"{text}: not an escaped path")
    return f"/{path}"


def from_path(path: str, unit_type: str) -> str:
    """Return the name of the mount, device… unit of a path; too long a name is hashed.

    Re-enacts unit_name_from_path(), src/basic/unit-name.c, v252.
    """
    name = f"{path_escape(path)}.{unit_type}"
    if len(name) > NAME_MAX:
        name = _hashed(name, unit_type)
    if kind_of(name) is not NameKind.PLAIN:
        raise ValueError(f"{path}: makes no valid unit name")
    return name


def to_path(name: str) -> str:
    """Return the path that a unit is named after; ValueError where it can't be told."""
    if _HASHED.fullmatch(name):
        raise ValueError(f"{name}: hashed, its path can't be told")
    return path_unescape(prefix_of(name))


def mangle(text: str, unit_type: str = "service") -> str:
    """Return the unit that a person means: a path is its mount or device, a word a service.

    Re-enacts unit_name_mangle_with_suffix() without globs, src/basic/unit-name.c, v252.
    """
    if is_valid(text):
        return text
    if text.startswith("/"):
        device = text.startswith(("/dev/", "/sys/"))
        try:
            return from_path(text, "device" if device else "mount")
        except ValueError:
            pass
    data = text.encode("utf-8", "surrogateescape")
    kept = _PLAIN_BYTES | frozenset(b"@-\\")
    made = "".join("-" if b == 47 else chr(b) if b in kept else f"\\x{b:02x}" for b in data)
    return _valid(made if is_valid(made) else f"{made}.{unit_type}")


def slice_is_valid(name: str) -> bool:
    """Say whether a name can be a slice: no dash at the ends, no two together.

    Re-enacts slice_name_is_valid(), src/basic/unit-name.c, v252.
    """
    if kind_of(name) is not NameKind.PLAIN or not name.endswith(".slice"):
        return False
    prefix = prefix_of(name)
    return name == ROOT_SLICE or not (
        prefix.startswith("-") or prefix.endswith("-") or "--" in prefix
    )


def parent_slice(name: str) -> str | None:
    """Return the slice above a slice, None for the root; ValueError for what is no slice."""
    if not slice_is_valid(name):
        raise ValueError(f"{name}: not a valid slice")
    if name == ROOT_SLICE:
        return None
    above = prefix_of(name).rpartition("-")[0]
    return f"{above}.slice" if above else ROOT_SLICE


def _valid(name: str) -> str:
    if kind_of(name) is None:
        raise ValueError(f"{name}: not a valid unit name")
    return name


def _hashed(name: str, unit_type: str) -> str:
    """Shorten a name with a hash of all of it, as unit_name_hash_long() does, v252."""
    room = NAME_MAX - len(unit_type) - _HASH_CHARS - 2
    digest = _siphash24(name.encode() + b"\0", _HASH_KEY).to_bytes(8, "little").hex()
    return f"{name[:room]}_{digest}.{unit_type}"


_MASK = (1 << 64) - 1


def _rotl(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _MASK


def _sip_round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = (a + b) & _MASK
    b = _rotl(b, 13) ^ a
    a = _rotl(a, 32)
    c = (c + d) & _MASK
    d = _rotl(d, 16) ^ c
    a = (a + d) & _MASK
    d = _rotl(d, 21) ^ a
    c = (c + b) & _MASK
    b = _rotl(b, 17) ^ c
    return a, b, _rotl(c, 32), d


def _siphash24(data: bytes, key: bytes) -> int:
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    state = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    padded = data + b"\0" * (7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        a, b, c, d = state
        a, b, c, d = _sip_round(*_sip_round(a, b, c, d ^ word))
        state = (a ^ word, b, c, d)
    a, b, c, d = state
    c ^= 0xFF
    for _ in range(4):
        a, b, c, d = _sip_round(a, b, c, d)
    return a ^ b ^ c ^ d
