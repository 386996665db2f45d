"""Time spans, sizes and percentages as systemd spells them.

Pure. Raises ValueError with words that a person can act on. Checked against the real
`systemd-analyze timespan` in tests/oracle.
"""

INFINITY_USEC = 2**64 - 1
_SEC = 1_000_000
_MIN = 60 * _SEC
_HOUR = 60 * _MIN
_DAY = 24 * _HOUR
_MONTH = 2_629_800 * _SEC
_YEAR = 31_557_600 * _SEC

_DIGITS = "0123456789"
_SPACE = " \t\n\r"

# In the order in which they are tried: a longer word before those that it begins with.
TIME_UNITS: tuple[tuple[str, int], ...] = (
    ("seconds", _SEC),
    ("second", _SEC),
    ("sec", _SEC),
    ("s", _SEC),
    ("minutes", _MIN),
    ("minute", _MIN),
    ("min", _MIN),
    ("months", _MONTH),
    ("month", _MONTH),
    ("M", _MONTH),
    ("msec", 1000),
    ("ms", 1000),
    ("m", _MIN),
    ("hours", _HOUR),
    ("hour", _HOUR),
    ("hr", _HOUR),
    ("h", _HOUR),
    ("days", _DAY),
    ("day", _DAY),
    ("d", _DAY),
    ("weeks", 7 * _DAY),
    ("week", 7 * _DAY),
    ("w", 7 * _DAY),
    ("years", _YEAR),
    ("year", _YEAR),
    ("y", _YEAR),
    ("usec", 1),
    ("us", 1),
    ("µs", 1),  # U+00B5, the micro sign
    ("μs", 1),  # U+03BC, the Greek letter, which systemd takes since v250
)
_PRINTED_UNITS = (
    ("y", _YEAR),
    ("month", _MONTH),
    ("w", 7 * _DAY),
    ("d", _DAY),
    ("h", _HOUR),
    ("min", _MIN),
    ("s", _SEC),
    ("ms", 1000),
    ("us", 1),
)
SIZE_UNITS: tuple[tuple[str, int], ...] = (
    ("E", 1 << 60),
    ("P", 1 << 50),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("B", 1),
    ("", 1),
)


def _run(text: str, start: int, of: str) -> int:
    """Return the end of the longest run of characters in `of` that begins at `start`."""
    while start < len(text) and text[start] in of:
        start += 1
    return start


def parse_timespan(text: str, *, default_unit_usec: int = _SEC) -> int:
    """Return microseconds for `5min 20s`, `1.5h`, `90` (seconds) or `infinity`.

    Re-enacts parse_time(), src/basic/time-util.c, v252.
    """
    if text.strip(_SPACE) == "infinity":
        return INFINITY_USEC
    at, total = _run(text, 0, _SPACE), 0
    if at == len(text):
        raise ValueError("a time span is missing, such as 90, 5min or 1h 30min")
    while at < len(text):
        at, usec = _span_term(text, at, default_unit_usec)
        total += usec
        at = _run(text, at, _SPACE)
    if total >= INFINITY_USEC:
        raise ValueError(_too_long(text))
    return total


def _span_term(text: str, at: int, default_unit_usec: int) -> tuple[int, int]:
    """Read one number with its unit; return where it ends, and its microseconds."""
    if text.startswith("-", at):
        raise ValueError(f"'{text}' is negative")
    begin = at + text.startswith("+", at)
    end = _run(text, begin, _DIGITS)
    # A fraction may stand without digits before it, but not behind a sign.
    bare = end == begin and text.startswith(".", at)
    if end == begin and not bare:
        raise ValueError(_no_span(text))
    whole, fraction = int(text[begin:end] or 0), ""
    if text.startswith(".", end):
        begin, end = end + 1, _run(text, end + 1, _DIGITS)
        fraction = text[begin:end]
        if not fraction:
            raise ValueError(_no_span(text))
    at = _run(text, end, _SPACE)
    unit_usec = default_unit_usec
    for word, usec in TIME_UNITS:
        if text.startswith(word, at):
            at, unit_usec = at + len(word), usec
            break
    if at == end and at < len(text):
        raise ValueError(_no_span(text))
    if whole >= INFINITY_USEC // unit_usec:
        raise ValueError(_too_long(text))
    return at, whole * unit_usec + _fraction(fraction, unit_usec)


