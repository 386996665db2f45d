"""What a unit depends on because of how its processes are run.

Re-enacts unit_add_exec_dependencies() and unit_patch_contexts(), src/core/unit.c, v252 to v262,
and service_fix_stdio(), src/core/service.c.
"""

from dataclasses import dataclass

import sdqueue.boot.loading.values as values
from sdqueue.boot.graph import Kind
from sdqueue.boot.loading.mountneeds import need_mounts
from sdqueue.boot.loading.queue import Entry, Loading, MountsKind
from sdqueue.boot.loading.values import implicit
from sdqueue.unitfile.split import boolean
from sdqueue.unitfile.unit import Setting
from sdqueue.words import unitname

SECTIONS = {"service": "Service", "socket": "Socket", "mount": "Mount", "swap": "Swap"}
WANTS_MOUNTS_SINCE = 256
TMP_CHOICE_SINCE = 257
VAR_TMP_SINCE = 258
EARLY_TMP_SINCE = 260

ROOT_FILE_SYSTEMS = (("RootDirectory", 0), ("RootImage", 0), ("RootMStack", 260))
"""Settings that give a service a root of its own, and since when."""


@dataclass(frozen=True, slots=True)
class ExecDirectory:
    """A kind of directory that systemd makes for a unit; `base` is the attribute of `Host`."""

    key: str
    base: str
    writes: bool


EXEC_DIRECTORIES = (
    ExecDirectory("RuntimeDirectory", "runtime_dir", writes=False),
    ExecDirectory("StateDirectory", "state_dir", writes=True),
    ExecDirectory("CacheDirectory", "cache_dir", writes=True),
    ExecDirectory("LogsDirectory", "logs_dir", writes=True),
    ExecDirectory("ConfigurationDirectory", "config_dir", writes=False),
)
LOG_NAMESPACE_UNITS = (
    ("systemd-journald", "socket", 0),
    ("systemd-journald-varlink", "socket", 0),
    ("systemd-journald-sync", "service", 256),
)
CONTEXTS_VERIFIED_SINCE = 257
IMAGES = ("RootImage", "RootMStack", "MountImages")
IMAGE_MODULES = ("loop", "dm_mod", "dm_verity")

JOURNAL_OUTPUTS = frozenset({"journal", "journal+console", "kmsg", "kmsg+console"})
_OBSOLETE = {"syslog": "journal", "syslog+console": "journal+console"}
_OUTPUTS = JOURNAL_OUTPUTS | {"inherit", "null", "tty", "socket", *_OBSOLETE}
_FILE_OUTPUTS = ("fd:", "file:", "append:", "truncate:")
_INHERITABLE = frozenset({"tty", "tty-force", "tty-fail", "socket", "fd"})
_INPUTS = _INHERITABLE | {"null", "data"}
_POLICIES = frozenset({"auto", "closed", "strict"})
_TMP = {True: "connected", False: "no", None: ""}

AFTER: tuple[Kind, ...] = ("After",)
AFTER_WANTS: tuple[Kind, ...] = ("After", "Wants")
AFTER_REQUIRES: tuple[Kind, ...] = ("After", "Requires")


def add_dependencies(loading: Loading, entry: Entry) -> None:
    """State what a unit's processes need; the settings are those of its type's section."""
    section = SECTIONS[entry.type]
    _working_directory(loading, entry, section)
    rooted = _root_file_system(loading, entry, section)
    writing = _directories(loading, entry, section)
    if loading.manager.user:
        return
    if writing:
        origin = implicit(writing, f"{writing.key}= needs a writable file system")
        loading.state(entry, AFTER, "systemd-remount-fs.service", origin)
    _private_tmp(loading, entry, section, rooted=bool(rooted))
    if rooted and rooted.key != "RootDirectory":
        origin = implicit(rooted, f"{rooted.key}= needs loop devices")
        loading.state(entry, AFTER, "systemd-udevd.service", origin)
    _log(loading, entry, section)


def patch_contexts(loading: Loading, entry: Entry) -> bool:
    """State what a unit needs to use images when its devices are restricted.

    False where systemd then finds its settings to contradict each other, and goes no further.
    """
    image = next(
        (s for key in IMAGES if (s := entry.unit.last(SECTIONS[entry.type], key)) and s.value), None
    )
    if image is not None and _restricts_devices(entry):
        for module in IMAGE_MODULES:
            origin = implicit(image, f"{image.key}= with restricted devices")
            loading.state(entry, AFTER_WANTS, f"modprobe@{module}.service", origin)
    if loading.manager.version >= CONTEXTS_VERIFIED_SINCE and _contradicts_itself(loading, entry):
        entry.load_state = "bad-setting"
        return False
    return True


