"""What of a job is whose to see: its name, lane, state and reason are everybody's, its file is not.

On the system bus that is what `systemctl` shows of a unit, too: that it is there, how it is, and
why it is not started. What a job's file says is for root, the queue's owner and the job's.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sdqueue.bus.service import Request
from sdqueue.core.model import CODE_HELP, Code, Job
from sdqueue.core.view import Row

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller

QUOTING = frozenset({Code.BAD_FILE, Code.REFUSED, Code.MEMORY, Code.DISK})
"""Reasons whose detail may quote the job's file; others are told what the code means."""

_OF_FILE = ("description",)


def owner_of(job: Job) -> int | None:
    """Return the uid of a job's owner, None where its file could not be understood."""
    return job.spec.uid if job.spec else None


async def view_for(request: Request, queue: "Controller") -> Callable[[Job | None, Row], Row]:
    """Return what makes of a job's row the one that the caller may see."""
    caller = await request.credentials()
    if caller.uid in (0, queue.state.uid):
        return lambda _job, row: row
    return lambda job, row: row if job and owner_of(job) == caller.uid else public(row)


def public(row: Mapping[str, object]) -> Row:
    """Return a job's row, an event's fields or a step of a chain as everybody may see it."""
    seen = {key: value for key, value in row.items() if key not in _OF_FILE}
    for key in ("code", "reason"):
        word = row.get(key)
        if isinstance(word, str) and word in QUOTING and "detail" in row:
            seen["detail"] = CODE_HELP[Code(word)]
    if isinstance(reason := row.get("reason"), dict):
        seen["reason"] = public(reason)
    return seen
