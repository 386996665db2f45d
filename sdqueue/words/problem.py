"""Trouble in a file that a person wrote, as a value with its place."""

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]


class Problem(NamedTuple):
    """One thing to say about one place: `FILE:LINE: SEVERITY: MESSAGE`.

    `line` is 1-based, 0 where the whole file is meant.
    """

    file: str
    line: int
    message: str
    severity: Severity = "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.severity}: {self.message}"
