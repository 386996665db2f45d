"""latent-cycle: a circle that is closed as soon as one more unit is started."""

from collections.abc import Iterator, Sequence

from sdqueue.lint.cycles import finding, fresh
from sdqueue.lint.finding import Finding
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation


def check(situation: Situation) -> Iterator[Finding]:
    box = situation.box
    known = [frozenset(units) for units in (*box.boot.loops, *box.shutdown.loops)]
    latent = [u for u in box.latent if not any(units <= set(u) for units in known)]
    for knot in fresh(situation, latent, lambda box: box.latent):
        cycle = knot.cycle()
        missing = [unit for unit in cycle if unit not in box.boot.jobs]
        new = [unit for unit in situation.new_units if unit in cycle]
        yield finding(
            knot,
            situation,
            RULE,
            unit=next(iter(new or cycle)),
            message=_message(missing),
        )


def _message(missing: Sequence[str]) -> str:
    if not missing:
        return "an ordering cycle that systemd happens not to meet at boot"
    return f"an ordering cycle as soon as {' and '.join(missing)} is started with the others"


RULE = Rule(
    "latent-cycle",
    "warning",
    does="""\
Finds ordering circles among all units that are loaded, whether boot starts them or not, and names
the units whose start would close them.""",
    why="""\
The circle isn't there today because a unit of it has no job: nobody pulls in that target, the
service isn't enabled, or it is active already. The next package that pulls it in closes it.""",
    example="""\
# group-fix.service, wanted by sysinit.target
[Unit]
DefaultDependencies=no
After=local-fs.target
Before=systemd-sysusers.service""",
    instead="Remove the ordering that runs against the others, here After=local-fs.target.",
    source="projectbluefin/common#1116",
    check=check,
)
