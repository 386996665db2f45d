"""What became of the jobs in running/: one table for every start-up, reconnection and reload.

The shell lists the units of jobs, reads the witnesses of those that have none, and asks here for
each job. The answer is an ordinary event of the queue; recovery has no code path of its own.

The table, first row first:

    unit                     witness   run of        →
    has a start job          –         –             Reattached
    loaded, and has ended    –         –             Ended, from its properties
    –                        complete  this manager  Ended, from the witness
    –                        complete  an older one  Ended, unless it was killed on the way down
    –                        –         an older one  Lost, interrupted
    –                        –         this manager  Lost: never started, or stopped meanwhile
"""

from dataclasses import dataclass
from signal import Signals

from sdqueue.core.events import Ended, Lost, Reattached
from sdqueue.core.results import RunEnd

Answer = Reattached | Ended | Lost

_DOWN = {("signal", "killed", 15), ("signal", "killed", 9), ("timeout", "killed", 9)}

RUNNING_STATES = frozenset({"activating", "active", "reloading", "deactivating"})


@dataclass(frozen=True, slots=True)
class UnitView:
    """A job's unit as its manager has it: ActiveState=, and its results where it has ended."""

    active: str
    unit_job: int = 0
    invocation: str = ""
    end: RunEnd | None = None


def witness_end(
    service_result: str,
    exit_code: str,
    exit_status: str,
    *,
    has_done_if: bool,
    is_whole: bool = True,
) -> RunEnd:
    """Read `$SERVICE_RESULT $EXIT_CODE $EXIT_STATUS`, where a signal has its name without SIG.

    A success that is not `is_whole` was stopped from outside: its process ended well because of it.
    """
    number = exit_status.isdigit()
    named = Signals.__members__.get(f"SIG{exit_status}")
    return RunEnd(
        job_result="canceled" if service_result == "success" and not is_whole else "",
        service_result=service_result,
        main_code=exit_code,
        main_status=int(exit_status) if number else int(named or 0),
        post_status=0 if service_result == "success" and has_done_if else None,
        has_done_if=has_done_if,
    )


def reconcile(
    name: str, unit: UnitView | None, witness: RunEnd | None, *, same_manager: bool
) -> Answer:
    """Say what became of one job in running/."""
    if unit and unit.active in RUNNING_STATES:
        return Reattached(name, unit.unit_job, unit.invocation)
    if unit and unit.end:
        return Ended(name, unit.end)
    if witness and (same_manager or not _killed_on_the_way_down(witness)):
        return Ended(name, witness)
    if not same_manager:
        return Lost(name, "the box or its service manager went down during the run", True)
    return Lost(name, "it has no unit and left no result: never started, or stopped", False)


def _killed_on_the_way_down(end: RunEnd) -> bool:
    """Say whether a run's end looks like a shutdown's: SIGTERM, and SIGKILL for what is deaf to it.

    For the deaf ones systemd says `timeout`, as it does where the wall clock ran out: in doubt the
    attempt is not spent.
    """
    stopped = end.job_result == "canceled"
    return stopped or (end.service_result, end.main_code, end.main_status) in _DOWN
