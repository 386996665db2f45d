"""In which line of a TOML file a setting stands: tomllib does not tell.

Reads only table headers and the keys at the heads of lines, which is enough to point a person to
the place; a key inside an inline table is found at the line of that table.
"""

import re

Places = dict[tuple[str, ...], int]
_HEADER = re.compile(r"^\s*\[\[?\s*([^\]#]+?)\s*\]")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'|\s*\.\s*)+?)\s*=""")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_LINE = re.compile(r"\(at line (\d+),")


def places_in(text: str) -> Places:
    """Return for each path of keys the line, 1-based, in which it is first said."""
    places: Places = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _path(header[1])
            places.setdefault(table, number)
        elif key := _KEY.match(line):
            places.setdefault(table + _path(key[1]), number)
    return places


def _path(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def error_line(error: Exception, data: bytes) -> int:
    """Return the line that a TOML error names; the last one where it names the end."""
    found = _LINE.search(str(error))
    return int(found[1]) if found else data.count(b"\n") + (not data.endswith(b"\n"))
