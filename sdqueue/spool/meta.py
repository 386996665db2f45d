"""`meta/JOB.json`: what must outlive a restart and is not in the job's file.

Only jobs with something to remember have one. Of a file that can't be understood it is said why; it
costs its job what was remembered, not the job.
"""

import json
import os
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any

from sdqueue.spool.files import read_small, replace, sync_dir, telling
from sdqueue.spool.layout import Spool
from sdqueue.words.problem import Problem

SCHEMA = 1
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What is remembered of a job. Times are unix seconds, 0 where they do not apply.

    `attempts` were spent, `interrupted` counts interruptions in a row, `run` is the number of the
    last run. `ino` and `mtime_ns` are those of the job file when this was written, by which a file
    that was put back anew is told. `parked_by` is a uid, -1 for the queue itself. `rc`, `verified`
    and `result` are those of the last run.
    """

    attempts: int = 0
    interrupted: int = 0
    retry_sec: float = 0.0
    run: int = 0
    parked_reason: str = ""
    parked_by: int = -1
    rc: int | None = None
    verified: bool | None = None
    result: str = ""
    ended_sec: float = 0.0
    ino: int = 0
    mtime_ns: int = 0


_COUNTS = ("attempts", "interrupted", "run")
_KINDS: dict[str, tuple[type, ...]] = {
    "parked_reason": (str,),
    "result": (str,),
    "retry_sec": (int, float),
    "ended_sec": (int, float),
    "rc": (int, type(None)),
    "verified": (bool, type(None)),
}


def save(spool: Spool, job: str, meta: Meta) -> None:
    """Write the job's meta data, durably."""
    record = {"schema": SCHEMA, **asdict(meta)}
    replace(spool.meta_file(job), json.dumps(record).encode() + b"\n", spool.aside_dir)


def drop(spool: Spool, job: str) -> None:
    """Forget the job's meta data, durably; that there was none is no error."""
    file = spool.meta_file(job)
    with telling("remove", file):
        try:
            os.unlink(file)
        except FileNotFoundError:
            return
        sync_dir(spool.meta_dir)


def load(spool: Spool, job: str) -> Meta | Problem | None:
    """Return the job's meta data, None where there is none, or why it can't be understood."""
    data = read_small(spool.meta_file(job))
    return None if data is None else _parsed(job, data)


def _parsed(job: str, data: bytes) -> Meta | Problem:
    try:
        record = json.loads(data)
        return _typed(record)
    except (ValueError, RecursionError) as error:
        what = f"it can't be understood ({error}); the job begins with a fresh budget"
        return Problem(f"meta/{job}{_SUFFIX}", 0, what, "warning")


def _typed(record: Any) -> Meta:
    """Make a Meta of parsed JSON; keys of other versions within the schema are passed over."""
    if not isinstance(record, dict):
        raise ValueError("no object")
    if record.get("schema") != SCHEMA:
        raise ValueError(f"schema {record.get('schema')!r}, this version knows {SCHEMA}")
    values: dict[str, Any] = {
        field.name: record[field.name] for field in fields(Meta) if field.name in record
    }
    for name, value in values.items():
        kinds = _KINDS.get(name, (int,))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"{name} is {value!r}")
        # A time that is no number would never come; a count below zero would never be used up.
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f"{name} is {value!r}")
        if name in _COUNTS and values[name] < 0:
            raise ValueError(f"{name} is {value!r}")
    return Meta(**values)
