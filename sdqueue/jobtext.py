"""The bytes of a job file: where its header is, how one is written, what is run of it.

Knows lines, not what keys mean (that is `jobkeys`) and not lanes or owners (that is `jobfile`).
Pure and quick to import: `sdqueue submit` writes job files with it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HEADER_MAX_BYTES = 64 * 1024
JOB_MAX_BYTES = 16 * 1024 * 1024
BOM = b"\xef\xbb\xbf"
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-")


class Header:
    """The leading comment lines of a job file.

    `lines` are (number, key, value) of those of the form `# KEY: value`; numbers are 1-based.
    `interpreter` is what follows `#!`, empty where there is none. The block begins at `start`
    (after a byte order mark and the `#!` line) and ends at `end`, before line number `next_line`.
    """

    __slots__ = ("end", "interpreter", "lines", "newline", "next_line", "start")

    def __init__(self) -> None:
        self.lines: list[tuple[int, bytes, bytes]] = []
        self.interpreter = b""
        self.newline = b"\n"
        self.start = self.end = 0
        self.next_line = 1


def read_header(data: bytes) -> Header:
    """Find the header in the head of a job file."""
    header = Header()
    at = len(BOM) if data.startswith(BOM) else 0
    number = 1
    if data.startswith(b"#!", at):
        line, at = _line(data, at)
        header.interpreter = line[2:].strip()
        header.newline = b"\r\n" if line.endswith(b"\r") else b"\n"
        number = 2
    header.start = at
    while data.startswith(b"#", at):
        line, at = _line(data, at)
        key, value = _setting(line)
        if key:
            header.lines.append((number, key, value))
        number += 1
    header.end, header.next_line = at, number
    return header


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the line at `at` without its line feed, and where the next one begins."""
    end = data.find(b"\n", at)
    return (data[at:], len(data)) if end < 0 else (data[at:end], end + 1)


def _setting(line: bytes) -> tuple[bytes, bytes]:
    """Return key and value of a comment of the form `# KEY: value`; of another, two times b""."""
    key, colon, value = line[1:].partition(b":")
    key = key.strip()
    return (key, value.strip()) if colon and not key.translate(None, _LETTERS) else (b"", b"")


def stray_lines(data: bytes, header: Header) -> list[tuple[int, bytes]]:
    """Return (number, key) of comments of a key's form that blank lines part from the header."""
    found: list[tuple[int, bytes]] = []
    at, number = header.end, header.next_line
    while at < len(data):
        line, at = _line(data, at)
        if line.strip() and not line.startswith(b"#"):
            break
        key, _ = _setting(line)
        if key:
            found.append((number, key))
        number += 1
    return found


def render(settings: "Iterable[tuple[str, str]]", argv: "Sequence[str]") -> bytes:
    """Return a job file that runs one command, with a header of (key, text) in that order.

    `argv` may hold any bytes, as surrogate escapes; the texts must be of one line.
    """
    header = b"".join(_header_line(key, text, b"\n") for key, text in settings)
    command = " ".join(map(shell_quoted, argv))
    guard = "-- " if argv[0].startswith("-") else ""
    return b"#!/bin/bash\n%s\nexec %s%s\n" % (
        header,
        guard.encode(),
        command.encode("utf-8", "surrogateescape"),
    )


def render_script(
    settings: "Sequence[tuple[str, str]]", script: bytes, *, without: "Sequence[str]" = ()
) -> bytes:
    """Return `script` with the header lines added; its own lines of the same keys are replaced, and
    those of the keys in `without` are left out.

    Everything else, above all the body, is kept byte for byte.
    """
    header = read_header(script)
    replaced = {key.encode() for key in (*without, *(key for key, _ in settings))}
    kept, at = b"", header.start
    while at < header.end:
        begin = at
        line, at = _line(script, at)
        if _setting(line)[0] not in replaced:
            kept += script[begin:at]
    added = b"".join(_header_line(key, text, header.newline) for key, text in settings)
    before = script[: header.start]
    if added and before and not before.endswith(b"\n") and before != BOM:
        before += header.newline
    return before + added + kept + script[header.end :]


def _header_line(key: str, text: str, newline: bytes) -> bytes:
    if "\n" in text or "\0" in text:
        raise ValueError(f"{key} must be one line")
    return f"# {key}: {text}".encode("utf-8", "surrogateescape") + newline


def shell_quoted(word: str) -> str:
    """Return `word` so that bash reads it as one word, unchanged."""
    if word and _SAFE.issuperset(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def snapshot_of(data: bytes) -> bytes:
    """Return what a run executes: without a byte order mark, and with Unix line ends.

    Line ends are changed only where every line has a CR, as an editor on Windows writes them.
    """
    data = data.removeprefix(BOM)
    first_end = data.find(b"\n")
    if first_end < 1 or data[first_end - 1] != 0x0D or data.count(b"\n") != data.count(b"\r\n"):
        return data
    return data.replace(b"\r\n", b"\n")


def interpreter_argv(line: bytes) -> tuple[str, ...]:
    """Return the argv that `#!line` stands for: as the kernel does, at most one argument."""
    if not line:
        return ("/bin/bash",)
    return tuple(word.decode("utf-8", "surrogateescape") for word in line.split(None, 1))
