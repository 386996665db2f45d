"""All rules over one situation: findings in order, less those that were silenced with a reason."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sdqueue.lint.finding import Finding
from sdqueue.lint.rules import BY_NAME, RULES
from sdqueue.lint.situation import Situation

_SILENCE = re.compile(r"^sdqueue-lint:\s*ignore\s+(\S+)\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Silence:
    """A comment that silences a rule for its file; `reason` may be missing, then it doesn't."""

    rule: str
    reason: str
    file: str
    line: int


def judge(situation: Situation, *, ignore: Iterable[str] = ()) -> list[Finding]:
    """Every finding, worst first; `ignore` names rules that aren't wanted at all."""
    skipped = frozenset(ignore)
    silences = list(silences_of(situation))
    silenced = {(one.file, one.rule) for one in silences if one.reason}
    found = [
        one
        for rule in RULES
        if rule.name not in skipped
        for one in rule.check(situation)
        if not any((file, rule.name) in silenced for file in _files(one))
    ]
    found += (one for one in _bad_silences(silences) if one.rule not in skipped)
    return sorted(dict.fromkeys(found), key=lambda one: one.sort_key)


def _files(finding: Finding) -> set[str]:
    """The files in which a comment can silence a finding: its own, and those of its cycle."""
    return {finding.file, *(edge.file for edge in finding.cycle)}


def silences_of(situation: Situation) -> Iterator[Silence]:
    """Every comment of the new files that wants to silence something, each once."""
    seen: set[tuple[str, int]] = set()
    for name in situation.new_units:
        unit = situation.unit(name)
        for comment in unit.comments if unit else ():
            place = comment.place
            match = _SILENCE.match(comment.text.lstrip("#; \t"))
            if match and (place.file, place.line) not in seen:
                seen.add((place.file, place.line))
                yield Silence(match.group(1), match.group(2).strip(), place.file, place.line)


def _bad_silences(silences: Iterable[Silence]) -> Iterator[Finding]:
    for one in silences:
        if one.rule not in BY_NAME:
            text = f"there is no rule {one.rule}"
        elif not one.reason:
            text = f"a reason is missing: # sdqueue-lint: ignore {one.rule} REASON"
        else:
            continue
        unit = one.file.rpartition("/")[2]
        yield Finding("bad-ignore", "warning", unit, one.file, one.line, text)
