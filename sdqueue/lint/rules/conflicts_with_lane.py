"""conflicts-with-lane: names a lane in Conflicts=, so that starting it ends the running job."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import named
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.words.names import LANE_TARGET_PREFIX, UNIT_PREFIX


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        if unit.name.startswith(UNIT_PREFIX):
            continue
        for _, ref in named(situation, unit, "Conflicts"):
            if ref.name.startswith(LANE_TARGET_PREFIX) and ref.name.endswith(".target"):
                lane = ref.name.removeprefix(LANE_TARGET_PREFIX).removesuffix(".target")
                text = f"starting {unit.name} stops whatever job runs in the lane {lane}"
                fix = f"use: sdqueue hold {lane} -- COMMAND"
                yield RULE.at(ref.place, unit.name, text, fix=fix)


RULE = Rule(
    "conflicts-with-lane",
    "error",
    does="Finds units other than the queue's own that name a lane's target in Conflicts=.",
    why="""\
systemctl start uses mode replace: it stops what conflicts, that is the lane's target, and with it
the job that requires it. Only the queue asks in mode fail, which is refused instead.""",
    example="""\
[Unit]
Conflicts=sdqueue-lane-gpu.target""",
    instead="ExecStart=sdqueue hold gpu -- /usr/bin/engine",
    source="sdqueue(1), hold",
    check=check,
)
