"""Looking at the spool: which job lies where, what its file says, what is remembered of it.

Nothing is changed here, and nothing that lies in a directory stops a look: a file that can't be
read, or whose name no job can have, is told as it is.
"""

import pwd
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sdqueue.controller.context import home_of
from sdqueue.controller.places import DIRECTORY_OF, STATE_OF, Places
from sdqueue.core.model import FORGET, JobState, Memory
from sdqueue.core.spec import JobSpec, Lane
from sdqueue.jobfile import parse
from sdqueue.spool import meta, moves, runs, scan
from sdqueue.words.problem import Problem


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


def list_names(places: Places) -> dict[str, JobState]:
    """Say where each job lies; a name in two directories counts where it has precedence."""
    found: dict[str, JobState] = {}
    for state, directory in reversed(DIRECTORY_OF.items()):
        for entry in scan.scan(places.spool, directory):
            if entry.problem is None or entry.problem.severity == "error":
                found[entry.name] = state
    return found


def look(places: Places, names: list[str], known: Mapping[str, tuple[int, ...]]) -> list[Seen]:
    """Look at each name, wherever it lies; a queued file that is as in `known` is not read."""
    return [_look(places, name, known.get(name, ())) for name in names]


def look_queued(
    places: Places, names: list[str], known: Mapping[str, tuple[int, ...]]
) -> list[Seen]:
    """Look at names that were just listed in queue/ and in no directory that counts more."""
    return [
        _look_queued(places, name, known.get(name, ()))
        for name in names
        if not moves.is_being_written(places.spool, name, "queue")
    ]


def look_running(places: Places, names: list[str]) -> list[Seen]:
    """Look at names that have a file in running/, whether or not they are queued anew too."""
    return [_look_running(places, name) for name in names]


def _look(places: Places, name: str, known: tuple[int, ...]) -> Seen:
    for directory in moves.states_of(places.spool, name):
        where = STATE_OF[directory]
        if where is JobState.QUEUED and moves.is_being_written(places.spool, name, directory):
            continue  # inotify tells when it is closed; half a job must not run
        if where is JobState.QUEUED:
            return _look_queued(places, name, known)
        return Seen(name, where)
    return Seen(name, None)


def _look_queued(places: Places, name: str, known: tuple[int, ...]) -> Seen:
    read = scan.read_job(places.spool, "queue", name)
    if read is None:
        return Seen(name, None)
    if isinstance(read, Problem):
        return Seen(name, JobState.QUEUED, (0,), None, str(read))
    identity = (read.ino, read.mtime_ns, read.size_bytes, read.uid)
    if identity == known:
        return Seen(name, JobState.QUEUED, identity, is_same=True)
    spec, problem = _parse(places, name, "queue", read)
    # A bad name may be too long for a file of its own in meta/.
    memory = _memory(places, name, read.ino) if spec else FORGET
    return Seen(name, JobState.QUEUED, identity, spec, problem, memory)


def _look_running(places: Places, name: str) -> Seen:
    """Look at a job that runs: what it is, its snapshot says, whatever became of its file."""
    spool = places.spool
    number = max(runs.runs(spool, name), default=0)
    record = (runs.read_record(spool, name, number) if number else None) or {}
    read = scan.read_job(spool, "running", name)
    if not isinstance(read, scan.JobBytes):
        return Seen(name, JobState.RUNNING, (), None, str(read), run=number)
    snapshot = runs.read_snapshot(spool, name, number)
    if snapshot is not None:
        read = read._replace(data=snapshot)
    spec, problem = _parse(places, name, "running", read, ran_in=str(record.get("lane", "")))
    return Seen(
        name,
        JobState.RUNNING,
        spec=spec,
        problem=problem,
        memory=_memory_at_start(_memory(places, name, read.ino), record),
        run=number,
        started_sec=_time(record.get("start")),
        cancel_uid=_count(record.get("cancel_uid")),
    )


def _parse(
    places: Places, name: str, directory: str, read: scan.JobBytes, *, ran_in: str = ""
) -> tuple[JobSpec | None, str]:
    """Read a job file; `ran_in` is the lane that it runs in, configured or not any more."""
    lanes = {ran_in: Lane(ran_in), **places.lanes} if ran_in else places.lanes
    if places.system and not _is_user(read.uid):
        return None, f"its owner, uid {read.uid}, is no user of this machine"
    parsed = parse(
        name,
        read.data,
        lanes=lanes,
        file=f"{directory}/{name}.job",
        uid=read.uid,
        home=home_of(read.uid),
        now_sec=read.mtime_ns / 1e9,
    )
    return parsed.spec, "; ".join(map(str, parsed.problems))


def _memory(places: Places, name: str, ino: int) -> Memory:
    """Read what is remembered of a job; of a file that was put back anew, nothing is."""
    found = meta.load(places.spool, name)
    if not isinstance(found, meta.Meta) or found.ino not in (0, ino):
        return FORGET
    return Memory(found.attempts, found.interrupted, found.retry_sec)


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
