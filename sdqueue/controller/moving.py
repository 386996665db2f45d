"""The steps of a job's file from one directory to the next, each safe to be killed in.

The order of writing within a step is what a crash depends on:

    claim     run directory → file to running/ (durable)
    settle    run.json (durable) → memory (durable) → file out of running/ (durable)

A step may be refused after its rename, when the disk will not sync it. Whoever calls it again then
gets what the first call would have given, once the rest is done: `Places.unsynced` remembers which
these are.
"""

import os
import shutil

from sdqueue.controller.context import owner_of, run_context
from sdqueue.controller.places import DIRECTORY_OF, Places, Unsynced
from sdqueue.controller.records import begin_record, finish_record, is_begun
from sdqueue.core import actions as act
from sdqueue.core.model import FORGET, JobState, Memory
from sdqueue.core.spec import JobSpec
from sdqueue.core.unit import done_if_text
from sdqueue.spool import meta, moves, runs
from sdqueue.words.errors import NoSuchJob


def claim(places: Places, spec: JobSpec, memory: Memory) -> int:
    """Make the next run's directory and move the file to running/; give the run's number.

    NoSuchJob if the file is gone. On an error nothing has changed, unless `is_moved` says so.
    """
    name = spec.name
    if is_moved(places, name):
        return _finish_move(places, name)
    _drop_unbegun(places, name)
    run = _make_run(places, spec, memory)
    try:
        runs.work_dir(places.spool, name, owner=owner_of(places, spec))
        begin_record(places, spec, memory, run)
        moves.rename(places.spool, name, "queue", "running")
    except BaseException:
        _drop_run(places, name, run)
        raise
    places.unsynced[name] = Unsynced("queue", "running", False, run)
    return _finish_move(places, name)


def _make_run(places: Places, spec: JobSpec, memory: Memory) -> int:
    """Make the directory of a job's next run, with all that its unit reads there."""

    def beside(number: int) -> dict[str, bytes]:
        if not spec.done_if:
            return {}
        text = done_if_text(spec, run_context(places, spec, memory.attempts + 1, number))
        return {runs.DONE_IF: text.encode("utf-8", "surrogateescape")}

    uid, owner = spec.uid if places.system else None, owner_of(places, spec)
    made = runs.create_run(places.spool, spec.name, "queue", uid=uid, owner=owner, beside=beside)
    return made.number


def _drop_unbegun(places: Places, name: str) -> None:
    """Remove the last run of a queued job if it never began: a controller was killed on it."""
    last = max(runs.runs(places.spool, name), default=0)
    if last and not is_begun(places, name, last):
        _drop_run(places, name, last)


def _drop_run(places: Places, name: str, run: int) -> None:
    shutil.rmtree(places.spool.run_dir(name, run), ignore_errors=True)


def unclaim(places: Places, name: str, run: int) -> None:
    """Take a claim back: the file to queue/, the run as if it had never been.

    Where the name was queued anew meanwhile, that file stands, and this one goes to failed/.
    """
    requeued = os.path.lexists(places.spool.job_file("queue", name))
    to = "failed" if requeued else "queue"
    try:
        if is_moved(places, name):
            _finish_move(places, name)
        else:
            _move(places, name, Unsynced("running", to, False, 0))
    except NoSuchJob:
        pass
    _drop_run(places, name, run)


def settle(places: Places, action: act.Settle) -> bool:
    """Write a run's end down: record, memory, file, each durable before the next.

    True if the name was queued anew meanwhile: then the new file stands.
    """
    name = action.name
    if is_moved(places, name):
        return bool(_finish_move(places, name))
    if action.run:
        finish_record(places, action)
    requeued = os.path.lexists(places.spool.job_file("queue", name))
    to = DIRECTORY_OF[action.to]
    if action.to is JobState.QUEUED and requeued:
        to = DIRECTORY_OF[JobState.FAILED]
    _remember(places, name, action.memory if to == "queue" else FORGET)
    try:
        return bool(_move(places, name, Unsynced("running", to, False, requeued)))
    except NoSuchJob:
        return requeued  # somebody removed it; the record stands


def _remember(places: Places, name: str, memory: Memory) -> None:
    if memory == FORGET:
        meta.drop(places.spool, name)
        return
    try:
        ino = os.stat(places.spool.job_file("running", name)).st_ino
    except OSError:
        ino = 0
    kept = meta.Meta(
        attempts=memory.attempts,
        interrupted=memory.interrupted,
        retry_sec=memory.retry_sec,
        ino=ino,
    )
    meta.save(places.spool, name, kept)


def leave(places: Places, name: str, to: JobState) -> bool:
    """Move a queued job out of the queue; False if its file was gone."""
    if is_moved(places, name):
        return bool(_finish_move(places, name))
    try:
        return bool(_move(places, name, Unsynced("queue", DIRECTORY_OF[to], True, True)))
    except NoSuchJob:
        return False


def is_moved(places: Places, name: str) -> bool:
    """Say whether a step was refused after its rename: it must be called until it succeeds."""
    return name in places.unsynced


def _move(places: Places, name: str, move: Unsynced) -> int:
    moves.rename(places.spool, name, move.source, move.target)
    places.unsynced[name] = move
    return _finish_move(places, name)


def _finish_move(places: Places, name: str) -> int:
    """Make a rename durable that was just made, or that the call before this one made."""
    move = places.unsynced[name]
    moves.sync_move(places.spool, move.source, move.target)
    if move.forget:
        meta.drop(places.spool, name)
    del places.unsynced[name]
    return move.result
