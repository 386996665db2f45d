"""For GitHub Actions: one workflow command for each finding, shown at its line in a change."""

from sdqueue.lint.finding import Finding
from sdqueue.lint.report import Report

COMMANDS = {"fatal": "error", "error": "error", "warning": "warning", "info": "notice"}


def render(report: Report) -> str:
    """All findings, one line each."""
    return "".join(f"{_command(one)}\n" for one in report.findings)


def _command(finding: Finding) -> str:
    properties = {"file": finding.file, "line": str(finding.line or ""), "title": finding.rule}
    given = ",".join(f"{key}={_property(text)}" for key, text in properties.items() if text)
    return f"::{COMMANDS[finding.severity]} {given}::{_data(_text(finding))}"


def _text(finding: Finding) -> str:
    lines = [finding.message]
    lines += [f"{e.unit} after {e.other} ({e.file or e.origin})" for e in finding.cycle]
    lines += [f"fix: {fix.text} ({fix.file}:{fix.line})" for fix in finding.fixes]
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
