"""requires-missing: requires a unit that can't be started, because it is missing or masked."""

from collections.abc import Iterator

from sdqueue.boot.pull import FAILS_AGAIN_SINCE
from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import named
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation

SAYS = {
    "not-found": "doesn't exist",
    "masked": "is masked",
    "bad-setting": "has a bad setting",
    "error": "can't be loaded",
}


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        if situation.new_files is None and not situation.reached(unit.name):
            continue
        for key, ref in named(situation, unit, "Requires", "BindsTo", "Requisite"):
            state = situation.graph.node(ref.name).load_state
            if state != "loaded":
                fix = f"install or unmask {ref.name}, or write Wants={ref.name}"
                booted = situation.reached(unit.name)
                fate = _fate(unit.name, situation.version, booted=booted)
                text = f"{fate}: {key}={ref.name} {SAYS[state]}"
                severity = RULE.severity if booted else "warning"
                yield RULE.at(ref.place, unit.name, text, fix=fix, severity=severity)


def _fate(unit: str, version: int, *, booted: bool) -> str:
    if not booted:
        return f"{unit} can't be started"
    if version < FAILS_AGAIN_SINCE:
        return f"{unit} will be started at boot without it, and refused by hand"
    return f"{unit} will not be started"


RULE = Rule(
    "requires-missing",
    "error",
    does="""\
Finds Requires=, BindsTo= and Requisite= on a unit that doesn't exist, is masked, or can't be
loaded.""",
    why="""\
From version 254 systemd then drops the start job of the unit that requires it, silently if that
one is itself only wanted. Before 254 it started the unit at boot without what it requires, and
refused systemctl start.""",
    example="""\
[Unit]
Requires=nosuch.service
After=nosuch.service""",
    instead="""\
[Unit]
Wants=nosuch.service
After=nosuch.service""",
    source="systemd/systemd#11338, #4937",
    check=check,
)
