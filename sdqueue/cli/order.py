"""What will keep a job waiting, said when it is submitted: its predecessors, its memory."""

import os
from collections.abc import Iterator, Sequence

from sdqueue.cli.compose import Draft
from sdqueue.cli.say import warn
from sdqueue.jobtext import read_header
from sdqueue.jobvalues import split_words
from sdqueue.spool.layout import Spool
from sdqueue.spool.moves import states_of
from sdqueue.spool.scan import JobBytes, read_job
from sdqueue.words.names import SUFFIX
from sdqueue.words.spans import format_size

AFTER = ("AFTER", "AFTER_ANY")
CHAIN_MAX = 10_000


def warn_order(spool: Spool, names: Sequence[str], jobs: Sequence[Draft]) -> None:
    """Warn of predecessors that do not exist, that have failed, and of circles."""
    for name, job in zip(names, jobs, strict=True):
        for key, text in job.settings:
            if key in AFTER:
                for before in _jobs(text):
                    _warn_one(spool, name, key, before)
        circle = _circle(spool, name)
        if circle:
            warn(f"{' comes after '.join(circle)}: none of them will ever start")


def _warn_one(spool: Spool, name: str, key: str, before: str) -> None:
    states = states_of(spool, before)
    if not states:
        warn(f"{name} comes after {before}, and there is no such job; it waits until there is")
    elif key == "AFTER" and states[0] in ("failed", "parked"):
        warn(f"{name} comes after {before}, which is in {states[0]}/; it waits until that is done")


def _circle(spool: Spool, start: str) -> list[str]:
    """Return a way from the job back to itself over its predecessors, or []."""
    seen: set[str] = set()
    ways = [[start]]
    while ways and len(seen) < CHAIN_MAX:
        way = ways.pop()
        for before in _predecessors(spool, way[-1]):
            if before == start:
                return [*way, start]
            if before not in seen:
                seen.add(before)
                ways.append([*way, before])
    return []


def _predecessors(spool: Spool, name: str) -> Iterator[str]:
    """Yield what a job that has not ended comes after."""
    for state in ("queue", "parked"):
        found = read_job(spool, state, name)
        if isinstance(found, JobBytes):
            for _, key, value in read_header(found.data).lines:
                if key.decode() in AFTER:
                    yield from _jobs(value.decode("utf-8", "replace"))


def _jobs(text: str) -> list[str]:
    return [word.removesuffix(SUFFIX) for word in split_words(text)]


def warn_memory(jobs: Sequence[Draft]) -> None:
    """Warn of a job that asks for more memory than the box has."""
    from sdqueue.jobkeys import BY_NAME

    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for job in jobs:
        for text in (text for key, text in job.settings if key == "MEMORY"):
            need = BY_NAME["MEMORY"].value(text)[0]
            if need > total:
                box = format_size(total >> 20 << 20)
                warn(f"MEMORY {text} is more than the {box} that this box has: it will wait")
