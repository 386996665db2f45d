"""Points in time as systemd spells them.

Pure: the present time and the time zone are parameters. Raises ValueError with words that a person
can act on. Checked against the real `systemd-analyze timestamp` in tests/oracle.
"""

from sdqueue.words.spans import parse_timespan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date, tzinfo

_SPACE = " \t\n\r"
_SEC = 1_000_000
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def parse_timestamp(text: str, *, now_sec: float, zone: "tzinfo | None" = None) -> float:
    """Return unix seconds for a point in time; `zone` None is the zone the process is in.

    `now`, `today`, `tomorrow`, `yesterday`, `@SECONDS`, `+2h`, `-2h`, `2h ago`, `2h left`,
    `[WEEKDAY] [YYYY-MM-DD] [HH:MM[:SS[.F]]] [UTC]`, or RFC 3339.
    Re-enacts parse_timestamp(), src/basic/time-util.c, v252.
    Differs: a year has four digits; a day that the month does not have is refused, where systemd
    rolls it over into the next one; RFC 3339 is read, as systemd does since v254.
    """
    text = text.strip(_SPACE)
    if text.startswith("@"):
        return _unix_time(text)
    relative = _relative(text)
    if relative is not None:
        sign, span = relative
        return now_sec + sign * parse_timespan(span) / _SEC
    try:
        return _calendar_time(text, now_sec, zone)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"'{text}' is no point in time; write 2026-11-29 18:00, 18:00, tomorrow, +2h or @UNIX"
        ) from None


def _unix_time(text: str) -> float:
    seconds = text[1:]
    if not seconds.replace(".", "", 1).isdecimal() or not seconds.isascii() or len(seconds) > 20:
        raise ValueError(f"'{text}' is no unix time; write @ and seconds")
    return float(seconds)


def _relative(text: str) -> tuple[int, str] | None:
    """Return the direction and the time span of a time that is counted from now."""
    if text == "now":
        return 1, "0"
    if text.startswith(("+", "-")):
        return (1 if text[0] == "+" else -1), text[1:]
    for word, sign in ((" ago", -1), (" left", 1)):
        if text.endswith(word):
            return sign, text.removesuffix(word)
    return None


def _calendar_time(text: str, now_sec: float, zone: "tzinfo | None") -> float:
    from datetime import UTC, datetime, time  # slow to load, and few jobs name a time

    if "T" in text[1:11]:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    if text.endswith(" UTC"):
        text, zone = text.removesuffix(" UTC").rstrip(_SPACE), UTC
    today = datetime.fromtimestamp(now_sec, zone).date()
    words = text.split()
    weekday = _weekday(words[0]) if words else None
    if weekday is not None:
        del words[0]
    day = _day(words[0], today) if words else None
    if day is not None:
        del words[0]
    clock = _clock(words.pop(0)) if words else None
    if words or (day is None and clock is None):
        raise ValueError(text)
    if clock is not None and not _DAY_WORDS.keys().isdisjoint(text.split()):
        raise ValueError(text)
    day = today if day is None else day
    if weekday is not None and day.weekday() != weekday:
        raise ValueError(text)
    hour, minute, micro = clock or (0, 0, 0)
    start = time(hour, minute, micro // _SEC, micro % _SEC)
    return datetime.combine(day, start, zone).timestamp()


_DAY_WORDS = {"today": 0, "yesterday": -1, "tomorrow": 1}


def _weekday(word: str) -> int | None:
    low = word.lower()
    for number, name in enumerate(_WEEKDAYS):
        if low in (name, name[:3]):
            return number
    return None


def _day(word: str, today: "date") -> "date | None":
    from datetime import date, timedelta

    if word in _DAY_WORDS:
        return today + timedelta(days=_DAY_WORDS[word])
    parts = word.split("-")
    if len(parts) != 3 or len(parts[0]) != 4 or not all(map(_is_number, parts)):
        return None
    return date(*map(int, parts))


def _clock(word: str) -> tuple[int, int, int]:
    """Return hour, minute and microseconds of the minute."""
    whole, point, places = word.partition(".")
    parts = whole.split(":")
    if len(parts) not in (2, 3) or not all(map(_is_number, parts)):
        raise ValueError(word)
    if point and (len(parts) == 2 or not _is_number(places)):
        raise ValueError(word)
    hour, minute, second = map(int, (*parts, "0")[:3])
    return hour, minute, second * _SEC + int((places + "000000")[:6])


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal()