def _restricts_devices(entry: Entry) -> bool:
    unit, section = entry.unit, SECTIONS[entry.type]
    policy = values.last_word(unit, section, "DevicePolicy", _POLICIES)
    return (
        unit.flag(section, "PrivateDevices", default=False)
        or policy in ("closed", "strict")
        or bool(values.listed(unit, section, ("DeviceAllow",)))
    )


def _contradicts_itself(loading: Loading, entry: Entry) -> bool:
    """Re-enacts the rules of unit_verify_contexts(), src/core/unit.c, v257, on DynamicUser=."""
    unit, section = entry.unit, SECTIONS[entry.type]
    if not unit.flag(section, "DynamicUser", default=False):
        return False
    home = unit.value(section, "WorkingDirectory").removeprefix("-") == "~"
    return home or loading.manager.user


def _mounts(loading: Loading, entry: Entry, kind: MountsKind, path: str, s: Setting) -> None:
    need_mounts(loading, entry, kind, path, implicit(s, f"{s.key}= is below {path}"))


def _working_directory(loading: Loading, entry: Entry, section: str) -> None:
    path, optional, said = "", False, None
    for setting in entry.unit.all(section, "WorkingDirectory"):
        text = setting.value.removeprefix("-")
        if text in ("", "~"):
            path = ""
        elif made := values.absolute(entry.unit, text, loading.manager.host):
            path = made
        else:
            continue
        optional, said = setting.value.startswith("-"), setting
    if not path and loading.manager.user:
        path, optional = loading.manager.host.home, True
    wants = loading.manager.version >= WANTS_MOUNTS_SINCE
    if path and (wants or not optional):
        origin = implicit(said, f"WorkingDirectory= is below {path}")
        need_mounts(loading, entry, "Wants" if optional else "Requires", path, origin)


def _root_file_system(loading: Loading, entry: Entry, section: str) -> Setting | None:
    """State the mounts of a root of its own; return the setting, an image before a directory."""
    version = loading.manager.version
    kind: MountsKind = "Wants" if version >= WANTS_MOUNTS_SINCE else "Requires"
    rooted: Setting | None = None
    for key, since in ROOT_FILE_SYSTEMS:
        found = values.last_path(entry.unit, section, key, loading.manager.host)
        if found and version >= since:
            _mounts(loading, entry, kind, *found)
            rooted = found[1] if found[0] != "/" else rooted
    return rooted


def _directories(loading: Loading, entry: Entry, section: str) -> Setting | None:
    """State the mounts of the directories systemd makes; return a setting that needs writing."""
    host = loading.manager.host
    writing: Setting | None = None
    for kind in EXEC_DIRECTORIES:
        if not entry.unit.last(section, kind.key):
            continue
        for word, setting in values.tuples(values.listed(entry.unit, section, (kind.key,))):
            path = values.expand_text(entry.unit, word.partition(":")[0], host)
            if not path or path.startswith("/") or not unitname.path_is_normalized(path):
                continue
            base: str = getattr(host, kind.base)
            _mounts(loading, entry, "Requires", f"{base}/{path}", setting)
            writing = writing or (setting if kind.writes else None)
    return writing


def _private_tmp(loading: Loading, entry: Entry, section: str, *, rooted: bool) -> None:
    """State what a private /tmp needs; what it is like has changed five times."""
    choice, setting = _tmp_choice(entry, section, loading.manager.version)
    if loading.manager.version < WANTS_MOUNTS_SINCE:
        if choice == "connected":
            origin = implicit(setting, f"{setting.key}= needs /tmp" if setting else "")
            loading.state(entry, AFTER_WANTS, "tmp.mount", origin)
            need_mounts(loading, entry, "Requires", "/var/tmp", origin)
            loading.state(entry, AFTER, "systemd-tmpfiles-setup.service", origin)
        return
    if setting is None:
        return
    tmp, var_tmp = _early(loading, entry, choice, rooted=rooted)
    origin = implicit(setting, f"{setting.key}= needs /tmp")
    if tmp == "connected":
        need_mounts(loading, entry, "Wants", "/tmp", origin)
    if var_tmp == "connected":
        need_mounts(loading, entry, "Wants", "/var/tmp", origin)
    elif var_tmp == "disconnected" and not rooted:
        need_mounts(loading, entry, "Wants", "/var", origin)
    if "connected" in (tmp, var_tmp):
        loading.state(entry, AFTER, "systemd-tmpfiles-setup.service", origin)


