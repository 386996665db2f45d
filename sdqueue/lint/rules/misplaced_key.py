"""misplaced-key: a setting that systemd doesn't take where it stands."""

from collections.abc import Iterator
from difflib import get_close_matches

from sdqueue.lint.finding import Finding, Severity
from sdqueue.lint.lines import settings
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.unitfile.directives import Judgement, Verdict, directives, judge
from sdqueue.unitfile.unit import Setting, Unit


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        for setting in settings(situation, unit):
            verdict = judge(unit.type, setting.section, setting.key, situation.version)
            said = _say(unit, setting, verdict)
            if said:
                severity, text, fix = said
                yield RULE.at(setting.place, unit.name, text, fix=fix, severity=severity)


def _say(unit: Unit, setting: Setting, found: Judgement) -> tuple[Severity, str, str] | None:
    what = f"{setting.key}= in [{setting.section}]"
    if found.verdict is Verdict.MISPLACED:
        there = " or ".join(f"[{section}]" for section in found.sections)
        return RULE.severity, f"{what} is ignored: it belongs in {there}", f"move it to {there}"
    if found.verdict is Verdict.UNKNOWN_SECTION:
        return RULE.severity, f"{what} is ignored: a {unit.type} has no such section", ""
    if found.verdict is Verdict.UNKNOWN:
        near = _near(setting)
        return RULE.severity, f"{what} is ignored: there is no such setting", near
    if found.verdict is Verdict.TOO_NEW and found.directive:
        return "info", f"{what} is known from systemd {found.directive.first} on", ""
    return None


def _near(setting: Setting) -> str:
    keys = [key for section, key in directives() if section in ("Unit", "Install", setting.section)]
    near = get_close_matches(setting.key, keys, 1, 0.8)
    return f"write {near[0]}=" if near else ""


RULE = Rule(
    "misplaced-key",
    "warning",
    does="""\
Finds settings in a section that doesn't have them, settings that no version has, and (as info)
settings that are newer than the systemd at hand.""",
    why="""\
systemd ignores what it doesn't know, with one line in the log. StartLimitIntervalSec= in [Service]
then limits nothing, After= in [Service] orders nothing.""",
    example="""\
[Service]
StartLimitIntervalSec=0""",
    instead="""\
[Unit]
StartLimitIntervalSec=0""",
    source="systemd.unit(5); syncthing/syncthing#7529, NixOS/nixpkgs#45786",
    check=check,
)
