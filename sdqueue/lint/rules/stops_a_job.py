"""stops-a-job: takes a queue's job, lane or slice down with it, or changes what makes jobs safe."""

from collections.abc import Iterator

from sdqueue.core.unit import RELIED_ON
from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import named, settings
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.unitfile.unit import Unit
from sdqueue.words.names import JOB_UNIT_PREFIX, LANE_TARGET_PREFIX, UNIT_PREFIX

STOPPING = ("Conflicts", "PropagatesStopTo")


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        if unit.name.startswith(UNIT_PREFIX):
            yield from _touched(situation, unit)
            continue
        for key, ref in named(situation, unit, *STOPPING):
            lane = ref.name.startswith(LANE_TARGET_PREFIX) and key == "Conflicts"
            if ref.name.startswith(UNIT_PREFIX) and not lane:
                how = "starting" if key == "Conflicts" else "stopping"
                yield RULE.at(ref.place, unit.name, f"{how} {unit.name} stops {ref.name}")


def _touched(situation: Situation, unit: Unit) -> Iterator[Finding]:
    """Drop-ins that change what the queue relies on in its own units."""
    if not unit.name.startswith((JOB_UNIT_PREFIX, LANE_TARGET_PREFIX)):
        return
    for setting in settings(situation, unit):
        if setting.place.file in unit.dropin_files and (setting.section, setting.key) in RELIED_ON:
            what = "jobs" if unit.name.startswith(JOB_UNIT_PREFIX) else "lanes"
            text = f"the queue's guarantees rest on {setting.key}= of its {what} as it sets it"
            yield RULE.at(setting.place, unit.name, text)


RULE = Rule(
    "stops-a-job",
    "error",
    does="""\
Finds Conflicts= and PropagatesStopTo= on units of the queue (jobs, slices), and drop-ins for the
queue's own units that change what its guarantees rest on.""",
    why="""\
A job is a unit like any other: what conflicts with it stops it. And a job is safe from other starts
because it is Type=oneshot with its own Conflicts=; a drop-in wins against what the queue sets.""",
    example="""\
[Unit]
Conflicts=sdqueue-gpu.slice""",
    instead="ExecStart=sdqueue hold gpu -- /usr/bin/engine",
    source="sdqueue(1), hold",
    check=check,
)
