"""For programs: the JSON of sdqueue-lint-units(1). Keys that don't apply are left out."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from sdqueue.lint.finding import Edge, Finding
from sdqueue.lint.report import Report

JSON_VERSION = 1
Value = object


def render(report: Report) -> str:
    """The whole report, indented."""
    return json.dumps(as_value(report), indent=2, ensure_ascii=False) + "\n"


def as_value(report: Report) -> dict[str, Value]:
    """The report as plain values."""
    return {
        "version": JSON_VERSION,
        "systemd_version": report.systemd_version,
        "base": report.base,
        "findings": [_finding(one) for one in report.findings],
        "unknown": list(report.unknown),
    }


def _finding(finding: Finding) -> dict[str, Value]:
    return _without_empty(
        {
            "rule": finding.rule,
            "severity": finding.severity,
            "unit": finding.unit,
            "file": finding.file,
            "line": finding.line,
            "message": finding.message,
            "cycle": [_edge(edge) for edge in finding.cycle],
            "lost": [asdict(lost) for lost in finding.lost],
            "fixes": [asdict(fix) for fix in finding.fixes],
            "notes": list(finding.notes),
        }
    )


def _edge(edge: Edge) -> dict[str, Value]:
    return _without_empty(
        {
            "unit": edge.unit,
            "edge": "After",
            "other": edge.other,
            "origin": edge.origin,
            "file": edge.file,
            "line": edge.line,
            "stated": edge.stated,
            "note": edge.note,
        }
    )


def _without_empty(value: Mapping[str, Value]) -> dict[str, Value]:
    return {key: item for key, item in value.items() if item not in ("", 0, [], ())}
