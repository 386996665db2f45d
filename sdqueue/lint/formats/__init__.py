"""How a report is printed: one module each, all from `Report` to text. Must not know rules."""

from collections.abc import Callable

from sdqueue.lint.formats import github, jsonformat, picture, sarif, text
from sdqueue.lint.report import Report

FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text.render,
    "json": jsonformat.render,
    "sarif": sarif.render,
    "github": github.render,
    "dot": picture.dot,
    "svg": picture.svg,
}
