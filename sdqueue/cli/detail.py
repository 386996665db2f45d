"""One job, in full: its row, what its file says, its runs, the drop-ins of its unit."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence

from sdqueue.cli.output import STATE_COLOURS, Column, Style, paint_line, table
from sdqueue.cli.place import Place
from sdqueue.cli.records import records_of
from sdqueue.cli.rows import DIRECTORY_OF, Row
from sdqueue.cli.safe import safe
from sdqueue.cli.times import ago, span, stamp
from sdqueue.jobfile import parse, settings_of
from sdqueue.spool.scan import JobBytes, read_job

RUNS_SHOWN = 10
DETAIL_KEYS: dict[str, str] = {
    "file": "the job's file",
    "work": "its STATE_DIRECTORY",
    "settings": "the header as it counts, key → list of texts",
    "problems": "what is wrong with the file: list of {line, severity, message}",
    "dropins": "drop-in files that apply to its unit, and win over what the header says",
    "runs": "the records of its runs, the last one last",
}
"""What `show --json` gives beside the keys of `core.keys.JOB_KEYS`."""

_RUN_COLUMNS = (
    Column("RUN", "run", right=True),
    Column("ATTEMPT", "attempt", right=True),
    Column("BEGAN", "start"),
    Column("TOOK", "took"),
    Column("OUTCOME", "outcome"),
    Column("RC", "rc", optional=True, right=True),
    Column("VERIFIED", "verified", optional=True),
    Column("RESULT", "result", optional=True),
    Column("NOTE", "note", optional=True, flexible=True),
)


def detailed(place: Place, row: Row) -> Row:
    """Return a job's row with DETAIL_KEYS added."""
    name, state = str(row["name"]), str(row["state"])
    settings, problems = _file(place, name, state)
    return {
        **row,
        "file": place.spool.job_file(DIRECTORY_OF[state], name),
        "work": place.spool.work_dir(name),
        "settings": settings,
        "problems": problems,
        "dropins": dropins(place, str(row["unit"])),
        "runs": list(records_of(place.spool, name)),
    }


def _file(place: Place, name: str, state: str) -> tuple[dict[str, list[str]], list[Row]]:
    read = read_job(place.spool, DIRECTORY_OF[state], name)
    if not isinstance(read, JobBytes):
        message = read.message if read else "it has gone"
        return {}, [{"line": 0, "severity": "error", "message": message}]
    found = parse(
        name, read.data, lanes=place.config.lanes, uid=read.uid, now_sec=read.mtime_ns / 1e9
    )
    settings: dict[str, list[str]] = {}
    for key, text in settings_of(found.spec) if found.spec else ():
        settings.setdefault(key, []).append(text)
    problems: list[Row] = [
        {"line": each.line, "severity": each.severity, "message": each.message}
        for each in found.problems
    ]
    return settings, problems


def dropins(place: Place, unit: str) -> list[str]:
    """Return the drop-ins that the manager would lay over a job's unit, in their order."""
    names: dict[str, str] = {}
    for directory in (f"{base}/{name}.d" for base in _unit_path(place) for name in _levels(unit)):
        try:
            files = os.listdir(directory)
        except OSError:
            continue
        for file in files:
            if file.endswith(".conf"):
                names.setdefault(file, f"{directory}/{file}")
    return [names[file] for file in sorted(names)]


def _levels(unit: str) -> list[str]:
    """Name what a unit's drop-ins may be filed under: itself, each dash before it, its type."""
    stem, dot, kind = unit.rpartition(".")
    cuts = [at for at, letter in enumerate(stem) if letter == "-"]
    return [unit, *(f"{stem[: at + 1]}{dot}{kind}" for at in reversed(cuts)), kind]


def _unit_path(place: Place) -> tuple[str, ...]:
    if place.system:
        return ("/etc/systemd/system", "/run/systemd/system", *_vendor("system"))
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    data = os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share"
    return (
        f"{config}/systemd/user",
        "/etc/systemd/user",
        f"{runtime}/systemd/user",
        "/run/systemd/user",
        f"{data}/systemd/user",
        *_vendor("user"),
    )


