"""timer-starts-at-boot: a timer that pulls in its own unit, so boot starts that at once."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import named
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation


def check(situation: Situation) -> Iterator[Finding]:
    for timer in situation.units("timer"):
        triggered = set(situation.graph.neighbours(timer.name, "Triggers"))
        for key, ref in named(situation, timer, "Requires", "Wants", "BindsTo", "Upholds"):
            if situation.graph.id(ref.name) in triggered:
                when = "whenever the timer is started, so at boot"
                text = f"{key}={ref.name} starts {ref.name} {when}"
                yield RULE.at(ref.place, timer.name, text, fix=f"remove {key}={ref.name}")


RULE = Rule(
    "timer-starts-at-boot",
    "warning",
    does="Finds timers that require or want the very unit that they trigger.",
    why="""\
Starting a timer doesn't start its unit; the timer does, when its time has come. But Requires= and
Wants= start it together with the timer: at each boot, and at each daemon restart by hand.""",
    example="""\
# backup.timer
[Unit]
Requires=backup.service
[Timer]
OnCalendar=daily""",
    instead="""\
# backup.timer
[Timer]
OnCalendar=daily""",
    source="systemd/systemd#14642, zerotier/zerotier-systemd-manager#12",
    check=check,
)
