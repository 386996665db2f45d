"""What is said besides the answer: warnings and remarks, on stderr, one line each."""

import sys

from sdqueue.cli.safe import safe


def warn(text: str) -> None:
    """Say what the user should know, without stopping for it."""
    remark(f"warning: {text}")


def remark(text: str) -> None:
    """Say something that is no part of the answer."""
    print(f"sdqueue: {safe(text)}", file=sys.stderr)
