"""One run's result as a value: what every format prints."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sdqueue.boot.graph import Graph
from sdqueue.lint.finding import Finding


@dataclass(frozen=True, slots=True)
class Report:
    """Findings, worst first; `base` says what they were held against, `unknown` what isn't covered.

    `files` is how many files were looked at. `graph` is for pictures.
    """

    findings: tuple[Finding, ...]
    systemd_version: int
    base: str
    unknown: tuple[str, ...] = ()
    files: int = 0
    graph: Graph = field(default_factory=Graph)

    def placed(self, shown: Callable[[str], str]) -> "Report":
        """The same with every file as a person wants to see it."""

        def place(file: str) -> str:
            return shown(file) if file else file

        return replace(self, findings=tuple(_placed(one, place) for one in self.findings))


def _placed(finding: Finding, place: Callable[[str], str]) -> Finding:
    return replace(
        finding,
        file=place(finding.file),
        cycle=tuple(replace(edge, file=place(edge.file)) for edge in finding.cycle),
        fixes=tuple(replace(fix, file=place(fix.file)) for fix in finding.fixes),
    )
