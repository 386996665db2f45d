"""What makes systemd refuse a unit whose files it could read: load state `bad-setting`.

Two kinds. A *fatal* setting ends the reading of its file at once. A *fault* is found when all was
read, and default dependencies have been added by then. Tables say which settings and rules there
are; a rule returns what is wrong, "" where nothing is.

Re-enacts service_verify() and its like, src/core/*.c, v252. Differs: addresses and calendar
expressions are not checked, one that is wrong counts as one that is there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sdqueue.unitfile.command import BadCommand, Command, commands
from sdqueue.unitfile.specifier import FULL_SPECIFIERS, Host, expand
from sdqueue.unitfile.unit import LoadState, Setting, Unit
from sdqueue.words import unitname
from sdqueue.words.problem import Problem

EXEC_SECTIONS = frozenset(("Service", "Socket", "Mount", "Swap"))
EXEC_KEYS: Mapping[str, tuple[str, ...]] = {
    "Service": (
        "ExecCondition",
        "ExecStartPre",
        "ExecStart",
        "ExecStartPost",
        "ExecReload",
        "ExecStop",
        "ExecStopPost",
    ),
    "Socket": ("ExecStartPre", "ExecStartPost", "ExecStopPre", "ExecStopPost"),
}
PATH_KEYS = frozenset(("RootDirectory", "RootImage", "RootVerity", "WorkingDirectory"))
USER_KEYS = frozenset(("User", "Group"))
FATAL_KEYS = PATH_KEYS | USER_KEYS | {key for keys in EXEC_KEYS.values() for key in keys}
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
SERVICE_TYPES: Mapping[str, int] = {
    **dict.fromkeys(("simple", "forking", "exec", "oneshot", "dbus", "notify", "idle"), 0),
    "notify-reload": 253,
}
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
_NO_ACTION = ("", "none")


def fatal(setting: Setting, unit: str, host: Host, fragment_file: str | None) -> str:
    """Return why systemd reads no further after this setting, "" where it does."""
    section, key, value = setting.section, setting.key, setting.value
    if section not in EXEC_SECTIONS or not value:
        return ""
    if key in EXEC_KEYS.get(section, ()):
        try:
            for _ in commands(value, unit, host, fragment_file):
                pass
        except BadCommand as error:
            return str(error)
        return ""
    if key in PATH_KEYS:
        return _bad_path(key, value, unit, host, fragment_file)
    return _bad_user(value, unit, host, fragment_file) if key in USER_KEYS else ""


def until_fatal(
    settings: tuple[Setting, ...], unit: str, host: Host, fragment_file: str | None
) -> tuple[tuple[Setting, ...], Problem | None]:
    """Return the settings of one file up to a fatal one, and what is wrong with that."""
    for at, setting in enumerate(settings):
        if setting.key not in FATAL_KEYS:
            continue
        why = fatal(setting, unit, host, fragment_file)
        if why:
            place = setting.place
            return settings[:at], Problem(place.file, place.line, f"{setting.key}=: {why}")
    return settings, None


def _bad_path(key: str, value: str, unit: str, host: Host, file: str | None) -> str:
    if key == "WorkingDirectory" and (value == "~" or value.startswith("-")):
        return ""
    try:
        path = expand(value, unit, host, table=FULL_SPECIFIERS, fragment_file=file, max_length=4095)
    except ValueError as error:
        return str(error)
    if not path.startswith("/"):
        return f"not an absolute path: {path}"
    normalized = unitname.path_is_normalized(unitname.simplify_path(path))
    return "" if normalized else f"not a normalized path: {path}"


def _bad_user(value: str, unit: str, host: Host, file: str | None) -> str:
    """Re-enacts valid_user_group_name() in its relaxed form, src/basic/user-util.c, v252."""
    try:
        name = expand(value, unit, host, table=FULL_SPECIFIERS, fragment_file=file)
    except ValueError as error:
        return str(error)
    if name.isascii() and name.isdigit():
        number = int(name)
        plain = name == "0" or not name.startswith("0")
        return "" if plain and number < 0xFFFFFFFF and number != 0xFFFF else f"no user id: {name}"
    bad = (
        name != name.strip(" ")
        or any(ord(char) < 32 or ord(char) == 127 or char in ":/" for char in name)
        or name in ("", ".", "..")
        or (name[:1] == "-" and (name[1:].isdigit() or not name[1:]))
    )
    return f"not a name of a user or group: {name!r}" if bad else ""


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
    if unit.type == "slice" and not unitname.slice_is_valid(unit.name):
        return Refusal(f"{unit.name} can't be a slice", LoadState.ERROR, extras=False)
    rule = RULES.get(unit.type)
    why = rule(unit, host, version) if rule else ""
    return Refusal(why) if why else None


def _commands(unit: Unit, key: str, host: Host) -> list[Command]:
    found: list[Command] = []
    for setting in unit.all("Service", key):
        if not setting.value:
            found.clear()
        try:
            found += commands(setting.value, unit.name, host, unit.fragment_file)
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
    return "simple" if _commands(unit, "ExecStart", host) else "oneshot"


def _service(unit: Unit, host: Host, version: int) -> str:
    start, stop = _commands(unit, "ExecStart", host), _commands(unit, "ExecStop", host)
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
    ports = _listed(unit, "Socket", LISTENS)
    accept = unit.flag("Socket", "Accept", default=False)
    unaccepting = any(port.key not in ("ListenStream", "ListenSequentialPacket") for port in ports)
    nodes = [port for port in ports if _expanded(unit, port.value, host)]
    nodes = [port for port in nodes if port.key not in ("ListenSpecial", "ListenMessageQueue")]
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


def _timer(unit: Unit, _host: Host, _version: int) -> str:
    values = _listed(unit, "Timer", TIMERS)
    events = (
        unit.flag("Timer", key, default=False) for key in ("OnClockChange", "OnTimezoneChange")
    )
    return "" if values or any(events) else "no time is set"


def _path(unit: Unit, _host: Host, _version: int) -> str:
    specs = (each for each in _listed(unit, "Path", PATHS) if each.value[0] in "/%")
    return "" if any(specs) else "no path to watch is set"


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
        result = _expanded(unit, setting.value, host) or ("" if not setting.value else result)
    if result:
        return unitname.simplify_path(result)
    try:
        return unitname.to_path(unit.name)
    except ValueError:
        return ""


def _expanded(unit: Unit, value: str, host: Host) -> str:
    file = unit.fragment_file
    try:
        path = expand(
            value, unit.name, host, table=FULL_SPECIFIERS, fragment_file=file, max_length=4095
        )
    except ValueError:
        return ""
    return path if path.startswith("/") else ""


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
    where = path_of(unit, host)
    return "the root directory can't be automounted" if where == "/" else _named_after(unit, where)


def _swap(unit: Unit, host: Host, _version: int) -> str:
    return _named_after(unit, path_of(unit, host))


def _slice(unit: Unit, _host: Host, _version: int) -> str:
    given = unit.value("Slice", "Slice")
    parent = unitname.parent_slice(unit.name)
    return f"Slice={given} is not its parent {parent}" if given and given != parent else ""


Rule = Callable[[Unit, Host, int], str]
RULES: Mapping[str, Rule] = {
    "service": _service,
    "socket": _socket,
    "timer": _timer,
    "path": _path,
    "mount": _mount,
    "automount": _automount,
    "swap": _swap,
    "slice": _slice,
}
