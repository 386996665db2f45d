"""bad-ignore: a comment that wants to silence a rule, and doesn't."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.rule import Rule
from sdqueue.lint.silence import silences
from sdqueue.lint.situation import Situation


def check(situation: Situation) -> Iterator[Finding]:
    for one in silences(situation):
        if one.reason:
            continue
        text = f"nothing is ignored without a reason: # sdqueue-lint: ignore {one.rule} REASON"
        unit = one.file.rpartition("/")[2]
        yield Finding(RULE.name, RULE.severity, unit, one.file, one.line, text)


RULE = Rule(
    "bad-ignore",
    "warning",
    does="Finds comments that are to silence a rule in a file, but give no reason.",
    why="The next reader must be able to tell whether the reason still holds.",
    example="# sdqueue-lint: ignore after-unreached",
    instead="# sdqueue-lint: ignore after-unreached the router is always there first",
    source="sdqueue-lint-units(1)",
    check=check,
)
