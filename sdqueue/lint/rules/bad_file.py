"""bad-file: what can't be read, or is not what it looks like."""

from collections.abc import Iterator

from sdqueue.lint.finding import Finding
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.words.problem import Problem

NO_TARGET = ": there is no such unit"
"""What enabling says of [Install]; wanted-by-unreached knows more about it."""


def check(situation: Situation) -> Iterator[Finding]:
    for problem in situation.problems:
        if NO_TARGET in problem.message:
            continue
        yield _finding(problem, problem.file.rpartition("/")[2])
    for name in situation.new_units:
        unit = situation.unit(name)
        for problem in unit.problems if unit else ():
            if situation.is_new_file(problem.file) or problem.file == name:
                yield _finding(problem, name)


def _finding(problem: Problem, unit: str) -> Finding:
    return Finding(RULE.name, problem.severity, unit, problem.file, problem.line, problem.message)


RULE = Rule(
    "bad-file",
    "error",
    does="""\
Finds files that can't be read or have no place in a unit directory, lines that systemd ignores, and
whatever keeps systemd from loading a unit.""",
    why="systemd logs such things and goes on without them.",
    example="""\
[Service]
ExecStart /usr/bin/true""",
    instead="""\
[Service]
ExecStart=/usr/bin/true""",
    source="systemd.syntax(7)",
    check=check,
)
