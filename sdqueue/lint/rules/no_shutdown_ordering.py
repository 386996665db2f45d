"""no-shutdown-ordering: without default dependencies, and nothing stops it in time."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.later import SHUTDOWN
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.lint.targets import ON_EVENT
from sdqueue.unitfile.unit import Unit

ENDING = frozenset(
    f"systemd-{how}.service" for how in ("halt", "kexec", "poweroff", "reboot", "soft-reboot")
)
ENDS = ON_EVENT - {"sound.target", "printer.target", "bluetooth.target"}


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units("service"):
        setting = unit.last("Unit", "DefaultDependencies")
        if setting is None or not situation.is_new_file(setting.place.file):
            continue
        node = situation.graph.node(unit.name)
        if node.default_dependencies or not _stays(unit) or _of_the_end(situation, unit.name):
            continue
        if _stopped_by_others(situation, unit):
            continue
        missing = [
            f"{kind}={SHUTDOWN}"
            for kind in ("Conflicts", "Before")
            if not situation.graph.has(unit.name, kind, SHUTDOWN)
        ]
        if missing:
            fix = f"add {' and '.join(missing)}"
            yield RULE.at(setting.place, unit.name, _message(unit.name, missing), fix=fix)


def _stays(unit: Unit) -> bool:
    """Whether there will be something to stop: a process, or a command that does it."""
    if unit.value("Service", "Type") != "oneshot":
        return bool(unit.value("Service", "ExecStart"))
    remains = unit.flag("Service", "RemainAfterExit", default=False)
    return remains and bool(unit.value("Service", "ExecStop"))


def _stopped_by_others(situation: Situation, unit: Unit) -> bool:
    """Whether it comes and goes with another unit, or is stopped before a mount that it needs."""
    tied = any(situation.graph.neighbours(unit.name, "TriggeredBy", "BindsTo", "PartOf"))
    return tied or unit.last("Unit", "RequiresMountsFor") is not None


def _of_the_end(situation: Situation, unit: str) -> bool:
    """Whether it belongs to an end itself, or is ended by another one than a shutdown."""
    near = situation.graph.neighbours
    for_end = {*near(unit, "WantedBy", "RequiredBy", "Conflicts", "BindsTo")} & ENDS - {SHUTDOWN}
    return bool(for_end) or any(other in ENDING for other in near(unit, "Before"))


def _message(unit: str, missing: list[str]) -> str:
    what = "is not stopped" if f"Conflicts={SHUTDOWN}" in missing else "is stopped late"
    return f"{unit} {what} at shutdown: DefaultDependencies=no without {' and '.join(missing)}"


RULE = Rule(
    "no-shutdown-ordering",
    "warning",
    does="""\
Finds services with DefaultDependencies=no that run on, or have something to do when they are
stopped, and have no Conflicts=shutdown.target or no Before=shutdown.target. Those that come
and go with another unit are left out, and those that belong to a shutdown or an initrd.""",
    why="""\
Both lines are default dependencies and go with them. Without Conflicts= nobody stops the unit: it
is killed at the very end, when file systems are being unmounted. Without Before= it is stopped, but
shutdown doesn't wait for that.""",
    example="""\
[Unit]
DefaultDependencies=no
After=local-fs.target""",
    instead="""\
[Unit]
DefaultDependencies=no
After=local-fs.target
Conflicts=shutdown.target
Before=shutdown.target""",
    source="systemd.unit(5); NixOS/nixpkgs#271326, canonical/cloud-init#546, systemd/systemd#3912",
    check=check,
)
