"""ordering-cycle: jobs of the boot are before and after each other, so systemd deletes some."""

from collections.abc import Iterator

from sdqueue.lint.cycles import finding, fresh, lost_jobs, spoken_for
from sdqueue.lint.finding import Finding
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation


def check(situation: Situation) -> Iterator[Finding]:
    boot = situation.box.boot
    fatal = {unit for loop in boot.fatal for unit in loop}
    knots = list(fresh(situation, boot.loops, lambda box: box.boot.loops))
    for knot in knots:
        if fatal & knot.units:
            continue
        lost = lost_jobs(knot, boot, (k.units for k in knots if k is not knot))
        unit = spoken_for(knot, lost, situation)
        share = max((one.p_lost for one in lost if one.job == f"{unit}/start"), default=0.0)
        yield finding(
            knot,
            situation,
            RULE,
            unit=unit,
            message=_message(unit, share),
            lost=lost,
        )


def _message(unit: str, share: float) -> str:
    if share >= 1.0:
        return f"{unit} will not be started at boot"
    if share > 0.0:
        return f"{unit} will not be started at some boots"
    return f"{unit} is part of an ordering cycle"


RULE = Rule(
    "ordering-cycle",
    "error",
    does="""\
Finds units whose start jobs at boot are ordered in a circle. It shows the shortest such circle that
the new files bring, edge by edge with the place of each edge, how often each job is lost (over
many simulated boots), and the smallest set of lines whose removal leaves no circle.""",
    why="""\
systemd breaks a circle by deleting a start job, and with it every job that requires the deleted
one. Which job that is depends on the order of hash tables, so a service is there after some boots
and not after others. Nothing fails, because nothing runs: systemctl --failed shows nothing.""",
    example="""\
# a9-telemetry.service
[Unit]
After=multi-user.target
[Install]
WantedBy=multi-user.target

# a9-jobs.service
[Unit]
After=a9-telemetry.service
[Install]
WantedBy=multi-user.target""",
    instead="""\
Don't order a unit after the target that starts it: a target orders itself after all it wants, which
is what closes the circle. Remove that line, or give the other units the same line.""",
    source="systemd.unit(5), transaction_verify_order_one() in src/core/transaction.c; "
    "moby/moby#41767, canonical/cloud-init#4068",
    check=check,
)
