"""`runs/JOB/N/`: the N-th run's snapshot, record and witness; and `work/JOB`.

A run directory belongs to the job's owner, since the run writes its own end into it. So whatever
is read here is read as a stranger's: links are not followed, FIFOs not waited on, sizes limited.
Nothing is written into it, once it is handed over, but by rename.
"""

import errno
import json
import os
import shutil
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sdqueue.jobtext import HEADER_MAX_BYTES, snapshot_of
from sdqueue.spool.files import discard, read_small, replace, sync_dir, telling, write_new
from sdqueue.spool.layout import Spool, make_dir
from sdqueue.spool.moves import set_aside
from sdqueue.spool.scan import read_whole
from sdqueue.words.errors import NoSuchJob, SpoolError

Owner = tuple[int, int]
SCRIPT, DONE_IF, RECORD = "script", "done_if", "run.json"
WITNESS, WHOLE = "exit", "whole"
RECORD_MAX_BYTES = 1 << 20
_RUN_DIR_MODE = 0o700
_HEX = frozenset("0123456789abcdef-")


class Run(NamedTuple):
    """A new run: its number, directory, and the snapshot that it executes."""

    number: int
    directory: str
    script_file: str


class Witness(NamedTuple):
    """What the unit wrote of its own end: systemd's words, and in which boot it was.

    `exit_code` is `exited`, `killed` or `dumped`, `exit_status` a number or a signal's name; both
    are empty where no process was started.
    """

    service_result: str
    exit_code: str
    exit_status: str
    invocation_id: str
    boot_id: str


def _nothing(_number: int) -> Mapping[str, bytes]:
    return {}


def create_run(
    spool: Spool,
    job: str,
    state: str,
    *,
    uid: int | None = None,
    owner: Owner | None = None,
    beside: Callable[[int], Mapping[str, bytes]] = _nothing,
) -> Run:
    """Make the directory of the job's next run, with a snapshot of its file in `state`.

    `beside` says, from the run's number, which other files are to be there. Nothing is synced:
    after a power cut the run is done again. Raises NoSuchJob if the file has gone or is not of user
    `uid`, SpoolError if it can't be read.
    """
    found = read_whole(spool, state, job)
    if uid not in (None, found.uid):
        raise NoSuchJob(f"{job} in {state}/ belongs to uid {found.uid} now: it is another file.")
    number, directory = _next_run_dir(spool, job)
    script = f"{directory}/{SCRIPT}"
    with telling("write", script):
        write_new(script, snapshot_of(found.data), owner=owner, sync=False)
        for name, data in beside(number).items():
            write_new(f"{directory}/{name}", data, owner=owner, sync=False)
        if owner is not None:
            os.chown(directory, *owner, follow_symlinks=False)
    return Run(number, directory, script)


def _next_run_dir(spool: Spool, job: str) -> tuple[int, str]:
    parent = spool.runs_dir(job)
    with telling("make a run directory in", parent):
        try:
            make_dir(parent, spool.mode_of("runs"))
        except FileExistsError:
            pass
        number = max(runs(spool, job), default=0) + 1
        while True:
            try:
                make_dir(f"{parent}/{number}", _RUN_DIR_MODE)
            except FileExistsError:
                number += 1
            else:
                return number, f"{parent}/{number}"


def runs(spool: Spool, job: str) -> list[int]:
    """Return the numbers of the job's runs, in order."""
    directory = spool.runs_dir(job)
    with telling("list", directory):
        try:
            found = os.listdir(directory)
        except FileNotFoundError:
            return []
    return sorted(int(name) for name in found if name.isascii() and name.isdecimal())


def is_whole(spool: Spool, job: str, number: int) -> bool:
    """Say whether the unit came to its end by itself, as it says with a file of its own."""
    with telling("look at", spool.run_dir(job, number)):
        return os.path.lexists(f"{spool.run_dir(job, number)}/{WHOLE}")


