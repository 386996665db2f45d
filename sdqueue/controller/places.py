"""The spool as the controller uses it: where everything is, and what it needs beside the jobs.

What is done there is in four modules of functions, whose first argument is a `Places`: `looking`
(what lies where), `moving` (a job's file and its steps), `records` (run.json and the witness) and
`context` (where and as whom a run happens). All are synchronous: the controller calls them in
threads. None decides what is to be done.
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from sdqueue.core.model import JobState
from sdqueue.core.spec import Lane
from sdqueue.core.unit import WITNESS
from sdqueue.spool.files import read_small, replace
from sdqueue.spool.layout import Spool, ensure
from sdqueue.words.errors import SpoolError

DIRECTORY_OF: dict[JobState, str] = {
    JobState.RUNNING: "running",
    JobState.QUEUED: "queue",
    JobState.DONE: "done",
    JobState.FAILED: "failed",
    JobState.PARKED: "parked",
}
"""In the order of precedence: where one name lies in two directories, the first counts."""

STATE_OF = {directory: state for state, directory in DIRECTORY_OF.items()}


class Unsynced(NamedTuple):
    """A rename that was made and is not yet durable; `result` is what its step gives then."""

    source: str
    target: str
    forget: bool
    result: int


class Places:
    """One spool, and what its controller knows of where it works.

    `lanes` are kept up to date by the controller. `manager` names the boot and the service manager
    that runs start under. `unsynced` holds the jobs whose step is to be called again, `records` is
    held by whoever reads a record to write it back.
    """

    def __init__(self, spool: Spool, lanes: Mapping[str, Lane]) -> None:
        self.spool = spool
        self.system = spool.system
        self.lanes = lanes
        self.boot = ""
        self.manager = ""
        self.witness_script = f"{spool.root}/witness"
        self.unsynced: dict[str, Unsynced] = {}
        self.records = threading.Lock()

    def ensure(self) -> None:
        """Make the directories that are missing, and the script that every unit runs at its end."""
        ensure(self.spool)
        if read_small(self.witness_script) != WITNESS.encode():
            replace(self.witness_script, WITNESS.encode(), self.spool.aside_dir, mode=0o644)

    def mend(self) -> None:
        """Make missing directories, if that can be done, since a step was refused."""
        with suppress(SpoolError):
            self.ensure()

    def state_dirs(self) -> list[str]:
        """List the directories whose files are jobs."""
        return [self.spool.state_dir(directory) for directory in DIRECTORY_OF.values()]
