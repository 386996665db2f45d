"""Spans and times against the systemd of this machine."""

import os
import random
import shutil
import subprocess
from datetime import UTC

import pytest

from sdqueue.words import spans, times

ANALYZE = shutil.which("systemd-analyze")
if ANALYZE is None and not os.environ.get("CI"):
    pytest.skip("no systemd-analyze here (Debian: systemd)", allow_module_level=True)

NUMBERS = (
    "0",
    "1",
    "12",
    "+7",
    "1.5",
    ".25",
    "0.000001",
    "1.999999999",
    "584542",
    "18446744073709",
    "3.",
)
EDGES = [
    "",
    " ",
    "infinity",
    " infinity ",
    "infinitys",
    "-5",
    "5.",
    "5 min 20",
    "1e3",
    "1:30",
    "1 s s",
    "+.5",
    "+ 5",
    "5+5",
    "5 +5",
    "1w2d3h",
    "1msecs",
    "1.2.3",
    "12.34 .56",
    "12.34.56",
    "99999999999999999999",
    "3.sec",
    "3. 1",
    "1s-1s",
    "µs",
    "1µs",
    "1μs",
    "5\t3",
    "0x10",
    "١",
]


def analyze(verb: str, *texts: str) -> list[dict[str, str] | None]:
    """Ask systemd about each text; None where it refuses."""
    answers: list[dict[str, str] | None] = []
    for text in texts:
        done = subprocess.run(
            [str(ANALYZE), verb, "--", text],
            capture_output=True,
            text=True,
            check=False,
            env={"TZ": "UTC", "LC_ALL": "C.UTF-8", "PATH": os.defpath},
        )
        pairs = (line.partition(": ") for line in done.stdout.splitlines())
        fields = {key.strip(): value.strip() for key, _, value in pairs}
        answers.append(fields if done.returncode == 0 else None)
    return answers


def random_spans() -> list[str]:
    dice = random.Random(52)
    units = [word for word, _ in spans.TIME_UNITS] + [""]
    made = [f"{dice.choice(NUMBERS)}{dice.choice(('', ' '))}{unit}" for unit in units]
    made += [
        dice.choice(("", " ")).join(
            f"{dice.choice(NUMBERS)}{dice.choice(('', ' '))}{dice.choice(units)}" for _ in range(3)
        )
        for _ in range(60)
    ]
    return made


def test_time_spans_are_read_and_printed_as_systemd_does() -> None:
    texts = [
        *EDGES,
        *random_spans(),
    ]
    for text, told in zip(texts, analyze("timespan", *texts), strict=True):
        try:
            usec = spans.parse_timespan(text)
        except ValueError:
            assert told is None, text
            continue
        assert told is not None, text
        assert usec == int(told["μs"]), text
        assert spans.format_timespan(usec) == told["Human"], text


def test_points_in_time_are_read_as_systemd_does() -> None:
    texts = [
        "2026-11-29",
        "2026-11-29 18:00",
        "2026-02-28 23:59:59",
        "Sun 2026-11-29 18:00",
        "@5",
        "@5.5",
        "2026-11-29 18:00 UTC",
        "sunday 2026-11-29",
        "1999-12-31 23:59:59.25",
        "Mon 2026-11-29",
        "24:00",
        "later",
        "",
        "tomorrow 18:00",
        "2026-11-29 25:00",
        "18",
        "@x",
    ]
    for text, told in zip(texts, analyze("timestamp", *texts), strict=True):
        try:
            seconds = times.parse_timestamp(text, now_sec=0.0, zone=UTC)
        except ValueError:
            assert told is None, text
            continue
        assert told is not None, text
        assert seconds == float(told["UNIX seconds"].removeprefix("@")), text