def _vendor(kind: str) -> tuple[str, ...]:
    return (f"/usr/local/lib/systemd/{kind}", f"/usr/lib/systemd/{kind}")


# As text ----------------------------------------------------------------------------------------


def lines_of(job: Row, *, style: Style | None) -> list[str]:
    """Return the lines that show a detailed job."""
    now_sec = time.time()
    description = f" - {job['description']}" if job["description"] else ""
    state = str(job["state"])
    lines = [paint_line(safe(f"● {job['name']}{description}"), STATE_COLOURS.get(state, ""), style)]
    facts = [(head, text) for head, text in _facts(job, now_sec) if text]
    lines += [f"{head:>12}: {safe(text)}" for head, text in facts]
    return lines + _run_lines(job, now_sec, style)


def _facts(job: Row, now_sec: float) -> Iterator[tuple[str, str]]:
    since = stamp(job["since"])
    yield "State", f"{job['state']} since {since}; {ago(job['since'], now_sec)}"
    yield "Lane", str(job["lane"])
    yield from _reason_facts(job["reason"], now_sec)
    yield "Attempt", f"{job['attempt']} of {job['attempts_max']}"
    if job["rc"] is not None or job["verified"] is not None:
        verified = {True: ", DONE_IF holds", False: ", DONE_IF does not hold"}
        yield "Last run", f"exit status {job['rc']}{verified.get(job['verified'], '')}"  # type: ignore[call-overload]
    yield "Unit", str(job["unit"])
    yield "File", str(job["file"])
    for each in _list(job["dropins"]):
        yield "Drop-in", str(each)
    for problem in _list(job["problems"]):
        place = f"line {problem['line']}: " if problem["line"] else ""
        yield str(problem["severity"]).capitalize(), f"{place}{problem['message']}"
    settings = job["settings"]
    for key, texts in settings.items() if isinstance(settings, dict) else ():
        if key not in ("LANE", "DESCRIPTION"):
            yield from ((key, text) for text in texts)


def _reason_facts(reason: object, now_sec: float) -> Iterator[tuple[str, str]]:
    if not isinstance(reason, Mapping):
        return
    yield "Waits", f"{reason['code']}: {reason['detail'] or reason['blocker']}"
    if reason.get("since"):
        yield "Since", ago(reason["since"], now_sec)
    if reason.get("until"):
        yield "Until", f"{stamp(reason['until'])}; {ago(reason['until'], now_sec)}"


def _list(value: object) -> Sequence[Row]:
    return value if isinstance(value, list) else []


def _run_lines(job: Row, now_sec: float, style: Style | None) -> list[str]:
    records = _list(job["runs"])
    if not records:
        return []
    rows = [_run_cells(record, now_sec) for record in records[-RUNS_SHOWN:]]
    earlier = len(records) - len(rows)
    more = [f"({earlier} earlier runs are in --json=pretty)"] if earlier else []
    return ["", *table(_RUN_COLUMNS, rows, paint=style), *more]


def _run_cells(record: Row, now_sec: float) -> dict[str, str]:
    start, end = record.get("start"), record.get("end")
    took = ""
    if isinstance(start, int | float) and isinstance(end, int | float):
        took = span(max(0.0, end - start)) or "0"
    result = record.get("result")
    return {
        "run": str(record.get("run", "")),
        "attempt": str(record.get("attempt", "")),
        "start": f"{stamp(start)}; {ago(start, now_sec)}" if start else "",
        "took": took,
        "outcome": str(record.get("outcome") or "-"),
        "rc": "" if record.get("rc") is None else str(record["rc"]),
        "verified": {True: "yes", False: "no"}.get(record.get("verified"), ""),  # type: ignore[call-overload]
        "result": "" if result in (None, "success") else str(result),
        "note": str(record.get("note") or ""),
    }
