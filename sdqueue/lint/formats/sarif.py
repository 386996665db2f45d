"""For code scanning services: SARIF 2.1.0, with the cycle as a code flow."""

import json
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from sdqueue import __version__
from sdqueue.lint.finding import Edge, Finding
from sdqueue.lint.report import Report
from sdqueue.lint.rules import BY_NAME

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"fatal": "error", "error": "error", "warning": "warning", "info": "note"}
Value = object


def render(report: Report) -> str:
    """One run."""
    run = {
        "tool": {"driver": _driver(report)},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one) for one in report.findings],
    }
    value = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _driver(report: Report) -> dict[str, Value]:
    used = sorted({one.rule for one in report.findings if one.rule in BY_NAME})
    rules = [
        {
            "id": name,
            "shortDescription": {"text": " ".join(BY_NAME[name].does.split())},
            "help": {"text": " ".join(BY_NAME[name].instead.split())},
            "defaultConfiguration": {"level": LEVELS[BY_NAME[name].severity]},
        }
        for name in used
    ]
    return {"name": "sdqueue lint-units", "version": __version__, "rules": rules}


def _result(finding: Finding) -> dict[str, Value]:
    value: dict[str, Value] = {
        "ruleId": finding.rule,
        "level": LEVELS[finding.severity],
        "message": {"text": _message(finding)},
    }
    if finding.file:
        value["locations"] = [_location(finding.file, finding.line)]
    if finding.cycle:
        flow = [{"location": _step(edge)} for edge in finding.cycle if edge.file]
        value["codeFlows"] = [{"threadFlows": [{"locations": flow}]}] if flow else []
    return value


def _message(finding: Finding) -> str:
    fixes: Sequence[str] = [f"{fix.text} ({fix.file}:{fix.line})" for fix in finding.fixes]
    return finding.message + (f". Fix: {'; or '.join(fixes)}" if fixes else "")


def _step(edge: Edge) -> dict[str, Value]:
    return {
        **_location(edge.file, edge.line),
        "message": {"text": f"{edge.unit} after {edge.other}"},
    }


def _location(file: str, line: int) -> dict[str, Value]:
    where: Mapping[str, Value] = {"artifactLocation": {"uri": _uri(file)}}
    region = {"region": {"startLine": line}} if line else {}
    return {"physicalLocation": {**where, **region}}


def _uri(file: str) -> str:
    text = quote(file, errors="surrogateescape")
    return f"file://{text}" if file.startswith("/") else text
