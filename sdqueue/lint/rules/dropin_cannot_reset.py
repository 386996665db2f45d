"""dropin-cannot-reset: a drop-in tries what a drop-in can't do."""

from collections.abc import Iterator

from sdqueue.boot.graph import KINDS
from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import is_dropin, settings
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.unitfile.unit import Setting, Unit


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        for setting in settings(situation, unit):
            text = _nothing_to_reset(unit, setting) or _install(unit, setting)
            if text:
                yield RULE.at(setting.place, unit.name, text)


def _nothing_to_reset(unit: Unit, setting: Setting) -> str:
    if setting.section != "Unit" or setting.key not in KINDS or setting.value:
        return ""
    lines = unit.all("Unit", setting.key)
    earlier = [one for one in lines[: lines.index(setting)] if one.value]
    if not earlier:
        return ""
    return f"an empty {setting.key}= resets nothing: {setting.key}={earlier[-1].value} still counts"


def _install(unit: Unit, setting: Setting) -> str:
    if setting.section == "Install" and is_dropin(unit, setting):
        return f"{setting.key}= in [Install] of a drop-in is ignored"
    return ""


RULE = Rule(
    "dropin-cannot-reset",
    "warning",
    does="""\
Finds an empty After=, Wants= or other dependency after lines that set it, and [Install] in
drop-ins.""",
    why="""\
For most lists an empty assignment begins anew. For dependencies it does nothing, in every version
of systemd, without a message; and [Install] is read from the unit file only.""",
    example="""\
# a9-telemetry.service.d/no-order.conf
[Unit]
After=""",
    instead="""\
Put a whole unit file of the same name into /etc/systemd/system; it takes the place of the other.
For [Install] use systemctl add-wants, or such a file.""",
    source="systemd/systemd#18154, #1774",
    check=check,
)
