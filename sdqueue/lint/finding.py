"""What a rule says: one finding, with its place, its cycle, its odds and its fixes. Values only."""

from dataclasses import dataclass
from typing import Literal, get_args

from sdqueue.boot.graph import OriginKind

Severity = Literal["fatal", "error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Worst first."""

Breaks = Literal["alone", "with others"]


@dataclass(frozen=True, slots=True)
class Edge:
    """`unit` is ordered after `other`, because of that place.

    `stated` is how it is written there: "After", or "Before" where `other` says so. `note` is the
    rule behind a default or implicit edge.
    """

    unit: str
    other: str
    origin: OriginKind
    file: str = ""
    line: int = 0
    stated: str = "After"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """A unit job and how often it is a victim (`p_deleted`), or gone for any reason (`p_lost`)."""

    job: str
    p_deleted: float
    p_lost: float


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing to do at one place. `breaks`: whether it is enough."""

    file: str
    line: int
    text: str
    breaks: Breaks = "alone"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `line` is 1-based, 0 where the whole file or no file is meant."""

    rule: str
    severity: Severity
    unit: str
    file: str
    line: int
    message: str
    cycle: tuple[Edge, ...] = ()
    lost: tuple[Lost, ...] = ()
    fixes: tuple[Fix, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sort_key(self) -> tuple[int, str, int, str, str]:
        """Worst first, then by place."""
        return SEVERITIES.index(self.severity), self.file, self.line, self.rule, self.message


def at_least(severity: Severity, limit: Severity) -> bool:
    """Whether a severity is as bad as the limit, or worse."""
    return SEVERITIES.index(severity) <= SEVERITIES.index(limit)
