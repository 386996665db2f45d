"""A job file's bytes → JobSpec, and problems with file and line; and the way back.

Knows what the header means, with the table of `jobkeys`. Pure: the lanes, the owner and the time
from which `+2h` counts are parameters; whether files and units exist is asked by others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import tzinfo
from functools import lru_cache
from typing import Any

from sdqueue.core.spec import DiskNeed, JobSpec, Lane, MemoryNeed
from sdqueue.jobkeys import BY_NAME, KEYS, Key
from sdqueue.jobtext import HEADER_MAX_BYTES, Header, interpreter_argv, read_header, stray_lines
from sdqueue.words.names import did_you_mean, has_noncharacter, job_name_fault, second_word, shown
from sdqueue.words.problem import Problem, Severity

# Words in capitals that people put before a remark: no key was meant.
REMARKS = frozenset(
    (
        "AUTHOR",
        "BUG",
        "COPYRIGHT",
        "EXAMPLE",
        "FIXME",
        "HACK",
        "LICENSE",
        "NB",
        "NOTE",
        "NOTES",
        "SEE",
        "TODO",
        "USAGE",
        "WARNING",
        "XXX",
    )
)
_WRAP: dict[str, Any] = {"memory": MemoryNeed._make, "disk": DiskNeed._make}
_DEFAULTS = {
    field.name: field.default for field in fields(JobSpec) if field.name not in ("name", "lane")
}


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job file, read: `spec` is None exactly when one of the problems is an error."""

    spec: JobSpec | None
    problems: tuple[Problem, ...]


class _Reader:
    """What has been read of one file so far."""

    __slots__ = ("file", "lines", "now_sec", "problems", "values", "zone")

    def __init__(self, file: str, now_sec: float, zone: tzinfo | None) -> None:
        self.file = file
        self.now_sec = now_sec
        self.zone = zone
        self.values: dict[str, Any] = {}
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []

    def say(self, line: int, message: str, severity: Severity = "error") -> None:
        self.problems.append(Problem(self.file, line, message, severity))

    def take(self, line: int, raw_name: bytes, raw_value: bytes) -> None:
        """Read one header line into `values`, or say what is wrong with it."""
        name = raw_name.decode("ascii")
        key = BY_NAME.get(name)
        if key is None:
            self._unknown(line, name)
        elif key.field in self.values and not key.many:
            self.say(line, f"{name} is given twice, first in line {self.lines[key.field]}")
        else:
            self._take_value(line, key, raw_value)

    def _take_value(self, line: int, key: Key, raw_value: bytes) -> None:
        self.lines[key.field] = line
        try:
            text = raw_value.decode("utf-8")
            if not text.isprintable() and _CONTROL.intersection(text):
                raise ValueError("it has a control character in it")
            if has_noncharacter(text):
                raise ValueError("it has a code point in it that is no character")
            value = key.value(text, now_sec=self.now_sec, zone=self.zone)
        except UnicodeDecodeError:
            self.say(line, f"{key.name}: it is not valid UTF-8")
        except ValueError as error:
            self.say(line, f"{key.name}: {error}")
        else:
            self._store(key, value)

    def _store(self, key: Key, value: Any) -> None:
        if key.many:
            value = self.values.get(key.field, ()) + value
        elif key.field in _WRAP:
            value = _WRAP[key.field](value)
        self.values[key.field] = value

    def _unknown(self, line: int, name: str) -> None:
        if name.upper() in BY_NAME:
            self.say(
                line,
                f"{name}: keys are written in capitals; did you mean {name.upper()}?",
                "warning",
            )
        elif name.isupper() and name not in REMARKS:
            near = did_you_mean(name, list(BY_NAME))
            self.say(line, f"{name}: there is no such key, the line is a remark{near}", "warning")


_CONTROL = frozenset(map(chr, (*range(9), *range(10, 0x20), 0x7F)))


