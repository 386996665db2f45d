"""Config → the unit files of its lanes: a target and a slice each, as {relative path: text}.

Pure: who writes the files, and where, is for the generator or the controller. Nothing gets into a
text that could end its line: lane names and slice settings were read by `config`, and file names
are escaped here.
"""

from collections.abc import Iterable, Mapping, Sequence

from sdqueue.core.lane import Config, Lane
from sdqueue.words.names import (
    JOB_UNIT_PREFIX,
    JOB_UNIT_SUFFIX,
    slice_of_lane,
    target_of_lane,
    unit_of_job,
)

CONCURRENCY_SINCE = 258
"""The first systemd whose slices count their units."""
MANUAL = "man:sdqueue.toml(5)"
PARENT_SLICE = "sdqueue.slice"
_CALENDAR = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 *,.:/~+-_")


def generate(
    config: Config, *, systemd_version: int, sources: Sequence[str] = ()
) -> dict[str, str]:
    """Return the unit files of the lanes; `sources` are the files the configuration came from."""
    texts = {PARENT_SLICE: _parent_slice(sources)}
    for lane in config.lanes.values():
        texts[target_of_lane(lane.name)] = _target(lane, sources)
        texts[slice_of_lane(lane.name)] = _slice(lane, sources, systemd_version)
    return texts


def _target(lane: Lane, sources: Sequence[str]) -> str:
    """The lane as PID 1 knows it.

    A person must not start it by hand, which would stop the runs of an excluded lane, and isolate
    must not stop it. No StopWhenUnneeded=: the stop job it leaves gets in the way of the next run.
    No After= between targets: the jobs' units have it, and here it would be a cycle.
    """
    unit = [
        ("RefuseManualStart", "yes"),
        ("IgnoreOnIsolate", "yes"),
        *(("Conflicts", target_of_lane(other)) for other in sorted(lane.excludes)),
    ]
    return _unit(f"sdqueue lane {lane.name}", sources, unit)


def _slice(lane: Lane, sources: Sequence[str], systemd_version: int) -> str:
    settings = list(lane.slice_properties)
    if systemd_version >= CONCURRENCY_SINCE:
        settings.insert(0, ("ConcurrencyHardMax", str(lane.slots)))
    return _unit(f"sdqueue lane {lane.name}: its jobs", sources, (), Slice=settings)


def _parent_slice(sources: Sequence[str]) -> str:
    return _unit("sdqueue: the jobs of all lanes", sources, ())


def generate_timers(
    jobs: Iterable[tuple[str, str, str]], *, command: Sequence[str]
) -> dict[str, str]:
    """Return timer and service for (name, ON_CALENDAR, file) of each job in jobs.d/.

    `command` is `sdqueue` with the option that says whose queue is meant. A calendar with
    characters that no calendar has is left out, as is a file with an unprintable name; `check` says
    it to its owner.
    """
    texts: dict[str, str] = {}
    for name, calendar, file in jobs:
        if not calendar.strip() or not _CALENDAR.issuperset(calendar) or not file.isprintable():
            continue
        timer = timer_of_job(name)
        texts[timer] = _unit(
            f"Submit the job {_specifier(_printable(name))} on its calendar",
            (file,),
            (),
            Timer=[("OnCalendar", calendar), ("Persistent", "yes")],
        )
        line = " ".join(map(exec_word, (*command, "submit", "-f", file)))
        texts[timer.removesuffix(".timer") + ".service"] = _unit(
            f"Submit the job {_specifier(_printable(name))}",
            (file,),
            (),
            Service=[("Type", "oneshot"), ("ExecStart", line)],
        )
    return texts


def timer_of_job(name: str) -> str:
    """Return the name of the timer that submits the job."""
    job = unit_of_job(name).removeprefix(JOB_UNIT_PREFIX).removesuffix(JOB_UNIT_SUFFIX)
    return f"sdqueue-submit-{job}.timer"


def timer_links(texts: Mapping[str, str]) -> dict[str, str]:
    """Return {link: target}, relative, that enable the timers among the generated files."""
    timers = (path for path in texts if path.endswith(".timer"))
    return {f"timers.target.wants/{timer}": f"../{timer}" for timer in timers}


# Texts ------------------------------------------------------------------------------------------


def _unit(
    description: str,
    sources: Sequence[str],
    settings: Iterable[tuple[str, str]],
    **sections: Iterable[tuple[str, str]],
) -> str:
    lines = [f"# {_origin(sources)}", "", "[Unit]", f"Description={description}"]
    lines.append(f"Documentation={MANUAL}")
    if sources and sources[0].startswith("/") and sources[0].isprintable():
        lines.append(f"SourcePath={_specifier(sources[0])}")
    lines += (f"{key}={value}" for key, value in settings)
    for section, pairs in sections.items():
        assignments = [f"{key}={value}" for key, value in pairs]
        if assignments:
            lines += ["", f"[{section}]", *assignments]
    text = "\n".join(lines) + "\n"
    if any(not line.isprintable() for line in lines):
        raise ValueError(f"a setting of {description!r} does not end with its line")
    return text


def _origin(sources: Sequence[str]) -> str:
    files = ", ".join(map(_printable, sources)) or "the default lanes"
    return f"Made by sdqueue from {files}. Changes are overwritten."


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)


def _specifier(text: str) -> str:
    return text.replace("%", "%%")


def exec_word(word: str) -> str:
    """Quote a word for ExecStart=, with specifiers and variables doubled."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{_specifier(escaped)}"'
