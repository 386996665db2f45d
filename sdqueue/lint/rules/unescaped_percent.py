"""unescaped-percent: a per cent sign that systemd takes for a specifier."""

import re
from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import settings
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.unitfile.directives import directives
from sdqueue.unitfile.specifier import FULL_SPECIFIERS

_PERCENT = re.compile(r"%(%|[A-Za-z0-9]|)")
_DATE = re.compile(r"\+%[A-Za-z]|%[YymdHMS][-:_/%]?%[YymdHMS]")
EXPANDED = re.compile(
    r"^(?:Exec.*|Environment|EnvironmentFile|WorkingDirectory|RootDirectory|.*Directory|.*Path.*|"
    r"Listen.*|Description|Documentation|SyslogIdentifier|User|Group|StandardOutput|StandardError)$"
)


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        for setting in settings(situation, unit):
            if "%" not in setting.value or not EXPANDED.match(setting.key):
                continue
            wrong = _wrong(setting.value)
            if wrong and (setting.section, setting.key) in directives():
                fix = "write %% for a per cent sign"
                yield RULE.at(setting.place, unit.name, f"{setting.key}=: {wrong}", fix=fix)


def _wrong(value: str) -> str:
    for found in _PERCENT.finditer(value):
        letter = found.group(1)
        if letter not in ("", "%") and letter not in FULL_SPECIFIERS:
            return f"%{letter} is no specifier, so the whole line is ignored"
    plain = value.replace("%%", "")
    date = _DATE.search(plain)
    if date:
        return f"{date.group()} looks like a date, but systemd puts specifiers there"
    return ""


RULE = Rule(
    "unescaped-percent",
    "warning",
    does="""\
Finds a % before a letter that is no specifier, and date formats, whose letters are specifiers with
another meaning.""",
    why="""\
In a unit file %H is the host name and %m the machine id. With a letter that means nothing systemd
ignores the line: an ExecStart= that isn't there, a unit that can't be loaded.""",
    example="ExecStart=/usr/bin/backup --name=db-%Y-%m-%d",
    instead="ExecStart=/bin/sh -c 'exec /usr/bin/backup --name=db-$$(date +%%Y-%%m-%%d)'",
    source="systemd.unit(5), SPECIFIERS; systemd/systemd#36248, #3021",
    check=check,
)
