"""The keys of a job file's header: one table that parser, `submit`, `check` and manual read.

Knows for each key its field in JobSpec, how its value is read and written, and one line of help.
Values are plain (numbers, texts, tuples); `jobfile` makes a JobSpec of them. Kept apart from it
and free of slow imports, since `sdqueue submit` checks its options with this table alone.
"""

from sdqueue.words.errors import UsageError
from sdqueue.words.names import UNIT_NAME_MAX, did_you_mean, job_name, lane_name_fault, shown
from sdqueue.words.spans import (
    INFINITY_USEC,
    format_size,
    format_timespan,
    parse_percent,
    parse_size,
    parse_timespan,
    parse_timestamp,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo
    from typing import Any

UNIT_SUFFIXES = (
    ".service",
    ".target",
    ".socket",
    ".timer",
    ".path",
    ".mount",
    ".automount",
    ".swap",
    ".device",
    ".scope",
    ".slice",
)
_IDENTIFIER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_UNIT_CHARACTERS = _IDENTIFIER | frozenset(":.-@\\%")
_SECRETS = ("TOKEN", "SECRET", "PASSW", "CREDENTIAL", "API_KEY", "APIKEY", "PRIVATE_KEY")


class Key:
    """One header key: `# NAME: value`.

    `read` turns the text into the value of JobSpec's `field`, or raises ValueError; `write` is its
    inverse. Lines of a key with `many` add up, other keys may be given once.
    """

    __slots__ = ("example", "field", "help", "many", "name", "read", "write")

    def __init__(
        self,
        name: str,
        field: str,
        read: "Callable[[str], Any]",
        write: "Callable[[Any], str]",
        *,
        help: str,
        example: str,
        many: bool = False,
    ) -> None:
        self.name = name
        self.field = field
        self.read = read
        self.write = write
        self.help = help
        self.example = example
        self.many = many

    def value(self, text: str, *, now_sec: float = 0.0, zone: "tzinfo | None" = None) -> "Any":
        """Return what `text` means, or raise ValueError; times count from `now_sec`."""
        if not text.strip():
            raise ValueError("it has no value; give it one or remove the line")
        if self.field == "not_before_sec":
            return parse_timestamp(text, now_sec=now_sec, zone=zone)
        return self.read(text)

    def lines(self, value: "Any") -> list[str]:
        """Return the texts of the header lines that say `value`."""
        if self.many:
            return [self.write((part,)) for part in value]
        return [self.write(value)]


# Texts -----------------------------------------------------------------------------------------

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_QUOTES = {value: f"\\{key}" for key, value in _ESCAPES.items()}


def quoted(text: str) -> str:
    """Return `text` in double quotes, as unquoted() reads it."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    if character in _QUOTES:
        return _QUOTES[character]
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x20 or 0x7F <= number < 0xA0 else character


def unquoted(text: str) -> str:
    """Return what stands between double quotes, or `text` itself where it is not one quotation."""
    if len(text) < 2 or text[0] != '"':
        return text
    value, end = _quotation(text)
    return text if value is None or end != len(text) else value


def _quotation(text: str, start: int = 0) -> tuple[str | None, int]:
    """Read the quotation that begins at `start`; return its value and the place after it."""
    value: list[str] = []
    at = start + 1
    while at < len(text) and text[at] != '"':
        if text[at] != "\\":
            value.append(text[at])
            at += 1
            continue
        letter = text[at + 1 : at + 2]
        if letter == "x" and text[at + 2 : at + 4].isalnum():
            try:
                value.append(chr(int(text[at + 2 : at + 4], 16)))
            except ValueError:
                return None, start
            at += 4
        elif letter in _ESCAPES:
            value.append(_ESCAPES[letter])
            at += 2
        else:
            return None, start
    return ("".join(value), at + 1) if at < len(text) else (None, start)


def plain(text: str) -> str:
    """Return `text` as it is where that reads back, else quoted."""
    bare = unquoted(text) == text and text == text.strip() and text.isprintable() and text
    return text if bare else quoted(text)


def split_words(text: str) -> list[str]:
    """Split at white space; a word in double quotes may hold some."""
    if '"' not in text:
        return text.split()
    words: list[str] = []
    rest = text.strip()
    while rest:
        word, end = _quotation(rest) if rest[0] == '"' else (None, 0)
        if word is None:
            word = rest.split(None, 1)[0]
            end = len(word)
        words.append(word)
        rest = rest[end:].strip()
    return words


def _join_words(words: tuple[str, ...]) -> str:
    return " ".join(quoted(word) if '"' in word else _word(word) for word in words)


def _word(word: str) -> str:
    return word if plain(word) == word and len(word.split()) == 1 else quoted(word)


# Readers, each the inverse of a writer ---------------------------------------------------------


def _lane(text: str) -> str:
    fault = lane_name_fault(text)
    if fault:
        raise ValueError(f"{shown(text)} can't be a lane: {fault}")
    return text


def _command(text: str) -> str:
    if "\n" in text:
        raise ValueError("it must be one line; separate commands with ';' or '&&'")
    return text.strip()


def _text(text: str) -> str:
    return unquoted(text.strip())


def _directory(text: str) -> str:
    directory = _text(text)
    if not directory.startswith(("/", "~/")) and directory != "~":
        raise ValueError(f"{shown(directory)} must begin with '/' or '~/'")
    if "\0" in directory:
        raise ValueError("it has a NUL in it")
    return directory


def _number(text: str, low: int, high: int, what: str) -> int:
    digits = text.strip()
    number = digits.removeprefix("-").removeprefix("+")
    if not (number.isascii() and number.isdecimal() and len(number) < 12):
        raise ValueError(f"{shown(text)} is no whole number")
    if not low <= int(digits) <= high:
        raise ValueError(f"{int(digits)} is not between {low} and {high}{what}")
    return int(digits)


def _attempts(text: str) -> int:
    return _number(text, 1, 1_000_000, "; RETRIES counts attempts in all")


def _nice(text: str) -> int:
    return _number(text, -20, 19, "")


def _weight(text: str) -> int:
    return _number(text, 1, 10_000, "; 100 is what others have")


def _priority(text: str) -> int:
    return _number(text, -1_000_000, 1_000_000, "")


def _delay(text: str) -> int:
    usec = parse_timespan(text)
    if usec == INFINITY_USEC:
        raise ValueError("a retry after infinity is none; write RETRIES: 1 instead")
    return usec


def _timeout(text: str) -> int:
    usec = parse_timespan(text)
    if usec == 0:
        raise ValueError("0 would end the job at once; write infinity for no limit")
    return usec


def _memory(text: str) -> tuple[int, int, str, int]:
    """Read `37G`, `79%`, `size(FILE)`, `size(FILE)+12%` or `size(FILE)+2G`."""
    text = text.strip()
    if not text.startswith("size("):
        return (
            (0, parse_percent(text), "", 0) if text.endswith("%") else (parse_size(text), 0, "", 0)
        )
    file, bracket, margin = text.removeprefix("size(").rpartition(")")
    margin = margin.strip()
    if not bracket or not file.strip() or (margin and margin[0] != "+"):
        raise ValueError(f"{shown(text)} is not of the form size(FILE)+12%")
    file, margin = _text(file), margin[1:].strip()
    if margin and not margin.endswith("%"):
        return parse_size(margin), 0, file, 0
    return 0, 0, file, parse_percent(margin) if margin else 0


def _write_memory(need: tuple[int, int, str, int]) -> str:
    size, percent, file, margin = need
    if not file:
        return f"{percent}%" if percent else format_size(size)
    more = f"+{margin}%" if margin else f"+{format_size(size)}" if size else ""
    return f"size({plain(file)}){more}"


def _disk(text: str) -> tuple[int, str]:
    size, _, file = text.strip().partition(" ")
    return parse_size(size), _directory(file) if file.strip() else ""


def _write_disk(need: tuple[int, str]) -> str:
    size, file = need
    return f"{format_size(size)} {plain(file)}" if file else format_size(size)


def _jobs(text: str) -> tuple[str, ...]:
    try:
        return tuple(map(job_name, split_words(text)))
    except UsageError as error:
        raise ValueError(str(error).rstrip(".")) from None


def _units(text: str) -> tuple[str, ...]:
    units = tuple(split_words(text))
    for unit in units:
        if not unit.endswith(UNIT_SUFFIXES):
            raise ValueError(
                f"{shown(unit)} is no unit; write its type too, such as {unit}.service"
            )
        if not _UNIT_CHARACTERS.issuperset(unit) or len(unit) > UNIT_NAME_MAX:
            raise ValueError(f"{shown(unit)} is no name that a unit can have")
    return units


def _environment(text: str) -> tuple[tuple[str, str], ...]:
    name, equals, value = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{shown(text)} has no '='; write NAME=value")
    if not name or not _IDENTIFIER.issuperset(name) or name[0] in "0123456789":
        raise ValueError(f"{shown(name)} is no name of an environment variable")
    if name.startswith("SDQUEUE_"):
        raise ValueError(f"{name} is set by the queue itself")
    value = _text(value)
    if "\0" in value:
        raise ValueError("it has a NUL in it")
    return ((name, value),)


def _write_environment(pairs: tuple[tuple[str, str], ...]) -> str:
    ((name, value),) = pairs
    return f"{name}={plain(value) if value else ''}"


def looks_secret(name: str) -> bool:
    """Say whether an environment variable of that name is likely to hold a secret."""
    return any(word in name.upper() for word in _SECRETS)


# The table -------------------------------------------------------------------------------------

KEYS: tuple[Key, ...] = (
    Key(
        "LANE",
        "lane",
        _lane,
        str,
        help="the lane it runs in; without it the second word of the job's name is tried",
        example="gpu",
    ),
    Key(
        "DONE_IF",
        "done_if",
        _command,
        str,
        help="bash command that decides whether the work is done, before a start and after a run",
        example="test -s results/laguna.jsonl",
    ),
    Key(
        "REQUIRES",
        "requires",
        _command,
        str,
        help="bash command that must succeed before the job is started; until then it waits",
        example="test -f ~/models/laguna.gguf",
    ),
    Key(
        "RETRIES",
        "attempts_max",
        _attempts,
        str,
        help="attempts in all; 3 where nothing else is said",
        example="3",
    ),
    Key(
        "RETRY_DELAY",
        "retry_delay_usec",
        _delay,
        format_timespan,
        help="time between the end of a failed attempt and the next one",
        example="5min",
    ),
    Key(
        "TIMEOUT",
        "timeout_usec",
        _timeout,
        format_timespan,
        help="wall clock of one attempt; the DONE_IF after it has the same time once more",
        example="8h",
    ),
    Key(
        "MEMORY",
        "memory",
        _memory,
        _write_memory,
        help="memory that must be usable at the start: a size, a percentage of the box, or"
        " size(FILE)+12%",
        example="37G",
    ),
    Key(
        "DISK",
        "disk",
        _disk,
        _write_disk,
        help="space that must be free, and the directory where (else the job's own)",
        example="200G /data",
    ),
    Key("NICE", "nice", _nice, str, help="CPU nice level, -20 to 19", example="10"),
    Key(
        "CPU_WEIGHT",
        "cpu_weight",
        _weight,
        str,
        help="CPUWeight= of the job's unit, 1 to 10000",
        example="50",
    ),
    Key(
        "NOT_BEFORE",
        "not_before_sec",
        float,
        lambda seconds: f"@{seconds:.6f}".rstrip("0").rstrip("."),
        help="the earliest start; +2h counts from the file's last change",
        example="2026-11-29 18:00",
    ),
    Key(
        "AFTER",
        "after",
        _jobs,
        _join_words,
        help="jobs that must be done first; one that failed keeps this one waiting",
        example="50-net-laguna",
        many=True,
    ),
    Key(
        "AFTER_ANY",
        "after_any",
        _jobs,
        _join_words,
        help="jobs that must have ended first, however",
        example="51-gpu-warmup",
        many=True,
    ),
    Key(
        "PRIORITY",
        "priority",
        _priority,
        str,
        help="higher goes first within the lane; 0 where nothing else is said",
        example="10",
    ),
    Key(
        "ON_SUCCESS",
        "on_success",
        _units,
        _join_words,
        help="units to start when the job is done",
        example="publish.service",
        many=True,
    ),
    Key(
        "ON_FAILURE",
        "on_failure",
        _units,
        _join_words,
        help="units to start when the job has failed for good",
        example="alarm.service",
        many=True,
    ),
    Key(
        "ENV",
        "env",
        _environment,
        _write_environment,
        help='one environment variable; in double quotes \\n, \\t, \\" and \\\\ are understood',
        example="HF_HUB_OFFLINE=1",
        many=True,
    ),
    Key(
        "CWD",
        "cwd",
        _directory,
        plain,
        help="directory of the job and of its checks; the owner's home where nothing is said",
        example="/data/bench",
    ),
    Key(
        "ON_CALENDAR",
        "on_calendar",
        _text,
        plain,
        help="for files in jobs.d/: when to submit it, as OnCalendar= of a timer",
        example="Mon..Fri 22:00",
    ),
    Key(
        "DESCRIPTION",
        "description",
        _text,
        plain,
        help="what people read in status",
        example="Laguna, 32k context",
    ),
)
BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}


def key_named(name: str) -> Key:
    """Return the key, or raise ValueError that names the nearest one."""
    key = BY_NAME.get(name)
    if key is None:
        raise ValueError(f"there is no key {shown(name)}{did_you_mean(name, list(BY_NAME))}")
    return key


def header_text(name: str, text: str, *, now_sec: float = 0.0, zone: "tzinfo | None" = None) -> str:
    """Return the text for a header line that means what `text` means now, or raise ValueError."""
    key = key_named(name)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{shown(text)} is not valid UTF-8, and units can't carry it")
    return " ".join(key.lines(key.value(text, now_sec=now_sec, zone=zone)))
