"""What makes systemd refuse a unit after all its files were read: load state `bad-setting`.

A table of rules, one for each type; a rule returns what is wrong, "" where nothing is. Default
dependencies have been added by then, but for what `Refusal.extras` says.

Re-enacts service_verify() and its like, src/core/*.c, v252. Differs: calendar expressions are not
checked, one that is wrong counts as one that is there; two services of one bus name are not seen.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sdqueue.unitfile.command import BadCommand, Command, commands
from sdqueue.unitfile.specifier import FULL_SPECIFIERS, Host, expand
from sdqueue.unitfile.unit import LoadState, Setting, Unit
from sdqueue.words import unitname
from sdqueue.words.problem import Problem
from sdqueue.words.spans import parse_timespan

TIMERS = (
    "OnActiveSec",
    "OnBootSec",
    "OnStartupSec",
    "OnUnitActiveSec",
    "OnUnitInactiveSec",
    "OnCalendar",
)
PATHS = (
    "PathExists",
    "PathExistsGlob",
    "PathChanged",
    "PathModified",
    "DirectoryNotEmpty",
)
PATH_OF: Mapping[str, tuple[str, str]] = {
    "mount": ("Mount", "Where"),
    "automount": ("Automount", "Where"),
    "swap": ("Swap", "What"),
}
LISTENS = (
    "ListenStream",
    "ListenDatagram",
    "ListenSequentialPacket",
    "ListenFIFO",
    "ListenNetlink",
    "ListenSpecial",
    "ListenMessageQueue",
    "ListenUSBFunction",
)
API_MOUNTS = frozenset(
    (
        "/proc",
        "/sys",
        "/dev",
        "/run",
        "/dev/shm",
        "/dev/pts",
        "/sys/kernel/security",
        "/sys/fs/smackfs",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/systemd",
        "/sys/fs/pstore",
        "/sys/firmware/efi/efivars",
        "/sys/fs/bpf",
    )
)
IGNORED_MOUNTS = frozenset(
    (
        "/sys/fs/selinux",
        "/dev/console",
        "/proc/kmsg",
        "/proc/sys",
        "/proc/sys/kernel/random/boot_id",
        "/run/host",
    )
)
SERVICE_TYPES: Mapping[str, int] = {
    **dict.fromkeys(("simple", "forking", "exec", "oneshot", "dbus", "notify", "idle"), 0),
    "notify-reload": 253,
}
_NO_ACTION = ("", "none")
_PATHS_ONLY = frozenset(("ListenFIFO", "ListenSpecial", "ListenMessageQueue", "ListenUSBFunction"))
_NO_NODES = frozenset(("ListenSpecial", "ListenMessageQueue", "ListenUSBFunction"))
_ADDRESS = re.compile(
    r"[/@].+|vsock(-\w+)?:.*|(?:(?:\[[0-9A-Fa-f:.]+\]|[0-9.]+):)?(?P<port>[0-9]+)(?:%\S+)?"
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a unit is not loaded though its files were read, and what load state that makes.

    `extras`: default and implicit dependencies had been added by then.
    """

    why: str
    load_state: LoadState = LoadState.BAD_SETTING
    extras: bool = True

    def problem(self, unit: Unit) -> Problem:
        """Return it as something to say about the unit's file."""
        return Problem(unit.fragment_file or unit.name, 0, f"systemd refuses the unit: {self.why}")


def refusal(unit: Unit, host: Host, version: int) -> Refusal | None:
    """Return why systemd refuses the unit, None where it does not."""
    if unit.type in PATH_OF and not path_of(unit, host):
        return Refusal("its name stands for no path", LoadState.ERROR, extras=False)
    if unit.type == "automount" and path_of(unit, host) == "/":
        return Refusal("the root directory can't be automounted", LoadState.ERROR, extras=False)
    if unit.type == "slice" and not unitname.slice_is_valid(unit.name):
        return Refusal(f"{unit.name} can't be a slice", LoadState.ERROR, extras=False)
    rule = RULES.get(unit.type)
    why = rule(unit, host, version) if rule else ""
    return Refusal(why) if why else None


