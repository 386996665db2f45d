"""fatal-cycle: a circle of jobs that the default target requires; the machine doesn't boot."""

from collections.abc import Iterator

from sdqueue.lint.cycles import finding, fresh
from sdqueue.lint.finding import Finding
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation


def check(situation: Situation) -> Iterator[Finding]:
    boot = situation.box.boot
    for knot in fresh(situation, boot.fatal, lambda box: box.boot.fatal):
        new = [unit for unit in situation.new_units if unit in knot.units]
        unit = next(iter(new or sorted(knot.units)))
        yield finding(
            knot,
            situation,
            RULE,
            unit=unit,
            message=f"the boot fails: {situation.box.target} requires all of this ordering cycle, "
            "so systemd may not break it",
        )
    for unit in situation.by_hand():
        for knot in fresh(situation, situation.box.by_hand_outlook(unit).fatal, lambda _: ()):
            yield finding(
                knot,
                situation,
                RULE,
                severity="error",
                unit=unit,
                message=f"systemctl start {unit} fails: it requires all of this ordering cycle",
            )


RULE = Rule(
    "fatal-cycle",
    "fatal",
    does="""\
Finds ordering circles all of whose jobs the default target requires, directly or through other
units, by Requires=, BindsTo= or Requisite=. This is decided, not simulated. New units that boot
doesn't start are tried alone, as systemctl start would do it; there it is an error.""",
    why="""\
systemd may delete only jobs that don't matter to the request. Where all of a circle matter it says
"Transaction order is cyclic" and gives up on the default target: the machine doesn't boot.""",
    example="""\
# core-a.service
[Unit]
After=multi-user.target
[Install]
RequiredBy=multi-user.target

# core-b.service
[Unit]
After=core-a.service
[Install]
RequiredBy=multi-user.target""",
    instead="""\
Remove the After= on the target. Use WantedBy= rather than RequiredBy= for a target of the boot.""",
    source="src/core/transaction.c; NVIDIA/nvidia-container-toolkit#1735",
    check=check,
)
