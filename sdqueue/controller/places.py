"""Everything of the controller that touches the spool, as steps that are safe to be killed between.

Synchronous: the controller calls these in threads. Knows where things are and in which order they
are written; what is to be written is decided elsewhere.
"""

import os
import pwd
import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from sdqueue.core import actions as act
from sdqueue.core.checks import CheckContext
from sdqueue.core.model import FORGET, JobState, Memory
from sdqueue.core.reconcile import witness_end
from sdqueue.core.results import RunEnd
from sdqueue.core.spec import JobSpec, Lane
from sdqueue.core.unit import WITNESS, RunContext, done_if_text
from sdqueue.jobfile import parse
from sdqueue.spool import meta, moves, runs, scan
from sdqueue.spool.files import read_small
from sdqueue.spool.files import replace as replace_file
from sdqueue.spool.layout import Spool, ensure
from sdqueue.words.errors import NoSuchJob, SpoolError
from sdqueue.words.problem import Problem

RECORD_SCHEMA = 1

DIRECTORY_OF: dict[JobState, str] = {
    JobState.RUNNING: "running",
    JobState.QUEUED: "queue",
    JobState.DONE: "done",
    JobState.FAILED: "failed",
    JobState.PARKED: "parked",
}
"""In the order of precedence: where one name lies in two directories, the first counts."""

