"""What a rule is: a name, a severity, what to tell a person, and a function that finds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sdqueue.lint.finding import Finding, Fix, Severity
from sdqueue.lint.situation import Situation
from sdqueue.unitfile.unit import Place

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

    def at(
        self,
        place: Place,
        unit: str,
        message: str,
        *,
        fix: str = "",
        severity: Severity | None = None,
    ) -> Finding:
        """Say what is wrong with a unit at one place, and what to do there."""
        fixes = (Fix(place.file, place.line, fix),) if fix else ()
        how_bad = severity or self.severity
        return Finding(self.name, how_bad, unit, place.file, place.line, message, fixes=fixes)


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
