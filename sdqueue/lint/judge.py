"""All rules over one situation: findings in order, less those that were silenced with a reason."""

from collections.abc import Iterable

from sdqueue.lint.finding import Finding
from sdqueue.lint.rules import RULES
from sdqueue.lint.silence import silences
from sdqueue.lint.situation import Situation


def judge(situation: Situation, *, ignore: Iterable[str] = ()) -> list[Finding]:
    """Every finding, worst first; `ignore` names rules that aren't wanted at all."""
    skipped = frozenset(ignore)
    silenced = {(one.file, one.rule) for one in silences(situation) if one.reason}
    found = (
        one
        for rule in RULES
        if rule.name not in skipped
        for one in rule.check(situation)
        if not any((file, one.rule) in silenced for file in _files(one))
    )
    return sorted(dict.fromkeys(found), key=lambda one: one.sort_key)


def _files(finding: Finding) -> set[str]:
    """The files in which a comment can silence a finding: its own, and those of its cycle."""
    return {finding.file, *(edge.file for edge in finding.cycle)}
