"""after-default-target: ordered after the target that starts it; the next follower is lost."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import named
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import DEFAULT_TARGET, Situation
from sdqueue.lint.targets import LATE

STOCK = frozenset({"systemd-update-utmp-runlevel.service"})
"""Does this on purpose, and nothing follows it."""


def check(situation: Situation) -> Iterator[Finding]:
    graph = situation.graph
    looping = {unit for loop in situation.box.boot.loops for unit in loop}
    late = {graph.id(name) for name in (*LATE, DEFAULT_TARGET)}
    for unit in situation.units():
        if unit.name in looping or unit.type == "target" or unit.name in STOCK:
            continue
        pulled_in_by = set(situation.pulled_in_by(unit.name))
        for _, ref in named(situation, unit, "After"):
            target = graph.id(ref.name)
            if target in late and target in pulled_in_by:
                text = (
                    f"After={ref.name}, which starts {unit.name}: whatever {ref.name} wants and is "
                    f"ordered after {unit.name} will be lost at boot"
                )
                yield RULE.at(ref.place, unit.name, text, fix=f"remove After={ref.name}")


RULE = Rule(
    "after-default-target",
    "warning",
    does="""\
Finds units that are ordered After= the very target of the boot that starts them, as long as nothing
follows them.""",
    why="""\
Alone it works: the direct edge keeps the target from ordering itself after the unit. But the first
other unit that says After= this one closes an ordering circle and is deleted from the boot.""",
    example="""\
[Unit]
After=multi-user.target
[Install]
WantedBy=multi-user.target""",
    instead="""\
Remove After=. To run when all else is done use Type=idle, or After= the units that are really
needed.""",
    source="moby/moby#41297, systemd/systemd#8381",
    check=check,
)