def _fraction(digits: str, unit: int) -> int:
    """Return the digits behind the point in units, each rounded down as systemd does."""
    total = 0
    for digit in digits:
        unit //= 10
        total += int(digit) * unit
    return total


def _no_span(text: str) -> str:
    return f"'{text}' is no time span; write 90 (seconds), 5min, 1h 30min, 2d or infinity"


def _too_long(text: str) -> str:
    return f"'{text}' is longer than systemd can count; write infinity"


def format_timespan(usec: int, *, accuracy_usec: int = 1) -> str:
    """Return the span as systemd prints it.

    Re-enacts format_timespan(), src/basic/time-util.c, v252.
    """
    if usec >= INFINITY_USEC:
        return "infinity"
    parts: list[str] = []
    for suffix, unit in _PRINTED_UNITS:
        if usec <= 0 or (usec < accuracy_usec and parts):
            break
        if usec < unit:
            continue
        count, rest = divmod(usec, unit)
        places = len(str(unit)) - len(str(max(accuracy_usec, 1)))
        if usec < _MIN and rest and places > 0:
            rest //= 10 ** (len(str(max(accuracy_usec, 1))) - 1)
            parts.append(f"{count}.{rest:0{places}}{suffix}")
            break
        parts.append(f"{count}{suffix}")
        usec = rest
    return " ".join(parts) or "0"


def parse_size(text: str) -> int:
    """Return bytes for `37G`, `1.5T` or `4096`; the base is 1024.

    Re-enacts parse_size(), src/basic/parse-util.c, v252.
    """
    at, total, allowed = _run(text, 0, _SPACE), 0, 0
    if at == len(text):
        raise ValueError("a size is missing, such as 37G")
    while at < len(text):
        end = _run(text, at, _DIGITS)
        begin, point = at, end
        if text.startswith(".", end):
            end = _run(text, end + 1, _DIGITS)
        if end == begin or (end == begin + 1 and point == begin):
            raise ValueError(_no_size(text))
        at = _run(text, end, _SPACE)
        # The units of `1G 500M` must go down.
        for index in range(allowed, len(SIZE_UNITS)):
            suffix, factor = SIZE_UNITS[index]
            if text.startswith(suffix, at):
                break
        else:
            raise ValueError(_no_size(text))
        at, allowed = _run(text, at + len(suffix), _SPACE), index + 1
        places = text[point + 1 : end]
        total += int(text[begin:point] or 0) * factor
        total += int(places or 0) * factor // 10 ** len(places)
    if total >= 2**64:
        raise ValueError(f"'{text}' is larger than any memory or disk")
    return total


def _no_size(text: str) -> str:
    return f"'{text}' is no size; write bytes, or 512M, 37G, 1.5T (of 1024, without an i or a B)"


def format_size(size_bytes: int) -> str:
    """Return a size that parse_size() reads back as the same number of bytes."""
    for suffix, factor in SIZE_UNITS[:6]:
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor}{suffix}"
    return str(size_bytes)


def parse_percent(text: str) -> int:
    """Return 1 to 100 for `79%`."""
    number = text.removesuffix("%").rstrip(_SPACE)
    if not text.endswith("%") or not number.isdecimal() or not number.isascii():
        raise ValueError(f"'{text}' is no percentage; write a whole number such as 79%")
    if not 1 <= int(number[:4]) <= 100:
        raise ValueError(f"'{text}' is not between 1% and 100%")
    return int(number)
