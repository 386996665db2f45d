"""Command lines of `Exec…=`: how systemd splits one, and what makes it refuse the unit.

Knows quotes, escapes, ";" and the marks before a path. Runs and looks up nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sdqueue.unitfile.specifier import FULL_SPECIFIERS, Host, expand
from sdqueue.unitfile.split import BLANKS
from sdqueue.words import unitname

# Which marks a mark may not follow; "!!" is one mark.
MARKS: Mapping[str, frozenset[str]] = {
    "-": frozenset("-"),
    "@": frozenset("@"),
    ":": frozenset(":"),
    "|": frozenset("|"),
    "+": frozenset(("+", "!", "!!")),
    "!": frozenset(("+", "!!")),
}
SHELL_MARK_SINCE = 258
_SIMPLE = dict(zip("abfnrtv\\\"'s", "\a\b\f\n\r\t\v\\\"' ", strict=True))
_CODED = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})")
_UNSAFE = re.compile("[\x01-\x1f\x7f\"'\\\\]")
_SEPARATOR = re.compile(r"\\?;(?=[ \t\n\r]|$)")


class BadCommand(ValueError):
    """A command line for which systemd refuses to load the unit."""


class Unbalanced(ValueError):
    """A quote that is never closed."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command: the marks before its path, the path, and its arguments (the path first)."""

    marks: str
    path: str
    argv: tuple[str, ...]


def commands(
    value: str, unit: str, host: Host, fragment_file: str | None, version: int = 257
) -> Iterator[Command]:
    """Yield the commands of one `Exec…=` value; BadCommand where systemd refuses the unit.

    A command marked "-" that can't be read is left out with all that follows it. One marked "|"
    (v258) is the shell's: its path is "|" and nothing about it is checked.
    Re-enacts config_parse_exec(), src/core/load-fragment.c, v252.
    """
    at = 0
    while True:
        try:
            word, at = next_word(value, at)
        except Unbalanced:
            return
        if word is None:
            return
        if word == ";":
            continue
        marks, path = _marks(word, version)
        if "|" in marks:
            yield Command(marks, "|", (word,))
            return
        try:
            command, at, more = _command(value, at, marks, path, (unit, host, fragment_file))
        except ValueError as error:
            if "-" in marks:
                return
            raise BadCommand(str(error)) from None
        yield command
        if not more:
            return


def _marks(word: str, version: int) -> tuple[str, str]:
    """Split the marks from the path; a mark that may not come here belongs to the path."""
    seen: set[str] = set()
    at = 0
    for char in word:
        known = char in MARKS and (char != "|" or version >= SHELL_MARK_SINCE)
        if not known or seen & MARKS[char]:
            break
        seen.add("!!" if char == "!" and "!" in seen else char)
        at += 1
    return word[:at], word[at:]


def _command(
    value: str, at: int, marks: str, path: str, about: tuple[str, Host, str | None]
) -> tuple[Command, int, bool]:
    path = _expand(path, about, unitname.PATH_MAX - 1)
    _check_path(path)
    argv = [] if "@" in marks else [path]
    more = False
    while at < len(value):
        separator = _SEPARATOR.match(value, at)
        if separator:
            at = _past_blanks(value, separator.end())
            if separator.group() == ";":
                more = True
                break
            argv.append(";")
            continue
        word, at = next_word(value, at)
        if word is None:
            break
        argv.append(_expand(word, about, 1 << 20))
    if not argv or not argv[0]:
        raise ValueError("no argument that could name the command")
    return Command(marks, unitname.simplify_path(path), tuple(argv)), at, more


def _expand(text: str, about: tuple[str, Host, str | None], max_length: int) -> str:
    unit, host, file = about
    return expand(
        text, unit, host, table=FULL_SPECIFIERS, fragment_file=file, max_length=max_length
    )


def _check_path(path: str) -> None:
    if not path:
        raise ValueError("no path to a command")
    if _UNSAFE.search(path):
        raise ValueError(f"special characters in the path of a command: {path!r}")
    if path.endswith("/"):
        raise ValueError(f"the path of a command is a directory: {path}")
    parts = path.split("/")
    too_long = any(len(part.encode("utf-8", "surrogateescape")) > 255 for part in parts)
    bad = too_long or path in (".", "..") or ("/" in path and not path.startswith("/"))
    if bad:
        raise ValueError(f"neither an absolute path nor the name of a command: {path}")


def next_word(value: str, at: int) -> tuple[str | None, int]:
    """Return the next word, unquoted and unescaped, and where the one after it begins.

    Escapes that mean nothing are kept as they are; Unbalanced for a quote without end. Re-enacts
    extract_first_word_and_warn() with EXTRACT_UNQUOTE and EXTRACT_CUNESCAPE,
    src/basic/extract-word.c, v252.
    """
    at = _past_blanks(value, at)
    if at == len(value):
        return None, at
    word: list[str] = []
    quote = ""
    while at < len(value) and (quote or value[at] not in BLANKS):
        text = char = value[at]
        if char == "\\":
            text, at = _unescape(value, at + 1)
        else:
            at += 1
            if char == quote:
                text, quote = "", ""
            elif not quote and char in "'\"":
                text, quote = "", char
        word.append(text)
    if quote:
        raise Unbalanced(f"a quote is never closed: {value}")
    return "".join(word), _past_blanks(value, at)


def _past_blanks(value: str, at: int) -> int:
    while at < len(value) and value[at] in BLANKS:
        at += 1
    return at


def _unescape(value: str, at: int) -> tuple[str, int]:
    """Return what an escape means and where it ends; `at` is after the backslash."""
    if at == len(value):
        return "\\", at
    if value[at] in _SIMPLE:
        return _SIMPLE[value[at]], at + 1
    coded = _CODED.match(value, at)
    if not coded:
        return f"\\{value[at]}", at + 1
    byte, short, long, octal = coded.groups()
    number = int(octal, 8) if octal else int(byte or short or long, 16)
    if number == 0 or number > 0x10FFFF:
        return f"\\{value[at]}", at + 1
    return chr(number), coded.end()
