"""early-socket-after-late-service: a unit of early boot that waits for one of late boot."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import named
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation

MILESTONES = {
    "socket": "sockets.target",
    "path": "paths.target",
    "automount": "local-fs.target",
}


def check(situation: Situation) -> Iterator[Finding]:
    looping = {unit for loop in situation.box.boot.loops for unit in loop}
    for unit in situation.units(*MILESTONES):
        if not situation.graph.node(unit.name).default_dependencies or unit.name in looping:
            continue
        for _, ref in named(situation, unit, "After"):
            if _is_late(situation, situation.graph.id(ref.name)):
                text = (
                    f"After={ref.name} closes an ordering cycle as soon as {ref.name} is started: "
                    f"it comes after {MILESTONES[unit.type]}, and that comes after {unit.name}"
                )
                yield RULE.at(ref.place, unit.name, text, fix=f"remove After={ref.name}")


def _is_late(situation: Situation, name: str) -> bool:
    """Whether a unit is ordered after basic.target: all services are, by default."""
    node = situation.graph.node(name)
    if node.load_state == "loaded" or not name.endswith(".service"):
        return situation.is_after(name, "basic.target")
    return node.load_state == "not-found" and not name.startswith("systemd-")


RULE = Rule(
    "early-socket-after-late-service",
    "warning",
    does="""\
Finds sockets, paths and automounts with default dependencies that are ordered After= something that
itself comes after basic.target, as nearly every service does. Where the circle is closed already,
ordering-cycle says so instead.""",
    why="""\
Sockets come before sockets.target, that before basic.target, that before all services. A socket
after a service is a circle as soon as boot starts the service.""",
    example="""\
# tg.socket
[Unit]
After=tg-keygen.service""",
    instead="Order the service that the socket starts after the other one. It waits there.",
    source="systemd.socket(5); latchset/tang#42, coreos/bugs#222",
    check=check,
)
