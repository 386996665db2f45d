"""systemd's syntax: bytes in, assignments with their lines out; it never raises.

Every line of the file gets exactly one `LineKind`, so nothing can be lost unseen. Which sections
and keys exist is not known here (`directives`): an assignment in any section is an assignment.

Re-enacts config_parse() and parse_line(), src/shared/conf-parser.c, and read_line_full(),
src/basic/fileio.c, v252. Differs: the place of a value is the line with its key, where systemd
names the last line that continues it; a section that systemd does not know is kept by name.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from sdqueue.unitfile.split import BLANKS
from sdqueue.unitfile.unit import Comment, Place, Setting
from sdqueue.words.problem import Problem, Severity

LINE_MAX_BYTES = 1024 * 1024
BOM = "\ufeff"
_EOL = re.compile("(?:\r\n|\n\r|\r|\n)\0?|\0")
_LAST_OF_PLANES = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
_NOT_TEXT = re.compile(f"[\ud800-\udfff\ufdd0-\ufdef{_LAST_OF_PLANES}]")
_NOT_SAFE = re.compile("[\x01-\x1f\x7f\"'\\\\]")


class LineKind(StrEnum):
    """What systemd makes of a line; `unread` comes after a fault that ends the reading."""

    BLANK = "blank"
    COMMENT = "comment"
    SECTION = "section"
    ASSIGNMENT = "assignment"
    CONTINUATION = "continuation"
    IGNORED = "ignored"
    FATAL = "fatal"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Section:
    """A section header."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Parsed:
    """What is in one file. `failed`: systemd gives up at the line whose kind is `fatal`."""

    file: str
    settings: tuple[Setting, ...] = ()
    sections: tuple[Section, ...] = ()
    comments: tuple[Comment, ...] = ()
    problems: tuple[Problem, ...] = ()
    kinds: tuple[LineKind, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a line made systemd give up; what stands before it was still taken."""
        return LineKind.FATAL in self.kinds


def split_lines(data: bytes) -> list[str]:
    """Return the lines as systemd counts them; bytes that are no UTF-8 become surrogates."""
    text = data.decode("utf-8", "surrogateescape")
    lines = _EOL.split(text) if "\r" in text or "\0" in text else text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def parse(data: bytes, file: str) -> Parsed:
    """Read one file. `file` is only what places say."""
    reader = _Reader(file, split_lines(data), may_be_long=len(data) >= LINE_MAX_BYTES)
    reader.run()
    return Parsed(
        file,
        tuple(reader.settings),
        tuple(reader.sections),
        tuple(reader.comments),
        tuple(reader.problems),
        tuple(reader.kinds),
    )


@dataclass(slots=True)
class _Reader:
    """The loop over lines; `pending` holds what continuation lines have gathered so far."""

    file: str
    lines: list[str]
    may_be_long: bool
    settings: list[Setting] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    kinds: list[LineKind] = field(default_factory=list)
    section: str | None = None
    bom_seen: bool = False
    pending: list[str] = field(default_factory=list)
    pending_bytes: int = 0
    first: int = 0

    def run(self) -> None:
        """Read until the end, or until systemd would read no further."""
        kinds = self.kinds
        for number, raw in enumerate(self.lines, 1):
            text = raw.strip(BLANKS)
            if text and text[0] in "#;":
                kinds.append(LineKind.COMMENT)
                self.comments.append(Comment(raw.lstrip(BLANKS), Place(self.file, number)))
            elif self.pending or self.may_be_long or raw[-1:] == "\\" or raw[:1] == BOM:
                self._gather(raw, number)
            else:
                kinds.append(self._take(text, number) if text else LineKind.BLANK)
            if kinds[-1] is LineKind.FATAL:
                break
        else:
            if self.pending:
                self._end(self.first)
        kinds += [LineKind.UNREAD] * (len(self.lines) - len(kinds))

    def _gather(self, raw: str, number: int) -> None:
        """Take a line that may go on, or that ends one that did."""
        line = self._without_bom(raw)
        goes_on = bool(self.pending)
        self.first = self.first if goes_on else number
        if self.may_be_long:
            size = len(line.encode("utf-8", "surrogatepass"))
            self.pending_bytes = size + (self.pending_bytes if goes_on else 0)
            if self.pending_bytes >= LINE_MAX_BYTES:
                self.kinds.append(self._complain(number, "line longer than 1 MiB", fatal=True))
                return
        self.kinds.append(LineKind.CONTINUATION if goes_on else LineKind.BLANK)
        if (len(line) - len(line.rstrip("\\"))) % 2:
            self.pending.append(line[:-1] + " ")
        else:
            self.pending.append(line)
            self._end(self.first)

    def _end(self, first: int) -> None:
        """Read what was gathered; its kind goes to its first line, a fatal one to the last too."""
        text = "".join(self.pending).strip(BLANKS)
        self.pending.clear()
        if text:
            self.kinds[first - 1] = self._take(text, first)
        if self.kinds[first - 1] is LineKind.FATAL:
            self.kinds[-1] = LineKind.FATAL

    def _without_bom(self, raw: str) -> str:
        if self.bom_seen or not raw.startswith(BOM):
            return raw
        self.bom_seen = True
        return raw[1:]

    def _take(self, text: str, line: int) -> LineKind:
        if not text.isascii() and _NOT_TEXT.search(text):
            return self._complain(line, "not valid UTF-8", fatal=True)
        if text[0] == "[":
            return self._header(text, line)
        if self.section is None:
            return self._complain(line, "assignment outside of a section")
        key, equals, value = text.partition("=")
        if not equals:
            return self._complain(line, "no '=' in this line")
        if not key:
            return self._complain(line, "no key before '='")
        place = Place(self.file, line)
        self.settings.append(Setting(self.section, key.rstrip(BLANKS), value.lstrip(BLANKS), place))
        return LineKind.ASSIGNMENT

    def _header(self, text: str, line: int) -> LineKind:
        if text[-1] != "]":
            return self._complain(line, f"section header without ']': {text}", fatal=True)
        name = text[1:-1]
        if _NOT_SAFE.search(name):
            return self._complain(line, f"bad characters in section header {text}", fatal=True)
        self.section = name
        self.sections.append(Section(name, Place(self.file, line)))
        return LineKind.SECTION

    def _complain(self, line: int, what: str, *, fatal: bool = False) -> LineKind:
        severity: Severity = "error" if fatal else "warning"
        effect = "systemd reads no further" if fatal else "ignored"
        self.problems.append(Problem(self.file, line, f"{what}, {effect}", severity))
        return LineKind.FATAL if fatal else LineKind.IGNORED
