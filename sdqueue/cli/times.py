"""Times as systemd shows them: `2h 16min ago`, `Sun 2026-11-29 18:00:00 UTC`."""

import time

_MSEC, _SEC = 1000, 1_000_000
_MIN, _HOUR, _DAY = 60 * _SEC, 3600 * _SEC, 86_400 * _SEC
_WEEK, _MONTH, _YEAR = 7 * _DAY, 2_629_800 * _SEC, 31_557_600 * _SEC

# From which age on, in which two units; the second one is empty where there is none.
_STEPS = (
    (_YEAR, "y", _YEAR, "month", _MONTH),
    (_MONTH, "month", _MONTH, "day", _DAY),
    (_WEEK, "week", _WEEK, "day", _DAY),
    (2 * _DAY, "day", _DAY, "", 0),
    (_DAY, "day", _DAY, "h", _HOUR),
    (6 * _HOUR, "h", _HOUR, "", 0),
    (_HOUR, "h", _HOUR, "min", _MIN),
    (5 * _MIN, "min", _MIN, "", 0),
    (_MIN, "min", _MIN, "s", _SEC),
    (_SEC, "s", _SEC, "", 0),
    (_MSEC, "ms", _MSEC, "", 0),
)
_WORDS = frozenset(("y", "month", "week", "day"))


def ago(then_sec: object, now_sec: float) -> str:
    """Return how long ago (or how soon) a unix time is, "" where there is none.

    Re-enacts format_timestamp_relative(), src/basic/time-util.c, v252.
    Differs: `2y` and not `2 years`, since it stands in a column.
    """
    if not isinstance(then_sec, int | float) or not then_sec:
        return ""
    tail = "ago" if then_sec <= now_sec else "left"
    text = span(abs(now_sec - then_sec))
    return f"{text} {tail}" if text else "now"


def span(seconds: float) -> str:
    """Return a duration in at most two units, "" for none."""
    usec = round(seconds * 1e6)
    for least, unit, size, second_unit, second_size in _STEPS:
        if usec >= least:
            count, rest = divmod(usec, size)
            more = rest // second_size if second_size else 0
            return _units(count, unit) + (f" {_units(more, second_unit)}" if more else "")
    return ""


def _units(count: int, unit: str) -> str:
    if unit not in _WORDS or unit == "y":
        return f"{count}{unit}"
    return f"{count} {unit}{'s' if count != 1 else ''}"


def stamp(sec: object) -> str:
    """Return a unix time as systemd prints it, in local time, "" where there is none."""
    if not isinstance(sec, int | float) or not sec:
        return ""
    return time.strftime("%a %Y-%m-%d %H:%M:%S %Z", time.localtime(sec))
