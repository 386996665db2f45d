"""What must have happened for `make try` to be content, read from the spool alone."""

import json
from itertools import product
from pathlib import Path

OUTCOMES: dict[str, tuple[str, list[str]]] = {
    "10-net-model": ("done", ["start", "done"]),
    "11-net-tokens": ("done", ["start", "done"]),
    "20-gpu-bench": ("done", ["start", "done"]),
    "30-cpu-convert": ("done", ["start", "done"]),
    "31-cpu-flaky": ("done", ["start", "retry", "start", "done"]),
    "32-cpu-broken": ("failed", ["start", "retry", "start", "failed"]),
    "33-cpu-reseeded": ("done", ["skipped"]),
    "40-gpu-late": ("done", ["gpu-wait", "start", "done"]),
}
"""Job → the directory of its file at the end, and its events but for waits."""

NEVER_TOGETHER = [("10-net-model", "20-gpu-bench"), ("11-net-tokens", "20-gpu-bench")]


def judge(spool: Path) -> list[str]:
    """Say what is not as it should be; nothing if all is."""
    lines = (spool / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    troubles = []
    for job, (state, words) in OUTCOMES.items():
        happened = [each["event"] for each in events if each["job"] == job]
        happened = [word for word in happened if word != "wait"]
        if happened != words:
            troubles.append(f"{job}: {happened}, not {words}")
        if not (spool / state / f"{job}.job").exists():
            troubles.append(f"{job} is not in {state}/")
    return troubles + _overlaps(spool)


def _overlaps(spool: Path) -> list[str]:
    found = []
    for one, other in NEVER_TOGETHER:
        for (begin, end), (from_, to) in product(_spans(spool, one), _spans(spool, other)):
            if begin < to and from_ < end:
                found.append(f"{one} and {other} ran at the same time")
    return found


def _spans(spool: Path, job: str) -> list[tuple[float, float]]:
    records = [json.loads(file.read_text()) for file in (spool / "runs" / job).glob("*/run.json")]
    return [(record["start"], record["end"]) for record in records]
