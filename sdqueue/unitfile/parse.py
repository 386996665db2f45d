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
_NOT_TEXT = re.compile(
    "[\ud800-\udfff\ufdd0-\ufdef]|"
    + "|".join(f"[{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}]" for plane in range(17))
)
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
    lines = _EOL.split(data.decode("utf-8", "surrogateescape"))
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

    def run(self) -> None:
        pending: list[str] = []
        pending_bytes = first = 0
        for number, raw in enumerate(self.lines, 1):
            stripped = raw.lstrip(BLANKS)
            if stripped[:1] in ("#", ";") and stripped:
                self.kinds.append(LineKind.COMMENT)
                self.comments.append(Comment(stripped, Place(self.file, number)))
                continue
            line = self._without_bom(raw)
            if self.may_be_long:
                pending_bytes = (pending_bytes if pending else 0) + _bytes(line)
                if pending_bytes >= LINE_MAX_BYTES:
                    self._give_up(number, "line longer than 1 MiB")
                    return
            first = first if pending else number
            if line.endswith("\\") and (len(line) - len(line.rstrip("\\"))) % 2:
                self.kinds.append(LineKind.CONTINUATION if pending else LineKind.BLANK)
                pending.append(line[:-1] + " ")
                continue
            if pending:
                line = "".join([*pending, line])
                pending = []
            if not self._logical(line, first, number):
                return
        if pending:
            self._logical("".join(pending), first, len(self.lines) + 1)

    def _without_bom(self, raw: str) -> str:
        if self.bom_seen or not raw.startswith(BOM):
            return raw
        self.bom_seen = True
        return raw[1:]

    def _logical(self, line: str, first: int, last: int) -> bool:
        """Take one line with its continuations; False where systemd reads no further."""
        text = line.strip(BLANKS)
        kind = self._take(text, first) if text else LineKind.BLANK
        if first <= len(self.kinds):
            self.kinds[first - 1] = kind
        if len(self.kinds) < min(last, len(self.lines)):
            self.kinds.append(LineKind.CONTINUATION if first < last else kind)
        if kind is LineKind.FATAL:
            self.kinds += [LineKind.UNREAD] * (len(self.lines) - len(self.kinds))
            return False
        return True

    def _take(self, text: str, line: int) -> LineKind:
        if _NOT_TEXT.search(text):
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

    def _give_up(self, line: int, what: str) -> None:
        self.kinds.append(self._complain(line, what, fatal=True))
        self.kinds += [LineKind.UNREAD] * (len(self.lines) - len(self.kinds))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