def _tmp_choice(entry: Entry, section: str, version: int) -> tuple[str, Setting | None]:
    """Return what PrivateTmp= and DynamicUser= choose, and the setting that does."""
    choice, said = "no", None
    for setting in entry.unit.all(section, "PrivateTmp"):
        word = _TMP[boolean(setting.value)]
        if version >= TMP_CHOICE_SINCE and setting.value in ("connected", "disconnected"):
            word = setting.value
        choice, said = (word, setting) if word else (choice, said)
    if choice == "no" and entry.unit.flag(section, "DynamicUser", default=False):
        choice = "disconnected" if version >= TMP_CHOICE_SINCE else "connected"
        said = entry.unit.last(section, "DynamicUser")
    return choice, said


def _early(loading: Loading, entry: Entry, choice: str, *, rooted: bool) -> tuple[str, str]:
    """Return what /tmp and /var/tmp are to be; early units get less.

    Re-enacts unit_get_private_tmp() and unit_get_private_var_tmp(), src/core/unit.c, v262.
    """
    version = loading.manager.version
    lax = entry.default_dependencies or rooted
    if choice == "disconnected":
        if version < VAR_TMP_SINCE:
            return choice, "no"
        return choice, choice if lax or _said(loading, entry, "/var", "var.mount") else "no"
    if choice == "connected" and version >= EARLY_TMP_SINCE and not lax:
        ordered = loading.known("tmp.mount") is None or _said(loading, entry, "/tmp", "tmp.mount")
        return (choice if ordered else "disconnected"), choice
    return choice, choice


def _said(loading: Loading, entry: Entry, path: str, mount: str) -> bool:
    """Say whether a unit is ordered after a mount by its own words."""
    if any(path in wanted for wanted in entry.mounts_for.values()):
        return True
    return loading.known(mount) is not None and loading.graph.has(entry.name, "After", mount)


def _log(loading: Loading, entry: Entry, section: str) -> None:
    """State what must be there before a unit can log."""
    unit = entry.unit
    namespace = unit.last(section, "LogNamespace")
    text = values.expand_text(unit, namespace.value, loading.manager.host) if namespace else ""
    if text:
        for prefix, unit_type, since in LOG_NAMESPACE_UNITS:
            name = f"{prefix}@{text}.{unit_type}"
            if loading.manager.version >= since:
                loading.state(entry, AFTER_REQUIRES, name, implicit(namespace, "LogNamespace="))
    elif said := _logs_to_journal(loading, entry, section):
        note = f"Standard{said.capitalize()}= goes to the journal"
        setting = unit.last(section, f"Standard{said.capitalize()}")
        loading.state(entry, AFTER, "systemd-journald.socket", implicit(setting, note))


def _logs_to_journal(loading: Loading, entry: Entry, section: str) -> str:
    """Return which of a unit's outputs goes to the journal or the kernel's log, "" for none."""
    manager = loading.manager
    service = entry.type == "service"
    output = _output(entry, section, "StandardOutput") or (
        "inherit" if service else "null" if entry.name == "-.mount" else manager.default_output
    )
    error = _output(entry, section, "StandardError") or (
        "inherit" if service else manager.default_error
    )
    if service and _input(entry) not in _INHERITABLE:
        if output == error == "inherit":
            error = manager.default_error
        if output == "inherit":
            output = manager.default_output
    if output in JOURNAL_OUTPUTS:
        return "output"
    return "error" if error in JOURNAL_OUTPUTS else ""


def _output(entry: Entry, section: str, key: str) -> str:
    """Return where an output goes, "" where nothing valid is said."""
    for setting in reversed(entry.unit.all(section, key)):
        value = _OBSOLETE.get(setting.value, setting.value)
        if value in _OUTPUTS:
            return value
        if value.startswith(_FILE_OUTPUTS) and value.partition(":")[2]:
            return "file"
    return ""


def _input(entry: Entry) -> str:
    for setting in reversed(entry.unit.all("Service", "StandardInput")):
        value = setting.value.partition(":")[0]
        if setting.value in _INPUTS or value in ("fd", "file"):
            return value
    return "null"
