"""The answer: JSON, or a table with aligned columns, through a pager where it is long.

Everything that is printed as text goes through `safe`.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sdqueue.cli.safe import ellipsized, padded, safe, width

JSON_INDENT = {"short": None, "pretty": 2}
GAP = "  "
NARROWEST = 8
"""A column that is cut to fit the terminal keeps at least so many characters."""


def print_json(value: object, mode: str) -> None:
    """Print one JSON value, and nothing else."""
    separators = (",", ":") if mode == "short" else None
    text = json.dumps(value, ensure_ascii=False, indent=JSON_INDENT[mode], separators=separators)
    # A file name that is not UTF-8 must not end the output.
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


class Column(NamedTuple):
    """A column: its head, the key of its value in a row, and how it behaves.

    `optional` columns appear only when a row has a value for them; a `flexible` one is cut when the
    table is wider than the terminal; `right` aligns numbers.
    """

    head: str
    key: str
    optional: bool = False
    flexible: bool = False
    right: bool = False


Cells = Mapping[str, str]


def table(
    columns: Sequence[Column],
    rows: Sequence[Cells],
    *,
    legend: bool = True,
    paint: "Style | None" = None,
) -> list[str]:
    """Return the lines of a table; each row maps a column's key to its text."""
    used = [c for c in columns if not c.optional or any(row.get(c.key) for row in rows)]
    texts = [[safe(row.get(column.key, "")) for column in used] for row in rows]
    heads = [column.head if legend else "" for column in used]
    widths = [
        max([width(heads[at]), *(width(text[at]) for text in texts)]) for at in range(len(used))
    ]
    _fit(used, widths)
    lines = [paint_line(_line(heads, widths, used), "head", paint)] if legend else []
    for row, text in zip(rows, texts, strict=True):
        lines.append(paint_line(_line(text, widths, used), row.get("paint", ""), paint))
    return lines


def _fit(columns: Sequence[Column], widths: list[int]) -> None:
    """Cut flexible columns until the table is as wide as the terminal; elsewhere nothing is cut."""
    if not sys.stdout.isatty():
        return
    over = sum(widths) + len(GAP) * (len(widths) - 1) - terminal_columns()
    for at in sorted(range(len(columns)), key=lambda at: -widths[at]):
        if over > 0 and columns[at].flexible:
            cut = min(over, max(0, widths[at] - NARROWEST))
            widths[at] -= cut
            over -= cut


def _line(texts: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    cells = []
    for text, room, column in zip(texts, widths, columns, strict=True):
        cell = ellipsized(text, room)
        cells.append(" " * (room - width(cell)) + cell if column.right else padded(cell, room))
    return GAP.join(cells).rstrip()


def terminal_columns() -> int:
    """Return the width of the terminal."""
    from shutil import get_terminal_size

    return get_terminal_size().columns


# Colour ----------------------------------------------------------------------------------------

Style = Mapping[str, str]
RESET = "\x1b[0m"
COLOURS: Style = {
    "head": "\x1b[4m",
    "good": "\x1b[32m",
    "active": "\x1b[1;32m",
    "bad": "\x1b[1;31m",
    "notice": "\x1b[33m",
    "dim": "\x1b[90m",
}
STATE_COLOURS = {"running": "active", "failed": "bad", "parked": "notice", "done": "dim"}


def colours() -> Style | None:
    """Return the colours to paint with, None where there are to be none."""
    wanted = os.environ.get("SYSTEMD_COLORS", "")
    if wanted in ("0", "no", "false", "off", "n"):
        return None
    if wanted:
        return COLOURS
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return None
    return COLOURS if sys.stdout.isatty() else None


def paint_line(line: str, colour: str, style: Style | None) -> str:
    """Return the line in a colour."""
    return f"{style[colour]}{line}{RESET}" if style and colour in style else line


# Pager -----------------------------------------------------------------------------------------

PAGERS = ("less", "more")


def print_lines(lines: Iterable[str], *, pager: bool) -> None:
    """Print lines of text, through a pager where they do not fit on the terminal."""
    lines = list(lines)
    text = "".join(f"{line}\n" for line in lines)
    data = text.encode("utf-8", "backslashreplace")
    if not (pager and _is_long(lines) and _paged(data)):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _is_long(lines: Sequence[str]) -> bool:
    from shutil import get_terminal_size

    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        return False
    return len(lines) >= get_terminal_size().lines


def _paged(data: bytes) -> bool:
    """Show through the first pager that is there; False if there is none to be used."""
    import shutil
    import subprocess

    command = os.environ.get("SYSTEMD_PAGER", os.environ.get("PAGER"))
    if command in ("", "cat"):
        return False
    choice = [command] if command else [name for name in PAGERS if shutil.which(name)][:1]
    environment = {"LESS": "FRSXMK", "LESSCHARSET": "utf-8", "LESSSECURE": "1", **os.environ}
    for pager in choice:
        process = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, env=environment)
        try:
            process.communicate(data)
        except KeyboardInterrupt:
            process.wait()
        # The shell says 127 where there is no such program.
        return process.returncode != 127
    return False
