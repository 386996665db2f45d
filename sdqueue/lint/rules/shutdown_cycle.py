"""shutdown-cycle: stop jobs of a shutdown are ordered in a circle; some unit is killed late."""

from collections.abc import Iterator

from sdqueue.lint.cycles import finding, fresh, lost_jobs, spoken_for
from sdqueue.lint.finding import Finding
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation


def check(situation: Situation) -> Iterator[Finding]:
    later = situation.box.shutdown
    at_boot = [frozenset(units) for units in situation.box.boot.loops]
    only_later = [u for u in later.loops if not any(set(u) <= units for units in at_boot)]
    knots = list(fresh(situation, only_later, lambda box: box.shutdown.loops))
    for knot in knots:
        if any(units <= knot.units for units in at_boot):
            continue
        lost = lost_jobs(knot, later, (k.units for k in knots if k is not knot))
        unit = spoken_for(knot, lost, situation)
        yield finding(
            knot,
            situation,
            RULE,
            unit=unit,
            message=f"{unit} may not be stopped in order at shutdown",
            lost=lost,
        )


RULE = Rule(
    "shutdown-cycle",
    "error",
    does="""\
Takes all that boot starts, and all that sockets, timers, paths and automounts can start later, as
running, and finds ordering circles among their stop jobs that aren't there at boot.""",
    why="""\
At shutdown every job may be deleted to break a circle. The unit whose stop job goes isn't stopped:
it runs on until it is killed at the very end, without its ExecStop=, after what it needs is gone.
The same circle can also refuse or drop jobs at run time.""",
    example="""\
# sess.socket
[Unit]
Requires=sess-user.service
After=sess-user.service
[Socket]
ListenStream=/run/sess.sock""",
    instead="""\
Give the socket (or timer, or path) DefaultDependencies=no with its own Conflicts=shutdown.target
and Before=shutdown.target, or order the service that it starts instead.""",
    source="src/core/transaction.c; cockpit-project/cockpit#23078",
    check=check,
)
