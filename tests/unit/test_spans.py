"""Spans, sizes, percentages and times; that systemd agrees is asked in tests/oracle."""

from contextlib import suppress
from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.words import spans, times

NOW = 1795976671.5  # Sun 2026-11-29 18:24:31.5 UTC


@pytest.mark.parametrize(
    ("text", "usec"),
    [
        ("90", 90_000_000),
        ("5min 20s", 320_000_000),
        ("1.5h", 5_400_000_000),
        ("infinity", spans.INFINITY_USEC),
        (" 1us ", 1),
        (".5s", 500_000),
        ("1month", 2_629_800_000_000),
    ],
)
def test_spans(text: str, usec: int) -> None:
    assert spans.parse_timespan(text) == usec


@pytest.mark.parametrize(
    "text", ["", " ", "-5", "5.", "1 s s", "1e3", "infinitys", "1:30", "ten", "9" * 30]
)
def test_what_is_no_span_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"span|negative|longer"):
        spans.parse_timespan(text)


def test_the_unit_of_a_bare_number_is_a_parameter() -> None:
    assert spans.parse_timespan("2", default_unit_usec=60_000_000) == 120_000_000


@given(st.integers(0, 2**63))
def test_a_printed_span_reads_back(usec: int) -> None:
    assert spans.parse_timespan(spans.format_timespan(usec)) == usec


def test_a_coarse_span() -> None:
    assert spans.format_timespan(3_723_456_789, accuracy_usec=1_000_000) == "1h 2min 3s"
    assert spans.format_timespan(3_456_789, accuracy_usec=1000) == "3.456s"
    assert spans.format_timespan(0) == "0"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("37G", 37 << 30),
        ("1.5K", 1536),
        ("4096", 4096),
        ("0", 0),
        ("1G 512M", (1 << 30) + (512 << 20)),
        (" 12 K ", 12 << 10),
        ("1B", 1),
        (".5K", 512),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert spans.parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "G", "-1", "37GB", "37GiB", "37g", "1M 1G", "1 2", ".", "99999E", "x"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|larger"):
        spans.parse_size(text)


@given(st.integers(0, 2**64 - 1))
def test_a_printed_size_reads_back(size: int) -> None:
    assert spans.parse_size(spans.format_size(size)) == size


def test_percentages() -> None:
    assert spans.parse_percent("79%") == 79
    for text in ("79", "0%", "101%", "%", "7.5%", "-1%", "٣%"):
        with pytest.raises(ValueError, match="%"):
            spans.parse_percent(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", NOW),
        ("@5.5", 5.5),
        ("+2h", NOW + 7200),
        ("-2h", NOW - 7200),
        ("2h ago", NOW - 7200),
        ("2h left", NOW + 7200),
        ("today", 1795910400.0),
        ("tomorrow", 1795996800.0),
        ("yesterday", 1795824000.0),
        ("18:00", 1795975200.0),
        ("18:00:30.5", 1795975230.5),
        ("2026-11-29", 1795910400.0),
        ("2026-11-29 18:00", 1795975200.0),
        ("Sun 2026-11-29 18:00:00", 1795975200.0),
        ("Sunday 2026-11-29", 1795910400.0),
        ("2026-11-29 18:00 UTC", 1795975200.0),
        ("2026-11-29T18:00Z", 1795975200.0),
        ("2026-11-29T20:00+02:00", 1795975200.0),
    ],
)
def test_points_in_time(text: str, seconds: float) -> None:
    assert times.parse_timestamp(text, now_sec=NOW, zone=UTC) == seconds


def test_the_zone_counts() -> None:
    east = timezone(timedelta(hours=2))
    assert times.parse_timestamp("2026-11-29 20:00", now_sec=NOW, zone=east) == 1795975200.0
    assert times.parse_timestamp("2026-11-29 18:00 UTC", now_sec=NOW, zone=east) == 1795975200.0


NO_TIME = [
    "",
    "later",
    "2026-11-31",
    "24:00",
    "18",
    "Mon 2026-11-29",
    "tomorrow 18:00",
    "@",
    "@x",
    "+",
    "29.11.2026",
    "2026-13-01",
    "18:00.5",
    "2026-11-29 18:00 19:00",
    "Sun",
    "9999999-01-01",
]


@pytest.mark.parametrize("text", NO_TIME)
def test_what_is_no_point_in_time_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"point in time|unix time|span"):
        times.parse_timestamp(text, now_sec=NOW, zone=UTC)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (spans.parse_timespan, spans.parse_size, spans.parse_percent):
        with suppress(ValueError):
            assert parse(text) >= 0
    with suppress(ValueError):
        times.parse_timestamp(text, now_sec=NOW, zone=UTC)
