"""A program that reads events.jsonl as those do that were there before the queue had a bus.

It looks at the log's tail only and knows these rules and no others: the last `gpu-wait` counts
until a `start` with lane gpu, a `runner-start` or a `stopped`. It never heard of `gpu-wait-end`.
"""

import json
import os
from pathlib import Path
from typing import Any

TAIL_BYTES = 256 * 1024


def last_wait(file: Path) -> dict[str, Any] | None:
    """Return the gpu-wait that counts now, None where the GPU is not waited for."""
    found: dict[str, Any] | None = None
    for line in _tail(file):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event["event"] == "gpu-wait":
            found = event
        elif _ends(event):
            found = None
    return found


def _ends(event: dict[str, Any]) -> bool:
    if event["event"] == "start":
        return bool(event["lane"] == "gpu")
    return event["event"] in ("runner-start", "stopped")


def _tail(file: Path) -> list[bytes]:
    with file.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - TAIL_BYTES))
        lines = log.read().split(b"\n")
    return lines if size <= TAIL_BYTES else lines[1:]
