"""`sdqueue daemon`: the controller, in the foreground, until SIGTERM."""

import logging
import os
import sys

from sdqueue.cli.options import Arguments, Parser

# What the journal reads at the head of a line as the line's priority.
PRIORITIES = {
    logging.DEBUG: 7,
    logging.INFO: 6,
    logging.WARNING: 4,
    logging.ERROR: 3,
    logging.CRITICAL: 2,
}


class _JournalFormatter(logging.Formatter):
    """One message, each of its lines headed by its priority."""

    def format(self, record: logging.LogRecord) -> str:
        head = f"<{PRIORITIES.get(record.levelno, 6)}>"
        return "\n".join(head + line for line in super().format(record).splitlines())


def add_arguments(parser: Parser) -> None:
    """Add the options of `daemon`."""
    parser.add_argument(
        "--log-level",
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="what to log, on stderr; info where nothing is said",
    )


def run(args: Arguments) -> int:
    """Run the controller."""
    handler = logging.StreamHandler(sys.stderr)
    if "JOURNAL_STREAM" in os.environ:
        handler.setFormatter(_JournalFormatter())
    logging.basicConfig(level=args.log_level.upper(), handlers=[handler], format="%(message)s")
    from sdqueue.controller.daemon import run as run_controller

    return run_controller(system=args.system)
