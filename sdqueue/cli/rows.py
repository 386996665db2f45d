"""Jobs as rows, from files alone, and completed by the controller where it is there.

A row has the keys of `core.keys.JOB_KEYS`, whoever made it. What files say is quick to read and
survives everything; why a queued job waits is known to the controller alone.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from sdqueue.cli.place import Place
from sdqueue.cli.records import last_record
from sdqueue.core.keys import JOB_KEYS
from sdqueue.core.model import Code, JobState
from sdqueue.jobtext import read_header
from sdqueue.spool import meta
from sdqueue.spool.layout import Spool
from sdqueue.spool.scan import JobBytes, read_job
from sdqueue.words.errors import NoSuchJob, SpoolError
from sdqueue.words.names import SUFFIX, job_name_fault, second_word, shown, sort_key, unit_of_job

Row = dict[str, object]
Wanted = Callable[[str], bool]

DIRECTORY_OF: dict[str, str] = {
    JobState.RUNNING: "running",
    JobState.QUEUED: "queue",
    JobState.PARKED: "parked",
    JobState.FAILED: "failed",
    JobState.DONE: "done",
}
"""States in the order in which they are listed, and where their files are."""

NO_CONTROLLER, NO_ANSWER, NEW = "no-controller", "no-answer", "new"
CLIENT_CODES: dict[str, str] = {
    NO_CONTROLLER: "no controller is running, so nothing starts",
    NO_ANSWER: "a controller has the spool, but does not answer on this bus (yet)",
    NEW: "the controller has not read its file yet",
}
"""Reasons that only the command line gives, beside those of `core.model.CODE_HELP`."""

_HEAD_BYTES = 4096
_GLOB = frozenset("*?[")


def matcher(patterns: Sequence[str]) -> Wanted:
    """Return a test for names that fit one of the patterns; all names fit none."""
    plain = [pattern.removesuffix(SUFFIX) for pattern in patterns]
    if not plain:
        return lambda _name: True
    exact = frozenset(plain)
    globs = [pattern for pattern in plain if _GLOB.intersection(pattern)]
    if not globs:
        return exact.__contains__
    return lambda name: name in exact or any(fnmatchcase(name, glob) for glob in globs)


def expand(place: Place, patterns: Sequence[str], states: Iterable[str]) -> list[str]:
    """Return the names of jobs in those states that the patterns mean, in their order.

    Raise NoSuchJob for a plain name, or a pattern, that means none.
    """
    return _fitting({name for state in states for name in list_names(place.spool, state)}, patterns)


def expand_told(place: Place, patterns: Sequence[str]) -> list[str]:
    """Do the same for queued and running jobs by the controller's word, for who can't read files.

    Without a glob no more is asked than what is named: a stranger is not told of all of many jobs.
    """
    from sdqueue.cli.client import ask

    plain = [pattern.removesuffix(SUFFIX) for pattern in patterns]
    wanted = [] if any(map(_GLOB.intersection, plain)) else plain
    told = ask(place, lambda client: client.list_jobs(wanted))
    return _fitting((str(row["name"]) for row in told), patterns)


def _fitting(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    names = sorted(names, key=sort_key)
    found: dict[str, None] = {}
    for pattern in patterns:
        fits = [name for name in names if matcher([pattern])(name)]
        if not fits:
            raise NoSuchJob(_no_match(pattern, names))
        found.update(dict.fromkeys(fits))
    return list(found)


def _no_match(pattern: str, names: Sequence[str]) -> str:
    from sdqueue.words.names import did_you_mean

    name = pattern.removesuffix(SUFFIX)
    if _GLOB.intersection(name):
        return f"no such job fits {shown(name)}."
    near = did_you_mean(name, names[:10_000]) if job_name_fault(name) is None else ""
    return f"there is no such job as {shown(name)}{near or '.'}"


def list_names(spool: Spool, state: str) -> list[str]:
    """Return the names of the jobs in a state, in no order; quick."""
    try:
        files = os.listdir(spool.state_dir(DIRECTORY_OF[state]))
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise SpoolError(f"{error.filename} can't be read: the queue is another user's.") from None
    return [file[: -len(SUFFIX)] for file in files if file.endswith(SUFFIX)]


def count(spool: Spool) -> dict[str, int]:
    """Count the jobs in each state."""
    return {str(state): len(list_names(spool, state)) for state in DIRECTORY_OF}


def file_rows(
    place: Place, *, states: Iterable[str] = tuple(DIRECTORY_OF), wanted: Wanted
) -> list[Row]:
    """Return the rows of wanted jobs, from files, in the order in which to list them."""
    reader = _Reader(place)
    found: list[Row] = []
    for state in states:
        names = sorted(filter(wanted, list_names(place.spool, state)), key=sort_key)
        found += filter(None, (reader.row(name, state) for name in names))
    return found


class _Reader:
    """Reads rows; what all of them need is looked up once."""

    def __init__(self, place: Place) -> None:
        self._spool = place.spool
        self._lanes = place.config.lanes
        self._remembered = frozenset(_listed(place.spool.meta_dir))
        self._ran = frozenset(_listed(f"{place.spool.root}/runs"))
        self._defaults = {lane.name: dict(lane.job_defaults) for lane in self._lanes.values()}

    def row(self, name: str, state: str) -> Row | None:
        """Return the row of one job file, None if it has gone since it was listed."""
        head = self._head(name, state)
        if head is None:
            return None
        trouble = head if isinstance(head, str) else ""
        head = {} if isinstance(head, str) else head
        lane = head.get("LANE") or second_word(name)
        lane = lane if lane in self._lanes else head.get("LANE", "")
        retries = head.get("RETRIES") or self._defaults.get(lane, {}).get("RETRIES") or "3"
        record = last_record(self._spool, name) if name in self._ran else {}
        row: Row = dict.fromkeys(JOB_KEYS)
        row |= {
            "name": name,
            "lane": lane,
            "state": str(state),
            "reason": no_controller() if state == JobState.QUEUED else None,
            "attempt": self._attempt(name, state, record),
            "attempts_max": int(retries) if retries.isdecimal() and len(retries) < 8 else None,
            "rc": record.get("rc"),
            "verified": record.get("verified"),
            "unit": unit_of_job(name),
            "since": self._since(name, state, record),
            "run": record.get("run") or 0,
            "invocation": record.get("invocation") or "",
            "description": trouble or head.get("DESCRIPTION", ""),
        }
        return row

    def _head(self, name: str, state: str) -> dict[str, str] | str | None:
        """Return the header's texts of a job file, unchecked, since this is for thousands; or what
        is wrong with the file; None if it has gone."""
        fault = job_name_fault(name)
        if fault:
            return f"it can't be a job's name: {fault}"
        found = read_job(self._spool, DIRECTORY_OF[state], name, limit=_HEAD_BYTES)
        if not isinstance(found, JobBytes):
            return found.message if found else None
        return {
            key.decode("ascii"): value.decode("utf-8", "replace")
            for _, key, value in read_header(found.data).lines
        }

    def _attempt(self, name: str, state: str, record: Row) -> object:
        if state != JobState.QUEUED:
            return record.get("attempt") or 1
        kept = meta.load(self._spool, name) if f"{name}.json" in self._remembered else None
        return kept.attempts + 1 if isinstance(kept, meta.Meta) else 1

    def _since(self, name: str, state: str, record: Row) -> object:
        """Return since when the file is where it is: a rename changes its ctime."""
        started = record.get("start")
        if state == JobState.RUNNING and started:
            return started
        try:
            return os.lstat(self._spool.job_file(DIRECTORY_OF[state], name)).st_ctime
        except OSError:
            return None


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def texts(value: object) -> list[str]:
    """Return a row's value that is a list as texts; of anything else, none."""
    return [str(each) for each in value] if isinstance(value, list) else []