def _commands(unit: Unit, key: str, host: Host, version: int) -> list[Command]:
    found: list[Command] = []
    for setting in unit.all("Service", key):
        if not setting.value:
            found.clear()
        try:
            found += commands(setting.value, unit.name, host, unit.fragment_file, version)
        except BadCommand:
            continue
    return found


def service_type(unit: Unit, host: Host, version: int) -> str:
    """Return the service's type, as systemd fills it in where none that it knows is set."""
    given = [
        s.value for s in unit.all("Service", "Type") if SERVICE_TYPES.get(s.value, 999) <= version
    ]
    if given:
        return given[-1]
    if unit.value("Service", "BusName"):
        return "dbus"
    return "simple" if _commands(unit, "ExecStart", host, version) else "oneshot"


def _service(unit: Unit, host: Host, version: int) -> str:
    start, stop = (_commands(unit, key, host, version) for key in ("ExecStart", "ExecStop"))
    oneshot = service_type(unit, host, version) == "oneshot"
    action = unit.value("Unit", "SuccessAction") not in _NO_ACTION
    remain = unit.flag("Service", "RemainAfterExit", default=False)
    restart = unit.value("Service", "Restart")
    forced = version < 254 and unit.value("Service", "RestartForceExitStatus")
    kill = unit.value("Service", "KillMode", "control-group")
    checks = (
        (not (start or stop or action), "no ExecStart=, ExecStop= or SuccessAction="),
        (not oneshot and not start, "no ExecStart=, which only Type=oneshot may lack"),
        (not (start or remain or action), "no ExecStart=, SuccessAction= or RemainAfterExit=yes"),
        (not oneshot and len(start) > 1, "more than one ExecStart=, which needs Type=oneshot"),
        (
            oneshot and restart in ("always", "on-success"),
            f"Restart={restart} is not allowed with Type=oneshot",
        ),
        (oneshot and forced, "RestartForceExitStatus= is not allowed with Type=oneshot"),
        (
            oneshot and unit.value("Service", "ExitType") == "cgroup",
            "ExitType=cgroup is not allowed with Type=oneshot",
        ),
        (
            service_type(unit, host, version) == "dbus" and not unit.value("Service", "BusName"),
            "Type=dbus without BusName=",
        ),
        (
            unit.value("Service", "PAMName") and kill not in ("control-group", "mixed"),
            "PAMName= needs KillMode=control-group or mixed",
        ),
    )
    return next((why for wrong, why in checks if wrong), "")


def _listed(unit: Unit, section: str, keys: tuple[str, ...]) -> list[Setting]:
    """Return what keys that share one list hold; an empty one of them empties it."""
    found: list[Setting] = []
    for setting in unit.settings:
        if setting.section == section and setting.key in keys:
            if setting.value:
                found.append(setting)
            else:
                found.clear()
    return found


def _socket(unit: Unit, host: Host, _version: int) -> str:
    ports = [port for port in _listed(unit, "Socket", LISTENS) if _listens(unit, port, host)]
    accept = unit.flag("Socket", "Accept", default=False)
    unaccepting = any(port.key not in ("ListenStream", "ListenSequentialPacket") for port in ports)
    nodes = [p for p in ports if p.key not in _NO_NODES and _absolute(unit, p.value, host)]
    checks = (
        (not ports, "no Listen…= setting"),
        (accept and unaccepting, "Accept=yes with a socket that can't accept"),
        (accept and unit.value("Socket", "Service"), "Accept=yes together with Service="),
        (
            unit.value("Socket", "PAMName")
            and unit.value("Socket", "KillMode", "control-group") != "control-group",
            "PAMName= needs KillMode=control-group",
        ),
        (
            list(unit.strv("Socket", "Symlinks")) and len(nodes) != 1,
            "Symlinks= needs exactly one node in the file system",
        ),
    )
    return next((why for wrong, why in checks if wrong), "")