def ensure_run_dir(spool: Spool, job: str, number: int) -> None:
    """Make a run's directory again where somebody removed it: its end must have a place."""
    modes = {spool.runs_dir(job): spool.mode_of("runs")}
    for directory, mode in {**modes, spool.run_dir(job, number): _RUN_DIR_MODE}.items():
        with telling("make the directory", directory):
            try:
                make_dir(directory, mode)
            except FileExistsError:
                continue


def write_record(
    spool: Spool, job: str, number: int, record: Mapping[str, object], *, durable: bool
) -> None:
    """Write run.json; with `durable` it and the directories above it are on disk at the return."""
    directory = spool.run_dir(job, number)
    data = json.dumps(record, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"
    # Readable for the job's owner, to whom the directory belongs and the file does not.
    replace(f"{directory}/{RECORD}", data, spool.aside_dir, mode=0o644, sync=durable)
    if durable:
        with telling("sync", directory):
            # Rarely anything to do: the sync above took the new directories along.
            sync_dir(spool.runs_dir(job))
            sync_dir(os.path.dirname(spool.runs_dir(job)))


def read_snapshot(spool: Spool, job: str, number: int) -> bytes | None:
    """Return the head of the script that a run executes, None where there is none to be read."""
    return _read(spool, job, number, SCRIPT, HEADER_MAX_BYTES)


def read_record(spool: Spool, job: str, number: int) -> dict[str, object] | None:
    """Return run.json's content, or None where there is none, a torn one, or another's file."""
    data = _read(spool, job, number, RECORD, RECORD_MAX_BYTES)
    try:
        record = json.loads(data or b"null")
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def read_witness(spool: Spool, job: str, number: int) -> Witness | None:
    """Return what the unit wrote of its end; None if nothing, a torn line, or another's file."""
    data = _read(spool, job, number, WITNESS, 4096)
    return parse_witness(data) if data else None


def _read(spool: Spool, job: str, number: int, file: str, limit: int) -> bytes | None:
    """Read a file of a run; a link, a FIFO or a directory is as good as none: the job's doing."""
    try:
        return read_small(f"{spool.run_dir(job, number)}/{file}", limit)
    except SpoolError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NOT_THE_UNITS:
            return None
        raise


_NOT_THE_UNITS = (errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EISDIR)


def parse_witness(data: bytes) -> Witness | None:
    """Read the one line `SERVICE_RESULT EXIT_CODE EXIT_STATUS INVOCATION BOOT`."""
    line, newline, rest = data.partition(b"\n")
    words = line.decode("ascii", "replace").split(" ")
    if not newline or rest or len(words) != 5 or not words[0]:
        return None
    whole = all(len(word.replace("-", "")) == 32 and _HEX.issuperset(word) for word in words[3:])
    return Witness(*words) if whole else None


def work_dir(spool: Spool, job: str, *, owner: Owner | None = None) -> str:
    """Return the job's own directory, made where it is missing and kept across attempts.

    In system mode a job has nothing of another user's job of its name, who could lead it elsewhere
    by links: what that one left is kept beside.
    """
    directory = spool.work_dir(job)
    with telling("make the directory", directory):
        if spool.system:
            _keep_from(directory, owner[0] if owner else os.geteuid())
        try:
            os.mkdir(directory, 0o700)
        except FileExistsError:
            return directory
        if owner is not None:
            os.chown(directory, *owner, follow_symlinks=False)
    return directory


def _keep_from(directory: str, uid: int) -> None:
    """Rename a directory that is another user's."""
    try:
        if os.lstat(directory).st_uid == uid:
            return
    except FileNotFoundError:
        return
    set_aside(directory)


def forget_runs(spool: Spool, job: str) -> None:
    """Delete the job's runs and its work directory."""
    for directory in (spool.runs_dir(job), spool.work_dir(job)):
        with telling("remove", directory):
            if os.path.islink(directory):
                discard(directory)
            elif os.path.lexists(directory):
                shutil.rmtree(directory)
