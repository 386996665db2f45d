"""The records of a job's runs, checked: in the machine's queue a job's user can write to them.

A value of the wrong kind is as if it were not there, so that nobody further in has to ask.
"""

from collections.abc import Iterator
from math import isfinite

from sdqueue.spool.layout import Spool
from sdqueue.spool.runs import read_record, runs

Record = dict[str, object]
KINDS: dict[str, tuple[type, ...]] = {
    "run": (int,),
    "attempt": (int,),
    "start": (int, float),
    "end": (int, float),
    "rc": (int,),
    "verified": (bool,),
    "outcome": (str,),
    "result": (str,),
    "note": (str,),
    "invocation": (str,),
}
TIME_MAX_SEC = 1e11
"""Beyond this (it is the year 5138) no calendar of the C library need know a time."""


def record_of(spool: Spool, name: str, number: int) -> Record:
    """Return the record of one run, with at least its number."""
    found = read_record(spool, name, number) or {}
    return {"run": number, **{key: value for key, value in found.items() if _fits(key, value)}}


def records_of(spool: Spool, name: str) -> Iterator[Record]:
    """Yield the records of all runs, the first one first."""
    return (record_of(spool, name, number) for number in runs(spool, name))


def last_record(spool: Spool, name: str) -> Record:
    """Return the record of the last run, {} if there is none."""
    number = max(runs(spool, name), default=0)
    return record_of(spool, name, number) if number else {}


def _fits(key: str, value: object) -> bool:
    kinds = KINDS.get(key)
    if kinds is None:
        return _is_plain(value)
    if isinstance(value, bool) and bool not in kinds:
        return False
    return isinstance(value, kinds) and _is_plain(value)


def _is_plain(value: object) -> bool:
    """Say whether a value is one that JSON can say again: no NaN, nothing nested."""
    if isinstance(value, float) and not isfinite(value):
        return False
    if isinstance(value, int | float):
        return abs(value) < TIME_MAX_SEC
    return value is None or isinstance(value, str)
