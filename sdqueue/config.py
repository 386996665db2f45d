"""`sdqueue.toml` and its drop-ins → Config, and problems with file and line.

What each setting is stands in `settings`. Pure: the files' contents are parameters; what to do when
there is an error (keep the last good configuration) is for the caller.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sdqueue.core.lane import DEFAULT_LANES, Config, Lane
from sdqueue.jobkeys import key_named
from sdqueue.settings import (
    LANE_BY_KEY,
    LANE_KEYS,
    NOT_FOR_ALL,
    QUEUE_BY_KEY,
    SLOTS_MAX,
    SUBTABLES,
    TOP_KEYS,
    Setting,
)
from sdqueue.slicekeys import check_slice_setting
from sdqueue.words.names import did_you_mean, lane_name_fault, shown
from sdqueue.words.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sdqueue.tomlplaces import Places


class ConfigFile(NamedTuple):
    """A configuration, read. With an error among the problems `config` is the default lanes, for
    those who have nothing better: it must not replace one that is in force."""

    config: Config
    problems: tuple[Problem, ...]


class _Draft:
    """What the files said so far. `set_at` is the file in which each setting was said last.

    In which line is only looked for when there is something to say about it.
    """

    __slots__ = ("_places", "file", "lanes", "problems", "queue", "set_at", "texts")

    def __init__(self) -> None:
        self.queue: dict[str, Any] = {}
        self.lanes: dict[str, dict[str, Any]] = {
            lane.name: _settings_of(lane) for lane in DEFAULT_LANES
        }
        self.set_at: dict[tuple[str, ...], str] = {}
        self.problems: list[Problem] = []
        self.file = ""
        self.texts: dict[str, str] = {}
        self._places: dict[str, Places] = {}

    def say(self, path: tuple[str, ...], message: str) -> None:
        """Report an error in the present file, at the place of `path`."""
        self.problems.append(Problem(self.file, self._line_of(self.file, path), message))

    def say_late(self, path: tuple[str, ...], message: str) -> None:
        """Report an error that only the whole shows, where `path` was set last."""
        while path and path not in self.set_at:
            path = path[:-1]
        file = self.set_at.get(path, self.file)
        line = self._line_of(file, path) if path else 0
        self.problems.append(Problem(file, line, message))

    def _line_of(self, file: str, path: tuple[str, ...]) -> int:
        if file not in self._places:
            from sdqueue.tomlplaces import places_in

            self._places[file] = places_in(self.texts.get(file, ""))
        places = self._places[file]
        while path and path not in places:
            path = path[:-1]
        return places.get(path, 0)


def load(sources: Iterable[tuple[str, str | bytes]]) -> ConfigFile:
    """Read (file, content) in their order; later files override single settings of earlier ones."""
    draft = _Draft()
    for file, data in sources:
        draft.file = file
        table = _toml(draft, data)
        if table is not None:
            _take_file(draft, table)
    config = _assemble(draft)
    is_wrong = any(problem.severity == "error" for problem in draft.problems)
    return ConfigFile(Config() if is_wrong else config, tuple(draft.problems))


def _settings_of(lane: Lane) -> dict[str, Any]:
    settings = lane._asdict()
    del settings["name"]
    return settings


def _toml(draft: _Draft, content: str | bytes) -> dict[str, Any] | None:
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    try:
        text = data.decode("utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        draft.problems.append(Problem(draft.file, line, "it is not valid UTF-8"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        from sdqueue.tomlplaces import error_line

        words = str(error).partition(" (at ")[0]
        message = f"it is no valid TOML: {words[:1].lower()}{words[1:]}"
        draft.problems.append(Problem(draft.file, error_line(error, data), message))
    else:
        draft.texts[draft.file] = text
        return table
    return None


def _take_file(draft: _Draft, table: Mapping[str, object]) -> None:
    for key, value in table.items():
        if key == "lane":
            _take_lanes(draft, value)
        elif key in QUEUE_BY_KEY:
            _take(draft, draft.queue, QUEUE_BY_KEY[key], (key,), value)
        else:
            draft.say((key,), f"there is no setting {shown(key)}{did_you_mean(key, TOP_KEYS)}")


def _take(
    draft: _Draft, into: dict[str, Any], setting: Setting, path: tuple[str, ...], value: object
) -> None:
    draft.set_at[path] = draft.file
    try:
        into[setting.field] = setting.read(value)
    except ValueError as error:
        draft.say(path, f"{setting.key}: {error}")


def _take_lanes(draft: _Draft, lanes: object) -> None:
    if not isinstance(lanes, dict):
        draft.say(("lane",), "lane: it must be tables, such as [lane.gpu]")
        return
    for name, table in lanes.items():
        path = ("lane", name)
        fault = lane_name_fault(name)
        draft.set_at[path] = draft.file
        if fault:
            draft.say(path, f"{shown(name)} can't be a lane: {fault}")
        elif not isinstance(table, dict):
            draft.say(path, f"lane.{name}: it must be a table, such as [lane.{name}]")
        else:
            _take_lane(draft, name, table)


def _take_lane(draft: _Draft, name: str, table: Mapping[str, object]) -> None:
    lane = draft.lanes.setdefault(name, {})
    for key, value in table.items():
        path = ("lane", name, key)
        if key in LANE_BY_KEY:
            _take(draft, lane, LANE_BY_KEY[key], path, value)
        elif key not in SUBTABLES:
            near = did_you_mean(key, LANE_KEYS)
            draft.say(path, f"a lane has no setting {shown(key)}{near}")
        elif not isinstance(value, dict):
            draft.say(path, f"{key}: it must be a table, such as [lane.{name}.{key}]")
        elif key == "slice":
            _take_pairs(draft, lane, "slice_properties", path, value, check_slice_setting)
        else:
            _take_pairs(draft, lane, "job_defaults", path, value, _check_job_default)


def _take_pairs(
    draft: _Draft,
    lane: dict[str, Any],
    into: str,
    path: tuple[str, ...],
    table: Mapping[str, object],
    check: Callable[[str, str], None],
) -> None:
    """Read a table of free settings; a list stands for several assignments of one key."""
    pairs: list[tuple[str, str]] = [p for p in lane.get(into, ()) if p[0] not in table]
    for key, value in table.items():
        for one in value if isinstance(value, list) else [value]:
            try:
                text = _plain_text(one)
                check(key, text)
                pairs.append((key, text))
            except ValueError as error:
                draft.say((*path, key), f"{key}: {error}")
    lane[into] = tuple(pairs)


def _plain_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | str):
        raise ValueError("it must be a text, a number, or true or false")
    return str(value)


def _check_job_default(key: str, text: str) -> None:
    key_named(key).value(text)
    if key in NOT_FOR_ALL:
        raise ValueError("it can't be the same for every job of a lane")
    if not text.isprintable():
        raise ValueError("it must be of one line")


# The whole --------------------------------------------------------------------------------------


def _assemble(draft: _Draft) -> Config:
    lanes = {n: v for n, v in draft.lanes.items() if v.pop("enabled", True)}
    excludes = _symmetric_excludes(draft, lanes)
    for name, values in lanes.items():
        values["excludes"] = frozenset(excludes[name])
        values["before"] = tuple(_known_lanes(draft, lanes, name, "before"))
    made = {name: Lane(name=name, **values) for name, values in lanes.items()}
    _check_before(draft, made)
    _check_slots(draft, made)
    config = Config(lanes=made, **draft.queue)
    if config.default_lane not in made:
        near = did_you_mean(config.default_lane, list(made))
        draft.say_late(
            ("default_lane",), f"default_lane: there is no lane {config.default_lane}{near}"
        )
    return config


def _known_lanes(
    draft: _Draft, lanes: Mapping[str, dict[str, Any]], name: str, key: str
) -> Sequence[str]:
    """Return the other lanes that a setting names; what is a default may name a removed one."""
    path = ("lane", name, key)
    known = []
    for other in lanes[name].get(key, ()):
        if other == name:
            draft.say_late(path, f"{key}: {name} names itself")
        elif other in lanes:
            known.append(other)
        elif path in draft.set_at:
            near = did_you_mean(other, list(lanes))
            draft.say_late(path, f"{key}: there is no lane {shown(other)}{near}")
    return known


def _symmetric_excludes(draft: _Draft, lanes: Mapping[str, dict[str, Any]]) -> dict[str, set[str]]:
    """Return who excludes whom, both ways.

    A default gives way to what was written: `[lane.gpu] excludes = []` also frees net from gpu.
    """
    said = {name for name in lanes if ("lane", name, "excludes") in draft.set_at}
    pairs: dict[str, set[str]] = {name: set() for name in lanes}
    for name in lanes:
        for other in _known_lanes(draft, lanes, name, "excludes"):
            if name in said or other not in said:
                pairs[name].add(other)
                pairs[other].add(name)
    return pairs


def _check_before(draft: _Draft, lanes: Mapping[str, Lane]) -> None:
    """Say each circle of lanes that wait for each other."""
    free: set[str] = set()
    for name in lanes:
        path: list[str] = []
        _walk_before(draft, lanes, name, path, free)


def _walk_before(
    draft: _Draft, lanes: Mapping[str, Lane], name: str, path: list[str], free: set[str]
) -> None:
    if name in path:
        circle = " before ".join([*path[path.index(name) :], name])
        draft.say_late(("lane", path[-1], "before"), f"before: lanes wait in a circle: {circle}")
        return
    if name in free:
        return
    path.append(name)
    for other in lanes[name].before:
        _walk_before(draft, lanes, other, path, free)
    path.pop()
    free.add(name)


def _check_slots(draft: _Draft, lanes: Mapping[str, Lane]) -> None:
    total = sum(lane.slots for lane in lanes.values())
    if total <= SLOTS_MAX:
        return
    largest = max(lanes.values(), key=lambda lane: lane.slots)
    message = f"slots: all lanes together have {total}, and may have {SLOTS_MAX}"
    draft.say_late(("lane", largest.name, "slots"), message)
