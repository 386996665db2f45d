"""Every rule on its own directory of unit files: what it must find, and what it must leave alone.

tests/cases/rules/RULE/WHICH/{units/,case.json}: `expect` lists what RULE finds, all of it; in a
directory whose name begins with "good" no rule finds anything.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from sdqueue.cli.lint_world import Wish, look
from sdqueue.lint.finding import Finding
from sdqueue.lint.judge import judge
from sdqueue.lint.rules import BY_NAME, RULES

CASES = Path(__file__).parent / "rules"
BASE = CASES / "base"
WHICH = sorted(
    f"{path.parent.parent.name}/{path.parent.name}" for path in CASES.glob("*/*/case.json")
)


def findings(folder: Path, options: list[str]) -> list[Finding]:
    wish = Wish(paths=(str(folder / "units"),), root=str(BASE), user="--user" in options)
    return judge(look(wish).situation)


@pytest.mark.parametrize("rule", BY_NAME)
def test_every_rule_has_a_case_that_it_finds_and_one_that_it_leaves_alone(rule: str) -> None:
    assert {f"{rule}/bad", f"{rule}/good"} <= set(WHICH)


@pytest.mark.parametrize("which", WHICH)
def test_a_rule_finds_what_it_should_and_nothing_else(which: str) -> None:
    folder = CASES / which
    wanted = json.loads((folder / "case.json").read_text())
    found = findings(folder, wanted["options"])
    if folder.name.startswith("good"):
        assert found == []
        return
    own = [one for one in found if one.rule == folder.parent.name]
    expected: list[dict[str, Any]] = wanted["expect"]
    assert len(own) == len(expected), own
    for one, want in zip(sorted(own, key=lambda f: (f.unit, f.line)), expected, strict=True):
        assert one.unit == want["unit"]
        assert one.line == want.get("line", one.line)
        assert want["message"] in one.message
        assert one.severity


def test_the_base_of_these_cases_has_no_finding() -> None:
    assert judge(look(Wish(root=str(BASE))).situation) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_is_explained_under_all_headings(rule: Any) -> None:
    for field in ("does", "why", "example", "instead", "source"):
        assert getattr(rule, field).strip()
