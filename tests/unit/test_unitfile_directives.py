"""The table of settings, and what is said of a key in the wrong place or version."""

import pytest

from sdqueue.unitfile.directives import SECTIONS, Verdict, directives, judge
from sdqueue.unitfile.directives_data import VERSIONS


@pytest.mark.parametrize(
    ("unit_type", "section", "key", "version", "verdict", "sections"),
    [
        ("service", "Unit", "After", 252, Verdict.KNOWN, ()),
        ("service", "Service", "After", 252, Verdict.MISPLACED, ("Unit",)),
        ("service", "Service", "StartLimitIntervalSec", 257, Verdict.MISPLACED, ("Unit",)),
        ("service", "Service", "StartLimitInterval", 257, Verdict.KNOWN, ()),
        ("service", "Unit", "ExecStart", 252, Verdict.MISPLACED, ("Service",)),
        ("service", "Unit", "ListenStream", 252, Verdict.UNKNOWN, ()),
        ("service", "Socket", "ListenStream", 252, Verdict.UNKNOWN_SECTION, ()),
        ("timer", "Service", "OnCalendar", 252, Verdict.UNKNOWN_SECTION, ("Timer",)),
        ("service", "Install", "UpheldBy", 252, Verdict.TOO_NEW, ()),
        ("service", "Install", "UpheldBy", 254, Verdict.UNSURE, ()),
        ("service", "Install", "UpheldBy", 257, Verdict.KNOWN, ()),
        ("service", "Service", "CPUShares", 262, Verdict.GONE, ()),
        ("service", "Service", "CPUShares", 260, Verdict.UNSURE, ()),
        ("service", "Service", "CPUShares", 257, Verdict.KNOWN, ()),
        ("service", "Service", "Nonsense", 262, Verdict.UNKNOWN, ()),
        ("service", "Service", "Nonsense", 263, Verdict.UNSURE, ()),
        ("service", "Service", "after", 252, Verdict.UNKNOWN, ()),
        ("service", "X-Mine", "Anything", 252, Verdict.EXTENSION, ()),
        ("service", "Unit", "X-Mine", 252, Verdict.EXTENSION, ()),
        ("target", "Target", "Anything", 252, Verdict.UNKNOWN, ()),
    ],
)
def test_a_key_is_judged_by_its_place_and_the_version(
    unit_type: str,
    section: str,
    key: str,
    version: int,
    verdict: Verdict,
    sections: tuple[str, ...],
) -> None:
    found = judge(unit_type, section, key, version)
    assert (found.verdict, found.sections) == (verdict, sections)


def test_every_section_of_the_table_is_one_of_some_type() -> None:
    known = {section for sections in SECTIONS.values() for section in sections}
    assert {section for section, _ in directives()} <= known


def test_every_record_spans_checked_versions() -> None:
    for directive in directives().values():
        assert directive.first in VERSIONS
        assert directive.last in VERSIONS
        assert directive.first <= directive.last


@pytest.mark.parametrize("version", VERSIONS)
def test_a_key_of_the_table_is_known_or_said_to_be_of_another_version(version: int) -> None:
    for directive in directives().values():
        if directive.section in ("Unit", "Install"):
            verdict = judge("service", directive.section, directive.key, version).verdict
            there = directive.first <= version <= directive.last
            assert (verdict is Verdict.KNOWN) is there