STATE_OF = {directory: state for state, directory in DIRECTORY_OF.items()}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at one name found; `where` is None if it is nowhere any more.

    `identity` tells two contents of a queued file apart; `is_same`: it is the one that was known,
    and was not read again. `problem` holds what is wrong with the file, errors and warnings; with
    an error `spec` is None.
    """

    name: str
    where: JobState | None
    identity: tuple[int, ...] = ()
    spec: JobSpec | None = None
    problem: str = ""
    memory: Memory = FORGET
    run: int = 0
    started_sec: float = 0.0
    cancel_uid: int | None = None
    is_same: bool = False


@dataclass(frozen=True, slots=True)
class FoundRun:
    """What a run left on disk. `manager` names the boot and the service manager that it ran under,
    empty where that was lost."""

    number: int
    manager: str
    witness: runs.Witness | None
    is_whole: bool = True


class _Moved(NamedTuple):
    """A rename that was made and is not yet durable; `result` is what its step gives then."""

    source: str
    target: str
    forget: bool
    result: int


class Places:
    """The spool as the controller uses it. `lanes` are kept up to date by the controller.

    A step that moves a file may be refused after the rename. Whoever calls it again then gets what
    the first call would have given, once the rest is done: `_moved` remembers which these are.
    """

    def __init__(self, spool: Spool, lanes: Mapping[str, Lane]) -> None:
        self.spool = spool
        self.system = spool.system
        self.lanes = lanes
        self.boot = ""
        self.manager = ""
        self._moved: dict[str, _Moved] = {}
        self._witness_script = f"{spool.root}/witness"
        self._records = threading.Lock()

    # Looking

    def ensure(self) -> None:
        """Make the directories that are missing, and the script that every unit runs at its end."""
        ensure(self.spool)
        if read_small(self._witness_script) != WITNESS.encode():
            replace_file(self._witness_script, WITNESS.encode(), self.spool.aside_dir, mode=0o644)

    def mend(self) -> None:
        """Make missing directories, if that can be done, since a step was refused."""
        with suppress(SpoolError):
            self.ensure()

    def state_dirs(self) -> list[str]:
        """List the directories whose files are jobs."""
        return [self.spool.state_dir(directory) for directory in DIRECTORY_OF.values()]

    def list_names(self) -> dict[str, JobState]:
        """Say where each job lies; a name in two directories counts where it has precedence."""
        found: dict[str, JobState] = {}
        for state, directory in reversed(DIRECTORY_OF.items()):
            for entry in scan.scan(self.spool, directory):
                if entry.problem is None or entry.problem.severity == "error":
                    found[entry.name] = state
        return found

    def look(self, names: list[str], known: Mapping[str, tuple[int, ...]]) -> list[Seen]:
        """Look at each name; a queued file that is as in `known` is not read again."""
        return [self.look_at(name, known.get(name, ())) for name in names]

    def look_queued(self, names: list[str], known: Mapping[str, tuple[int, ...]]) -> list[Seen]:
        """Look at names that were just listed in queue/ and in no directory that counts more."""
        return [
            self._look_queued(name, known.get(name, ()))
            for name in names
            if not moves.is_being_written(self.spool, name, "queue")
        ]

    def look_running(self, names: list[str]) -> list[Seen]:
        """Look at names that have a file in running/, whether or not they are queued anew too."""
        return [self._look_running(name) for name in names]

    def look_at(self, name: str, known: tuple[int, ...] = ()) -> Seen:
        """Look at one name, wherever it lies."""
        for directory in moves.states_of(self.spool, name):
            where = STATE_OF[directory]
            if where is JobState.QUEUED and moves.is_being_written(self.spool, name, directory):
                continue  # inotify tells when it is closed; half a job must not run
            if where is JobState.QUEUED:
                return self._look_queued(name, known)
            return Seen(name, where)
        return Seen(name, None)

    def _look_queued(self, name: str, known: tuple[int, ...]) -> Seen:
        read = scan.read_job(self.spool, "queue", name)
        if read is None:
            return Seen(name, None)
        if isinstance(read, Problem):
            return Seen(name, JobState.QUEUED, (0,), None, str(read))
        identity = (read.ino, read.mtime_ns, read.size_bytes, read.uid)
        if identity == known:
            return Seen(name, JobState.QUEUED, identity, is_same=True)
        spec, problem = self._parse(name, "queue", read)
        # A bad name may be too long for a file of its own in meta/.
        memory = self._memory(name, read.ino) if spec else FORGET
        return Seen(name, JobState.QUEUED, identity, spec, problem, memory)

    def _look_running(self, name: str) -> Seen:
        """Look at a job that runs: what it is, its snapshot says, whatever became of its file."""
        number = max(runs.runs(self.spool, name), default=0)
        record = (runs.read_record(self.spool, name, number) if number else None) or {}
        read = scan.read_job(self.spool, "running", name)
        if not isinstance(read, scan.JobBytes):
            return Seen(name, JobState.RUNNING, (), None, str(read), run=number)
        snapshot = runs.read_snapshot(self.spool, name, number)
        if snapshot is not None:
            read = read._replace(data=snapshot)
        spec, problem = self._parse(name, "running", read, ran_in=str(record.get("lane", "")))
        return Seen(
            name,
            JobState.RUNNING,
            spec=spec,
            problem=problem,
            memory=_memory_at_start(self._memory(name, read.ino), record),
            run=number,
            started_sec=_time(record.get("start")),
            cancel_uid=_count(record.get("cancel_uid")),
        )

    def _parse(
        self, name: str, directory: str, read: scan.JobBytes, *, ran_in: str = ""
    ) -> tuple[JobSpec | None, str]:
        """Read a job file; `ran_in` is the lane that it runs in, configured or not any more."""
        lanes = {ran_in: Lane(ran_in), **self.lanes} if ran_in else self.lanes
        if self.system and not _is_user(read.uid):
            return None, f"its owner, uid {read.uid}, is no user of this machine"
        parsed = parse(
            name,
            read.data,
            lanes=lanes,
            file=f"{directory}/{name}.job",
            uid=read.uid,
            home=_home(read.uid),
            now_sec=read.mtime_ns / 1e9,
        )
        return parsed.spec, "; ".join(map(str, parsed.problems))

    def _memory(self, name: str, ino: int) -> Memory:
        """Read what is remembered of a job; of a file that was put back anew, nothing is."""
        found = meta.load(self.spool, name)
        if not isinstance(found, meta.Meta) or found.ino not in (0, ino):
            return FORGET
        return Memory(found.attempts, found.interrupted, found.retry_sec)

    # Starting

    def claim(self, spec: JobSpec, memory: Memory) -> int:
        """Make the next run's directory and move the file to running/; give the run's number.

        NoSuchJob if the file is gone. On an error nothing has changed, unless `is_moved` says so.
        """
        if spec.name in self._moved:
            return self._finish_move(spec.name)
        self._drop_unbegun(spec.name)
        owner = self._owner(spec)
        uid = spec.uid if self.system else None

        def beside(number: int) -> dict[str, bytes]:
            if not spec.done_if:
                return {}
            text = done_if_text(spec, self.context(spec, memory.attempts + 1, number))
            return {runs.DONE_IF: text.encode("utf-8", "surrogateescape")}

        run = runs.create_run(self.spool, spec.name, "queue", uid=uid, owner=owner, beside=beside)
        try:
            runs.work_dir(self.spool, spec.name, owner=owner)
            record = self._record(spec, memory, run.number)
            runs.write_record(self.spool, spec.name, run.number, record, durable=False)
            moves.rename(self.spool, spec.name, "queue", "running")
        except BaseException:
            self._drop_run(spec.name, run.number)
            raise
        return self._move(spec.name, _Moved("queue", "running", False, run.number))

    def _drop_unbegun(self, name: str) -> None:
        """Remove the last run of a queued job if it never began: a controller was killed on it."""
        last = max(runs.runs(self.spool, name), default=0)
        if last and not runs.read_witness(self.spool, name, last):
            record = runs.read_record(self.spool, name, last)
            if record is None or "outcome" not in record:
                self._drop_run(name, last)

    def is_moved(self, name: str) -> bool:
        """Say whether a step was refused after its rename: it must be called until it succeeds."""
        return name in self._moved

    def _move(self, name: str, moved: _Moved) -> int:
        """Make a rename durable that was just made, now or when the step is called again."""
        self._moved[name] = moved
        return self._finish_move(name)

    def _finish_move(self, name: str) -> int:
        moved = self._moved[name]
        moves.sync_move(self.spool, moved.source, moved.target)
        if moved.forget:
            meta.drop(self.spool, name)
        del self._moved[name]
        return moved.result

    def _record(self, spec: JobSpec, memory: Memory, number: int) -> dict[str, object]:
        return {
            "schema": RECORD_SCHEMA,
            "job": spec.name,
            "lane": spec.lane,
            "run": number,
            "attempt": memory.attempts + 1,
            "interrupted": memory.interrupted,
            "boot": self.boot,
            "manager": self.manager,
            "kernel": os.uname().release,
            "start": time.time(),
        }

    def unclaim(self, name: str, run: int) -> None:
        """Take a claim back: the file to queue/, the run as if it had never been.

        Where the name was queued anew meanwhile, that file stands, and this one goes to failed/.
        """
        requeued = os.path.lexists(self.spool.job_file("queue", name))
        to = "failed" if requeued else "queue"
        try:
            if name in self._moved:
                self._finish_move(name)
            else:
                moves.rename(self.spool, name, "running", to)
                self._move(name, _Moved("running", to, False, 0))
        except NoSuchJob:
            pass
        self._drop_run(name, run)

    def _drop_run(self, name: str, run: int) -> None:
        shutil.rmtree(self.spool.run_dir(name, run), ignore_errors=True)

    def context(self, spec: JobSpec, attempt: int, run: int) -> RunContext:
        """Say where and as whom a run happens."""
        directory = self.spool.run_dir(spec.name, run)
        return RunContext(
            attempt=attempt,
            script_file=f"{directory}/{runs.SCRIPT}",
            done_if_file=f"{directory}/{runs.DONE_IF}",
            witness_script=self._witness_script,
            record_file=f"{directory}/{runs.RECORD}",
            witness_file=f"{directory}/{runs.WITNESS}",
            whole_file=f"{directory}/{runs.WHOLE}",
            state_dir=self.spool.work_dir(spec.name),
            home_dir=_home(spec.uid),
            boot=self.boot,
            user=self.user_of(spec),
            system=self.system,
        )

    def check_context(self, spec: JobSpec, limit_sec: float) -> CheckContext:
        """Say where a job's checks happen."""
        state_dir = runs.work_dir(self.spool, spec.name, owner=self._owner(spec))
        return CheckContext(spec, _home(spec.uid), state_dir, limit_sec)

    def user_of(self, spec: JobSpec) -> str:
        """Name the user that a job runs as: its file's owner, in system mode only."""
        return str(spec.uid) if self.system and spec.uid else ""

    def _owner(self, spec: JobSpec) -> tuple[int, int] | None:
        if not self.system or not spec.uid:
            return None
        try:
            return (spec.uid, pwd.getpwuid(spec.uid).pw_gid)
        except KeyError:
            return (spec.uid, -1)  # removed meanwhile; PID 1 will say so

    # Ending

    def settle(self, action: act.Settle) -> bool:
        """Write a run's end down: record, memory, file, each durable before the next.

        True if the name was queued anew meanwhile: then the new file stands.
        """
        name = action.name
        if name in self._moved:
            return bool(self._finish_move(name))
        if action.run:
            self._finish_record(action)
        requeued = os.path.lexists(self.spool.job_file("queue", name))
        to = DIRECTORY_OF[action.to]
        if action.to is JobState.QUEUED and requeued:
            to = DIRECTORY_OF[JobState.FAILED]
        self._remember(name, action.memory if to == "queue" else FORGET)
        try:
            moves.rename(self.spool, name, "running", to)
        except NoSuchJob:
            return requeued  # somebody removed it; the record stands
        return bool(self._move(name, _Moved("running", to, False, requeued)))

    def note_cancel(self, name: str, run: int, uid: int) -> None:
        """Write down, durably, that somebody wants a run's end: a controller after this one must
        not take it for a failure."""
        with self._records:
            record = runs.read_record(self.spool, name, run)
            if record is not None and "outcome" not in record:
                record |= {"cancel_uid": uid}
                runs.write_record(self.spool, name, run, record, durable=True)

    def _finish_record(self, action: act.Settle) -> None:
        if not os.path.isdir(self.spool.run_dir(action.name, action.run)):
            runs.ensure_run_dir(self.spool, action.name, action.run)
        with self._records:
            record = self._finished_record(action)
            runs.write_record(self.spool, action.name, action.run, record, durable=True)

    def _finished_record(self, action: act.Settle) -> dict[str, object]:
        record = runs.read_record(self.spool, action.name, action.run) or {
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

    def _remember(self, name: str, memory: Memory) -> None:
        if memory == FORGET:
            meta.drop(self.spool, name)
            return
        try:
            ino = os.stat(self.spool.job_file("running", name)).st_ino
        except OSError:
            ino = 0
        kept = meta.Meta(
            attempts=memory.attempts,
            interrupted=memory.interrupted,
            retry_sec=memory.retry_sec,
            ino=ino,
        )
        meta.save(self.spool, name, kept)

    def leave(self, name: str, to: JobState) -> bool:
        """Move a queued job out of the queue; False if its file was gone."""
        if name in self._moved:
            return bool(self._finish_move(name))
        try:
            moves.rename(self.spool, name, "queue", DIRECTORY_OF[to])
        except NoSuchJob:
            return False
        return bool(self._move(name, _Moved("queue", DIRECTORY_OF[to], True, True)))

    # Recovering

    def find_run(self, name: str, number: int) -> FoundRun:
        """Read what a run left behind: whose it was, and its own word on its end."""
        record = runs.read_record(self.spool, name, number) if number else None
        witness = runs.read_witness(self.spool, name, number) if number else None
        is_whole = witness is not None and runs.is_whole(self.spool, name, number)
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


def _memory_at_start(memory: Memory, record: Mapping[str, object]) -> Memory:
    """Say what was remembered when a run began, by its record: what came of it may be in `memory`
    already."""
    attempt, interrupted = _count(record.get("attempt")), _count(record.get("interrupted"))
    return replace(
        memory,
        attempts=memory.attempts if attempt is None else max(0, attempt - 1),
        interrupted=memory.interrupted if interrupted is None else interrupted,
    )


def _count(value: object) -> int | None:
    # As large as D-Bus can tell it: a record lies where its job may write.
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31
    return value if is_count else None  # type: ignore[return-value]


def _time(value: object) -> float:
    return value if isinstance(value, float) and value > 0 else 0.0


def _is_user(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid))
    except KeyError:
        return False


@lru_cache(maxsize=256)
def _home(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"