def parse(
    name: str,
    data: bytes,
    *,
    lanes: Mapping[str, Lane],
    file: str = "",
    uid: int = 0,
    home: str = "",
    now_sec: float = 0.0,
    zone: tzinfo | None = None,
) -> JobFile:
    """Read a job file; `data` is the whole file or at least its first HEADER_MAX_BYTES.

    `file` stands in the problems; relative times count from `now_sec`, best the file's mtime;
    `~` in paths becomes `home`, the owner's, where that is known.
    Never raises: what is wrong is in the problems.
    """
    reader = _Reader(file or f"{name}.job", now_sec, zone)
    header = read_header(data[:HEADER_MAX_BYTES])
    fault = job_name_fault(name)
    if fault:
        reader.say(0, f"{shown(name)} can't be a job's name: {fault}")
    for line in header.lines:
        reader.take(*line)
    _look_around(reader, data, header)
    lane = _lane_of(reader, name, lanes)
    interpreter = _interpreter(reader, header.interpreter)
    if lane is None or any(problem.severity == "error" for problem in reader.problems):
        return JobFile(None, tuple(reader.problems))
    values = {**_lane_values(lane), **reader.values, "lane": lane.name, "uid": uid}
    if home:
        _expand(values, home)
    spec = JobSpec(name=name, interpreter=interpreter, **values)
    return JobFile(spec, tuple(reader.problems))


def _expand(values: dict[str, Any], home: str) -> None:
    """Put the home directory in the place of `~` in every value that is a path."""
    for field, path_of, with_path in _PATHS:
        value = values.get(field)
        if value and (path := path_of(value)).startswith("~") and path[1:2] in ("", "/"):
            values[field] = with_path(value, home + path[1:])


_PATHS: tuple[tuple[str, Callable[[Any], str], Callable[[Any, str], Any]], ...] = (
    ("cwd", str, lambda _, path: path),
    ("disk", lambda need: need.file, lambda need, path: need._replace(file=path)),
    (
        "memory",
        lambda need: need.size_of_file,
        lambda need, path: need._replace(size_of_file=path),
    ),
)


def _look_around(reader: _Reader, data: bytes, header: Header) -> None:
    """Say what is wrong with what the header is not, or not any more."""
    if header.end >= HEADER_MAX_BYTES:
        reader.say(0, f"the header is longer than {HEADER_MAX_BYTES // 1024} KiB")
    elif not data.strip():
        reader.say(0, "the file is empty: there is nothing to run", "warning")
    for line, raw_name in stray_lines(data[:HEADER_MAX_BYTES], header):
        name = raw_name.decode("ascii")
        if name in BY_NAME:
            last = header.next_line - 1
            reader.say(line, f"{name} does not count: the header ended in line {last}", "warning")


def _lane_of(reader: _Reader, name: str, lanes: Mapping[str, Lane]) -> Lane | None:
    """Return the lane that LANE names, else that of the name's second word; say why if none."""
    if "lane" in reader.lines:
        wanted = reader.values.get("lane")
        lane = lanes.get(wanted) if wanted else None
        if wanted and lane is None:
            reader.say(reader.lines["lane"], _no_lane(f"LANE: there is no lane {wanted}", lanes))
        return lane
    word = second_word(name)
    lane = lanes.get(word)
    if lane is None:
        also = f", and the name's second word ({shown(word)}) is no lane" if word else ""
        reader.say(1, _no_lane(f"there is no LANE{also}", lanes))
    return lane


def _no_lane(what: str, lanes: Mapping[str, Lane]) -> str:
    return f"{what}; the lanes are {', '.join(lanes) or 'none'}"


def _interpreter(reader: _Reader, line: bytes) -> tuple[str, ...]:
    argv = interpreter_argv(line)
    if not argv[0].startswith("/") or any("\0" in word for word in argv):
        reader.say(1, f"the interpreter {shown(argv[0])} must be an absolute path")
    elif any("\udc80" <= character <= "\udcff" for word in argv for character in word):
        reader.say(1, "the interpreter's path is not valid UTF-8")
    elif any(map(has_noncharacter, argv)):
        reader.say(1, "the interpreter's path has a code point in it that is no character")
    return argv


@lru_cache(maxsize=128)
def _lane_values(lane: Lane) -> dict[str, Any]:
    """Return the fields that the lane sets where a header is silent."""
    reader = _Reader("", 0.0, None)
    reader.values = {
        field: units
        for field, units in (("on_success", lane.on_success), ("on_failure", lane.on_failure))
        if units
    }
    given = {key for key, _ in lane.job_defaults}
    for key in KEYS:
        if key.name in given and key.many:
            reader.values.pop(key.field, None)
    for name, text in lane.job_defaults:
        reader.take(0, name.encode(), text.encode())
    return reader.values


def settings_of(spec: JobSpec) -> list[tuple[str, str]]:
    """Return the header lines, (key, text), that say what `spec` says and defaults do not."""
    lines = [("LANE", spec.lane)]
    for key in KEYS:
        value = getattr(spec, key.field)
        if key.field != "lane" and value != _DEFAULTS[key.field]:
            lines += [(key.name, text) for text in key.lines(value)]
    return lines
