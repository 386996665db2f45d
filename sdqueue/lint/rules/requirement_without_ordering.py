"""requirement-without-ordering: requires a unit, but doesn't wait for it."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import named
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation

INSTANT = frozenset({"slice", "target", "device", "scope"})
"""Types for which there is nothing to wait for, or that state the order themselves."""


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        if unit.type in INSTANT:
            continue
        for key, ref in named(situation, unit, "Requires", "BindsTo", "Requisite"):
            other = situation.graph.id(ref.name)
            if other.rpartition(".")[2] in INSTANT or other == unit.name:
                continue
            loaded = situation.graph.node(other).load_state == "loaded"
            if loaded and not _ordered(situation, unit.name, other):
                text = f"{key}={ref.name} without After={ref.name}: both are started at once"
                yield RULE.at(ref.place, unit.name, text, fix=f"add After={ref.name}")


def _ordered(situation: Situation, unit: str, other: str) -> bool:
    return situation.is_after(unit, other) or situation.is_after(other, unit)


RULE = Rule(
    "requirement-without-ordering",
    "warning",
    does="""\
Finds Requires=, BindsTo= and Requisite= on a unit that is ordered neither before nor after the one
that requires it, not even through other units. Targets, slices and devices are left out.""",
    why="""\
A requirement starts both at the same time. If the required unit then fails, the other is running
already and stays so; if it is slow, the other meets it half started.""",
    example="""\
[Unit]
Requires=postgresql.service""",
    instead="""\
[Unit]
Requires=postgresql.service
After=postgresql.service""",
    source="systemd.unit(5); systemd/systemd#8309, #4256",
    check=check,
)