def no_controller() -> Row:
    """Return the reason of every queued job while no controller runs."""
    return _reason(NO_CONTROLLER)


def _reason(code: str) -> Row:
    return {
        "code": code,
        "detail": CLIENT_CODES[code],
        "blocker": "",
        "since": None,
        "until": None,
    }


def only_told(rows: Iterable[Row], states: Iterable[str], wanted: Wanted) -> list[Row]:
    """Return the wanted rows of those that the controller gave, for who can't read the files."""
    found: list[Row] = []
    for state in states:
        some = [row for row in rows if row["state"] == state and wanted(str(row["name"]))]
        some.sort(key=lambda row: sort_key(str(row["name"])))
        found += [row | {"reason": _whole_reason(row["reason"])} for row in some]
    return found


class Told(NamedTuple):
    """What the controller says of jobs: `rows`, and the head of each lane whose other jobs stand
    behind it and have no row."""

    rows: Sequence[Row]
    heads: Mapping[str, str] = {}


def completed(rows: list[Row], told: Told | None, place: Place) -> list[Row]:
    """Return the rows with what the controller told of them; `told` is None if nobody did."""
    if told is None and place.has_controller():
        return [row | {"reason": row["reason"] and _reason(NO_ANSWER)} for row in rows]
    if told is None:
        return rows
    known = {row["name"]: row for row in told.rows}
    return [_completed(row, known.get(row["name"]), told.heads) for row in rows]


def _completed(row: Row, told: Row | None, heads: Mapping[str, str]) -> Row:
    if row["state"] != JobState.QUEUED and row["state"] != JobState.RUNNING:
        return row
    if told is not None and told["state"] == row["state"]:
        return {**row, **told, "reason": _whole_reason(told["reason"])}
    if row["state"] == JobState.RUNNING:
        return row
    head = heads.get(str(row["lane"])) if told is None else None
    # Without either it changed between the two looks, or its file is new: the file counts.
    return row | {"reason": _behind(head, str(row["lane"])) if head else _reason(NEW)}


def _behind(head: str, lane: str) -> Row:
    """Return the reason of a job in line, as the controller would give it."""
    detail = f"{head} is before it in lane {lane}"
    return _whole({"code": str(Code.EARLIER_JOB), "detail": detail, "blocker": head})


def _whole_reason(reason: object) -> Row | None:
    """Return a reason with all its keys, since what does not apply was left out on the bus."""
    return _whole(reason) if isinstance(reason, dict) else None


def _whole(reason: Mapping[str, object]) -> Row:
    return {"code": "", "detail": "", "blocker": "", "since": None, "until": None, **reason}
