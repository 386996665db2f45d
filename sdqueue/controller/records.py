"""What is written down of a run: run.json, by the controller; the witness, by the unit itself."""

import os
import time
from dataclasses import dataclass

from sdqueue.controller.places import Places
from sdqueue.core import actions as act
from sdqueue.core.model import Memory
from sdqueue.core.reconcile import witness_end
from sdqueue.core.results import RunEnd
from sdqueue.core.spec import JobSpec
from sdqueue.spool import runs

RECORD_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class FoundRun:
    """What a run left on disk. `manager` names the boot and the service manager that it ran under,
    empty where that was lost."""

    number: int
    manager: str
    witness: runs.Witness | None
    is_whole: bool = True


def begin_record(places: Places, spec: JobSpec, memory: Memory, number: int) -> None:
    """Write down what is about to start; not durably, since the unit is not there yet."""
    record: dict[str, object] = {
        "schema": RECORD_SCHEMA,
        "job": spec.name,
        "lane": spec.lane,
        "run": number,
        "attempt": memory.attempts + 1,
        "interrupted": memory.interrupted,
        "boot": places.boot,
        "manager": places.manager,
        "kernel": os.uname().release,
        "start": time.time(),
    }
    runs.write_record(places.spool, spec.name, number, record, durable=False)


def is_begun(places: Places, name: str, number: int) -> bool:
    """Say whether a run of a queued job was more than a claim: it has ended one way or another."""
    if runs.read_witness(places.spool, name, number):
        return True
    record = runs.read_record(places.spool, name, number)
    return record is not None and "outcome" in record


def note_cancel(places: Places, name: str, run: int, uid: int) -> None:
    """Write down, durably, that somebody wants a run's end: a controller after this one must not
    take it for a failure."""
    with places.records:
        record = runs.read_record(places.spool, name, run)
        if record is not None and "outcome" not in record:
            record |= {"cancel_uid": uid}
            runs.write_record(places.spool, name, run, record, durable=True)


def finish_record(places: Places, action: act.Settle) -> None:
    """Write down, durably, what a run came to."""
    if not os.path.isdir(places.spool.run_dir(action.name, action.run)):
        runs.ensure_run_dir(places.spool, action.name, action.run)
    with places.records:
        record = _finished(places, action)
        runs.write_record(places.spool, action.name, action.run, record, durable=True)


def _finished(places: Places, action: act.Settle) -> dict[str, object]:
    record = runs.read_record(places.spool, action.name, action.run) or {
        "schema": RECORD_SCHEMA,
        "job": action.name,
        "run": action.run,
        "attempt": action.attempt,
    }
    record |= {"outcome": action.word, "note": action.note, "end": time.time()}
    if action.outcome and action.end:
        record |= {
            "rc": action.outcome.rc,
            "verified": action.outcome.verified,
            "result": action.end.service_result or action.end.job_result,
            "invocation": action.end.invocation,
            "end": action.end.ended_sec or time.time(),
        }
    return record


def find_run(places: Places, name: str, number: int) -> FoundRun:
    """Read what a run left behind: whose it was, and its own word on its end."""
    record = runs.read_record(places.spool, name, number) if number else None
    witness = runs.read_witness(places.spool, name, number) if number else None
    is_whole = witness is not None and runs.is_whole(places.spool, name, number)
    return FoundRun(number, str((record or {}).get("manager", "")), witness, is_whole)


def end_of(found: FoundRun, *, has_done_if: bool) -> RunEnd | None:
    """Read a witness as the end of a run; None where there is none."""
    if found.witness is None:
        return None
    return witness_end(
        found.witness.service_result,
        found.witness.exit_code,
        found.witness.exit_status,
        has_done_if=has_done_if,
        is_whole=found.is_whole,
    )