def _listens(unit: Unit, port: Setting, host: Host) -> bool:
    """Say whether an address is one; re-enacts socket_address_parse() roughly, v252."""
    if port.key in _PATHS_ONLY:
        return bool(_absolute(unit, port.value, host))
    text = _expanded(unit, port.value, host)
    found = _ADDRESS.fullmatch(text)
    if port.key == "ListenNetlink" or not found:
        return bool(text) and port.key == "ListenNetlink"
    number = found.group("port")
    return number is None or 0 < int(number) < 65536


def _is_time(setting: Setting, text: str) -> bool:
    if setting.key == "OnCalendar":
        return bool(text)
    try:
        return parse_timespan(text) >= 0
    except ValueError:
        return False


def _timer(unit: Unit, host: Host, _version: int) -> str:
    listed = _listed(unit, "Timer", TIMERS)
    values = [each for each in listed if _is_time(each, _expanded(unit, each.value, host))]
    events = (
        unit.flag("Timer", key, default=False) for key in ("OnClockChange", "OnTimezoneChange")
    )
    return "" if values or any(events) else "no time is set"


def _path(unit: Unit, host: Host, _version: int) -> str:
    watched = (_absolute(unit, each.value, host) for each in _listed(unit, "Path", PATHS))
    return "" if any(watched) else "no path to watch is set"


def _named_after(unit: Unit, path: str) -> str:
    try:
        name = unitname.from_path(path, unit.type)
    except ValueError as error:
        return str(error)
    return "" if name in unit.names else f"its name does not fit its path {path}"


def path_of(unit: Unit, host: Host) -> str:
    """Return the path of a mount, automount or swap, by default that of its name; "" for none."""
    section, key = PATH_OF[unit.type]
    result = ""
    for setting in unit.all(section, key):
        result = _absolute(unit, setting.value, host) or ("" if not setting.value else result)
    if result:
        return result
    try:
        return unitname.to_path(unit.name)
    except ValueError:
        return ""


def _expanded(unit: Unit, value: str, host: Host) -> str:
    """Return a value with its specifiers expanded, "" where that can't be done."""
    file = unit.fragment_file
    try:
        return expand(
            value, unit.name, host, table=FULL_SPECIFIERS, fragment_file=file, max_length=4095
        )
    except ValueError:
        return ""


def _absolute(unit: Unit, value: str, host: Host) -> str:
    """Return a path as systemd takes it, "" where it does not."""
    path = _expanded(unit, value, host)
    if not path.startswith("/"):
        return ""
    path = unitname.simplify_path(path)
    return path if unitname.path_is_normalized(path) else ""


def _mount(unit: Unit, host: Host, _version: int) -> str:
    if not unit.fragment_file:
        return ""
    where = path_of(unit, host)
    wrong = _named_after(unit, where)
    if not wrong and is_api_mount(where):
        wrong = f"{where} is systemd's own to mount"
    if not wrong and not unit.value("Mount", "What") and unit.name != "-.mount":
        wrong = "no What="
    return wrong


def is_api_mount(path: str) -> bool:
    """Say whether a mount point is systemd's or the kernel's own, for which there is no unit.

    Re-enacts mount_point_is_api() and mount_point_ignore(), src/shared/mount-setup.c, v252.
    """
    below = path.startswith(("/sys/fs/cgroup/", "/run/host/"))
    return below or path in API_MOUNTS or path in IGNORED_MOUNTS


def _automount(unit: Unit, host: Host, _version: int) -> str:
    return _named_after(unit, path_of(unit, host))


def _swap(unit: Unit, host: Host, _version: int) -> str:
    return _named_after(unit, path_of(unit, host))


Rule = Callable[[Unit, Host, int], str]
RULES: Mapping[str, Rule] = {
    "service": _service,
    "socket": _socket,
    "timer": _timer,
    "path": _path,
    "mount": _mount,
    "automount": _automount,
    "swap": _swap,
}
