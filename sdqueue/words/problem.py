"""Trouble in a file that a person wrote, as a value with its place."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Problem:
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
