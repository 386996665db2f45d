"""The settings of `sdqueue.toml`: one row each, which `config`, the manual and the tests read.

Knows how a value is read, not where it stands or how files are put together.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from sdqueue.jobkeys import BY_NAME, key_named
from sdqueue.words.names import shown
from sdqueue.words.spans import INFINITY_USEC, parse_size, parse_timespan

SLOTS_MAX = 64
"""Of all lanes: each open start costs PID 1 one of its 512 match rules."""


# Readers of values ------------------------------------------------------------------------------


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1_000_000:
        raise ValueError("it must be a whole number, 1 or more")
    return value


def _slots(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= SLOTS_MAX:
        raise ValueError(f"it must be a whole number from 1 to {SLOTS_MAX}")
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it must be true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError("it must be a text of one line")
    return value


def _span(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('it must be a time span, such as "5min"')
    usec = parse_timespan(str(value))
    if usec in (0, INFINITY_USEC):
        raise ValueError("it must be longer than 0 and shorter than infinity")
    return usec


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('it must be a size, such as "2G"')
    return parse_size(str(value))


def _log_size(value: object) -> int:
    size = _size(value)
    if size < 64 * 1024:
        raise ValueError("it must be at least 64K, or the log would hold next to nothing")
    return size


def _texts(value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        raise ValueError('it must be a list of texts, such as ["a", "b"]')
    return tuple(dict.fromkeys(map(_text, values)))


def _devices(value: object) -> tuple[str, ...]:
    for device in (devices := _texts(value)):
        if not device.startswith("/dev/") or "/../" in device:
            raise ValueError(f"{shown(device)} is no path below /dev")
    return devices


def _processes(value: object) -> tuple[str, ...]:
    for name in (names := _texts(value)):
        if len(name.encode()) > 15:
            raise ValueError(f"{shown(name)} is too long: the kernel cuts names after 15 bytes")
    return names


def _ports(value: object) -> tuple[int, ...]:
    ports = value if isinstance(value, list) else [value]
    for port in ports:
        if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
            raise ValueError("it must be a port from 1 to 65535, or a list of them")
    return tuple(dict.fromkeys(ports))


def _files(value: object) -> tuple[str, ...]:
    for file in (files := _texts(value)):
        if not file.startswith("/"):
            raise ValueError(f"{shown(file)} is no path from the root")
    return files


def _unit_globs(value: object) -> tuple[str, ...]:
    for glob in (globs := _texts(value)):
        if "." not in glob and not glob.endswith("*"):
            raise ValueError(f"{shown(glob)} fits no unit: their names end as in .service")
    return globs


def _units(value: object) -> tuple[str, ...]:
    units: tuple[str, ...] = ()
    for text in _texts(value):
        units += key_named("ON_SUCCESS").value(text)
    return units


class Setting(NamedTuple):
    """One row: the key in the file, the field of Config or Lane, how it is read, and the manual."""

    key: str
    field: str
    read: Callable[[object], Any]
    kind: str
    help: str


QUEUE_SETTINGS: tuple[Setting, ...] = (
    Setting("default_lane", "default_lane", _text, "lane", "lane of a submit without --lane"),
    Setting("recheck", "recheck_usec", _span, "time span", "how often gates are asked again"),
    Setting("check_timeout", "check_timeout_usec", _span, "time span", "limit of a check"),
    Setting(
        "startup_wait",
        "startup_wait_usec",
        _span,
        "time span",
        "how long to wait at most for the machine's own start to be finished",
    ),
    Setting(
        "interrupted_max",
        "interrupted_max",
        _count,
        "number",
        "a job interrupted so many times in a row is parked",
    ),
    Setting("log_max", "log_max_bytes", _log_size, "size", "size at which events.jsonl is rotated"),
)  # fmt: skip
LANE_SETTINGS: tuple[Setting, ...] = (
    Setting("enabled", "enabled", _boolean, "boolean", "false removes a lane, also a default one"),
    Setting("slots", "slots", _slots, "number", "jobs at once; 64 over all lanes"),
    Setting("excludes", "excludes", _texts, "lanes", "lanes that never run beside this one"),
    Setting("before", "before", _texts, "lanes", "lanes that wait for this one's jobs"),
    Setting("devices", "devices", _devices, "globs", "devices whose users count"),
    Setting("foreign", "foreign", _processes, "names", "process names that count as users"),
    Setting("ports", "ports", _ports, "ports", "TCP ports whose listeners count as users"),
    Setting("owner_files", "owner_files", _files, "globs", "files whose lockers count as users"),
    Setting("units", "units", _unit_globs, "globs", "units that count as users while active"),
    Setting("yielding", "yielding", _texts, "globs", "units that are asked to give way"),
    Setting("memory_margin", "memory_margin_bytes", _size, "size", "memory left over by MEMORY"),
    Setting("on_success", "on_success", _units, "units", "units to start when a job is done"),
    Setting("on_failure", "on_failure", _units, "units", "units to start when a job has failed"),
    Setting("inhibit_sleep", "inhibit_sleep", _boolean, "boolean", "no sleep under a job"),
)  # fmt: skip
SUBTABLES = {
    "slice": "resource settings of the lane's slice, as in systemd.resource-control(5)",
    "job": "header keys for the jobs of the lane that do not have them",
}
NOT_FOR_ALL = ("LANE", "NOT_BEFORE", "ON_CALENDAR", "AFTER", "AFTER_ANY", "DESCRIPTION")
"""Header keys that make no sense as a default for every job of a lane."""
QUEUE_BY_KEY = {setting.key: setting for setting in QUEUE_SETTINGS}
LANE_BY_KEY = {setting.key: setting for setting in LANE_SETTINGS}
TOP_KEYS = [*QUEUE_BY_KEY, "lane"]
LANE_KEYS = [*LANE_BY_KEY, *SUBTABLES]

assert set(NOT_FOR_ALL) <= set(BY_NAME)
