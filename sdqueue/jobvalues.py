"""Values of a job file's header as texts: how each kind is read, and its inverse.

A reader takes a text and returns a plain value (number, text, tuple), or raises ValueError with
words that a person can act on. Which key has which kind is in `jobkeys`.
"""

from sdqueue.words.errors import UsageError
from sdqueue.words.names import UNIT_NAME_MAX, job_name, lane_name_fault, shown
from sdqueue.words.spans import (
    INFINITY_USEC,
    format_size,
    parse_percent,
    parse_size,
    parse_timespan,
)

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
# In characters, and with room for a home directory: systemd takes no unit with a longer one.
PATH_MAX = 1000
_IDENTIFIER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_UNIT_CHARACTERS = _IDENTIFIER | frozenset(":.-@\\%")
# Of these the unit makes the line in which it says how it ended; ENV would forge that.
_SYSTEMDS = ("SERVICE_RESULT", "EXIT_CODE", "EXIT_STATUS", "INVOCATION_ID")
_SECRETS = ("TOKEN", "SECRET", "PASSW", "CREDENTIAL", "API_KEY", "APIKEY", "PRIVATE_KEY")


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


def write_words(words: tuple[str, ...]) -> str:
    return " ".join(quoted(word) if '"' in word else _word(word) for word in words)


def _word(word: str) -> str:
    return word if plain(word) == word and len(word.split()) == 1 else quoted(word)


# Readers, each the inverse of a writer ---------------------------------------------------------


def read_lane(text: str) -> str:
    fault = lane_name_fault(text)
    if fault:
        raise ValueError(f"{shown(text)} can't be a lane: {fault}")
    return text


def read_command(text: str) -> str:
    if "\n" in text:
        raise ValueError("it must be one line; separate commands with ';' or '&&'")
    return text.strip()


def read_text(text: str) -> str:
    value = unquoted(text.strip())
    if "\0" in value:
        raise ValueError("it has a NUL in it")
    return value


def read_directory(text: str) -> str:
    directory = read_text(text)
    if not directory.startswith(("/", "~/")) and directory != "~":
        raise ValueError(f"{shown(directory)} must begin with '/' or '~/'")
    if len(directory) > PATH_MAX or any(ord(c) < 0x20 or c == "\x7f" for c in directory):
        raise ValueError("it is too long for a path, or has a control character in it")
    if directory.endswith("\\"):
        raise ValueError(
            f"{shown(directory)} ends in a backslash, which unit files can't have there"
        )
    first, *names = directory.split("/")
    if ".." in names:
        raise ValueError(f"{shown(directory)} has '..' in it: write the directory that it means")
    return "/".join((first, *(name for name in names if name not in ("", ".")))) or "/"


def _number(text: str, low: int, high: int, what: str) -> int:
    digits = text.strip()
    number = digits.removeprefix("-").removeprefix("+")
    if not (number.isascii() and number.isdecimal() and len(number) < 12):
        raise ValueError(f"{shown(text)} is no whole number")
    if not low <= int(digits) <= high:
        raise ValueError(f"{int(digits)} is not between {low} and {high}{what}")
    return int(digits)


def read_attempts(text: str) -> int:
    return _number(text, 1, 1_000_000, "; RETRIES counts attempts in all")


def read_nice(text: str) -> int:
    return _number(text, -20, 19, "")


def read_weight(text: str) -> int:
    return _number(text, 1, 10_000, "; 100 is what others have")


def read_priority(text: str) -> int:
    return _number(text, -1_000_000, 1_000_000, "")


def read_delay(text: str) -> int:
    usec = parse_timespan(text)
    if usec == INFINITY_USEC:
        raise ValueError("a retry after infinity is none; write RETRIES: 1 instead")
    return usec


def read_timeout(text: str) -> int:
    usec = parse_timespan(text)
    if usec == 0:
        raise ValueError("0 would end the job at once; write infinity for no limit")
    return usec


def read_memory(text: str) -> tuple[int, int, str, int]:
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
    file, margin = read_text(file), margin[1:].strip()
    if margin and not margin.endswith("%"):
        return parse_size(margin), 0, file, 0
    return 0, 0, file, parse_percent(margin) if margin else 0


def write_memory(need: tuple[int, int, str, int]) -> str:
    size, percent, file, margin = need
    if not file:
        return f"{percent}%" if percent else format_size(size)
    more = f"+{margin}%" if margin else f"+{format_size(size)}" if size else ""
    return f"size({plain(file)}){more}"


def read_disk(text: str) -> tuple[int, str]:
    size, _, file = text.strip().partition(" ")
    return parse_size(size), read_directory(file) if file.strip() else ""


def write_disk(need: tuple[int, str]) -> str:
    size, file = need
    return f"{format_size(size)} {plain(file)}" if file else format_size(size)


def read_jobs(text: str) -> tuple[str, ...]:
    try:
        return tuple(map(job_name, split_words(text)))
    except UsageError as error:
        raise ValueError(str(error).rstrip(".")) from None


def read_units(text: str) -> tuple[str, ...]:
    units = tuple(split_words(text))
    for unit in units:
        if not unit.endswith(UNIT_SUFFIXES):
            raise ValueError(
                f"{shown(unit)} is no unit; write its type too, such as {unit}.service"
            )
        if not _UNIT_CHARACTERS.issuperset(unit) or len(unit) > UNIT_NAME_MAX:
            raise ValueError(f"{shown(unit)} is no name that a unit can have")
    return units


def read_environment(text: str) -> tuple[tuple[str, str], ...]:
    name, equals, value = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{shown(text)} has no '='; write NAME=value")
    if not name or not _IDENTIFIER.issuperset(name) or name[0] in "0123456789":
        raise ValueError(f"{shown(name)} is no name of an environment variable")
    if name.startswith("SDQUEUE_"):
        raise ValueError(f"{name} is set by the queue itself")
    if name in _SYSTEMDS:
        raise ValueError(f"{name} is set by systemd itself")
    return ((name, read_text(value)),)


def write_environment(pairs: tuple[tuple[str, str], ...]) -> str:
    ((name, value),) = pairs
    return f"{name}={plain(value) if value else ''}"


def looks_secret(name: str) -> bool:
    """Say whether an environment variable of that name is likely to hold a secret."""
    return any(word in name.upper() for word in _SECRETS)
