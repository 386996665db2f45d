"""How a report is printed: one module each, all from `Report` to text. Must not know rules."""

from importlib import import_module

from sdqueue.lint.report import Report

FORMATS: dict[str, tuple[str, str]] = {
    "text": ("text", "render"),
    "json": ("jsonformat", "render"),
    "sarif": ("sarif", "render"),
    "github": ("github", "render"),
    "dot": ("picture", "dot"),
    "svg": ("picture", "svg"),
}
"""Format → module and function; loaded when asked for."""


def render(name: str, report: Report) -> str:
    """The report in one of FORMATS."""
    module, function = FORMATS[name]
    text: str = getattr(import_module(f"{__name__}.{module}"), function)(report)
    return text
