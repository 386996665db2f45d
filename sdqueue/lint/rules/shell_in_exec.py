"""shell-in-exec: shell syntax in a command line, which no shell reads."""

import re
from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.lines import settings
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.unitfile.command import next_word

_EXEC = re.compile(r"^Exec[A-Z]")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "busybox", "fish", "ash"})
_OPERATOR = re.compile(r"^(?:\||\|\||&&|&|\d*>{1,2}(?:&\d)?|<{1,2}|\d*>{1,2}/\S+|\d>&\d|&>\S*)$")
_SUBSTITUTION = re.compile(r"\$\(|(?:^|\s)`|`$")


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units("service", "socket", "mount", "swap"):
        for setting in settings(situation, unit):
            if not _EXEC.match(setting.key) or setting.section in ("Unit", "Install"):
                continue
            wrong = _shell_syntax(setting.value)
            if wrong:
                what = f"{wrong} is an argument like any other"
                text = f"{setting.key}= is not read by a shell; {what}"
                fix = "run it through a shell: /bin/sh -c '…'"
                yield RULE.at(setting.place, unit.name, text, fix=fix)


def _shell_syntax(value: str) -> str:
    """The first word outside of quotes that only a shell would understand, "" if there is none."""
    at, first = 0, True
    while at < len(value):
        start = at
        try:
            word, at = next_word(value, at)
        except ValueError:
            return ""
        if word is None:
            return ""
        written = value[start:at].strip()
        if first and word.lstrip("@-:+!|").rpartition("/")[2] in _SHELLS:
            return ""
        if not first and written[:1] not in "'\"" and _is_shell(written):
            return written
        first = word == ";"
    return ""


def _is_shell(word: str) -> bool:
    return bool(_OPERATOR.match(word) or _SUBSTITUTION.search(word))


RULE = Rule(
    "shell-in-exec",
    "warning",
    does="""\
Finds pipes, redirections, && and || and command substitution in Exec lines whose command isn't a
shell.""",
    why="""\
systemd starts the program itself and hands it every word as it stands: "echo a > b" prints
"a > b". It looks right in the file, starts without an error, and does something else.""",
    example="ExecStart=/usr/bin/dump-metrics > /var/lib/metrics/all.prom",
    instead="""\
ExecStart=/usr/bin/dump-metrics
StandardOutput=truncate:/var/lib/metrics/all.prom""",
    source="systemd.service(5), COMMAND LINES; ceph/ceph-ansible#3101, mbrubeck/agate#169",
    check=check,
)
