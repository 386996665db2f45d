"""What a rule is: a name, a severity, what to tell a person, and a function that finds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sdqueue.lint.finding import Finding, Severity
from sdqueue.lint.situation import Situation

Check = Callable[[Situation], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. The texts are the sections of `--explain` and of the manual, in that order.

    `example` is a piece of a unit file that the rule finds, `instead` what to write.
    """

    name: str
    severity: Severity
    does: str
    why: str
    example: str
    instead: str
    source: str
    check: Check


HEADINGS = (
    ("What it does", "does"),
    ("Why it matters", "why"),
    ("Example", "example"),
    ("Instead", "instead"),
    ("Source", "source"),
)


def explain(rule: Rule) -> str:
    """Everything about one rule, for a terminal."""
    parts = [f"{rule.name} ({rule.severity})"]
    for heading, field in HEADINGS:
        parts += [
            "",
            heading,
            *(f"  {line}".rstrip() for line in getattr(rule, field).splitlines()),
        ]
    return "\n".join(parts) + "\n"
