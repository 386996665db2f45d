"""When the program is called by a job: what would wait for ever, since that job holds its lane."""

import os

from sdqueue.cli.place import Place
from sdqueue.words.errors import SdqueueError
from sdqueue.words.names import SUFFIX


def own_job() -> str:
    """Return the name of the job that we are part of, "" if of none."""
    return os.environ.get("SDQUEUE_JOB", "").removesuffix(SUFFIX)


def refuse_deadlock(place: Place, verb: str, lane: str) -> None:
    """Refuse to wait, from within a job, for one of a lane that is not free before it has ended."""
    own = place.config.lanes.get(os.environ.get("SDQUEUE_LANE", ""))
    if not own_job() or own is None:
        return
    if lane in own.excludes or (lane == own.name and own.slots == 1):
        raise SdqueueError(
            f"this job holds lane {own.name}, so one in lane {lane} can't start before it ends, and"
            f" {verb} would wait for ever; use submit, or another lane."
        )
