"""Comments that silence a rule: `# sdqueue-lint: ignore RULE REASON`, for the file they are in."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sdqueue.lint.situation import Situation

_SILENCE = re.compile(r"^sdqueue-lint:\s*ignore\b\s*(\S*)\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Silence:
    """One such comment; without a reason it silences nothing."""

    rule: str
    reason: str
    file: str
    line: int


def silences(situation: Situation) -> Iterator[Silence]:
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
