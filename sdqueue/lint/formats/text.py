"""For people: one paragraph for each finding, the edges of a cycle in columns."""

from collections.abc import Sequence
from itertools import groupby

from sdqueue.lint.finding import Edge, Finding, Fix, Lost
from sdqueue.lint.report import Report

LOST_SHOWN = 6
COLOURS = {"fatal": "1;35", "error": "1;31", "warning": "1;33", "info": "1;36", "dim": "2"}
WHERE = {
    "default": "default",
    "implicit": "implicit",
    "install": "[Install]",
    "link": "link",
}


def render(report: Report, *, colour: bool = False) -> str:
    """The whole report; ends with one line that sums it up."""
    paragraphs = [_finding(one, colour=colour) for one in report.findings]
    if report.unknown:
        paragraphs.append("".join(f"not known: {what}\n" for what in report.unknown))
    return "\n".join([*paragraphs, f"{_sum(report)}\n"])


def _finding(finding: Finding, *, colour: bool) -> str:
    head = _paint(f"{finding.severity}[{finding.rule}]", finding.severity, colour=colour)
    lines = [f"{head} {finding.message}"]
    if not finding.cycle and finding.file:
        lines.append(f"  {place(finding.file, finding.line)}")
    lines += _columns([_row(edge) for edge in finding.cycle])
    lines += [_lost(finding)] if finding.lost else []
    lines += _fixes(finding.fixes)
    lines += [f"  note: {note}" for note in finding.notes]
    return "\n".join(lines) + "\n"


def place(file: str, line: int) -> str:
    """A place that terminals and editors make clickable."""
    return f"{file}:{line}" if line else file


def _row(edge: Edge) -> tuple[str, str, str, str]:
    word = "After=" if edge.origin in ("file", "dropin") and edge.stated == "After" else "after"
    where = place(edge.file, edge.line)
    if edge.origin in WHERE:
        detail = ", ".join(part for part in (edge.note, where) if part)
        told = detail.startswith(edge.origin)
        where = detail if told else f"{WHERE[edge.origin]}: {detail}".removesuffix(": ")
    elif edge.stated == "Before":
        where += f" (Before={edge.unit})"
    return edge.unit, word, edge.other, where


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return [
        "  " + "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _lost(finding: Finding) -> str:
    when = "shutdown" if finding.rule == "shutdown-cycle" else "boot"
    shown = ", ".join(_share(lost) for lost in finding.lost[:LOST_SHOWN])
    more = len(finding.lost) - LOST_SHOWN
    return f"  lost at {when}: {shown}" + (f", and {more} more" if more > 0 else "")


def _share(lost: Lost) -> str:
    unit, _, job = lost.job.rpartition("/")
    name = unit if job in ("start", "stop") else lost.job
    silently = " silently" if lost.p_deleted == 0.0 else ""
    return f"{name}{silently} {percent(lost.p_lost)}"


def percent(share: float) -> str:
    """A share in per cent, never rounded to none or to all of it."""
    if 0.0 < share < 0.005:
        return "<1 %"
    return "99 %" if 0.99 < share < 1.0 else f"{share:.0%}".replace("%", " %")


def _fixes(fixes: Sequence[Fix]) -> list[str]:
    lines: list[str] = []
    for breaks, some in groupby(fixes, key=lambda fix: fix.breaks):
        first, *rest = [f"{fix.text} ({place(fix.file, fix.line)})" for fix in some]
        if breaks == "alone":
            lines.append(f"  {'or' if lines else 'fix'}: {first}")
            lines += [f"   or: {text}" for text in rest]
        else:
            lines.append(f"  fix, all of these together: {first}")
            lines += [f"   and: {text}" for text in rest]
    return lines


def _sum(report: Report) -> str:
    about = f"systemd {report.systemd_version}, {report.base}"
    if not report.findings:
        return f"No findings ({about})."
    counts = [
        f"{len(list(some))} {severity}"
        for severity, some in groupby(report.findings, key=lambda one: one.severity)
    ]
    return f"{', '.join(counts)} ({about})."


def _paint(text: str, what: str, *, colour: bool) -> str:
    return f"\x1b[{COLOURS[what]}m{text}\x1b[0m" if colour else text
