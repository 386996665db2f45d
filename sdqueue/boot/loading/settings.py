"""What the lines of a unit's files state, in the order in which they stand there.

Knows the settings whose reading names other units: dependency lists, slices, sockets and triggers.
All others are looked at when the files are read (`types`).

Re-enacts config_parse_unit_deps(), config_parse_unit_slice(), config_parse_service_sockets(),
config_parse_socket_service(), config_parse_trigger_unit() and
config_parse_unit_requires_mounts_for(), src/core/load-fragment.c, and process_deps(),
src/core/load-dropin.c, v252.
"""

from collections.abc import Callable, Iterable

import sdqueue.boot.loading.values as values
from sdqueue.boot.graph import Kind, Origin
from sdqueue.boot.loading.mountneeds import need_mounts
from sdqueue.boot.loading.queue import HAS_CGROUP, Entry, Loading, MountsKind
from sdqueue.unitfile.specifier import repeats_instance
from sdqueue.unitfile.split import words
from sdqueue.unitfile.unit import Link, Setting
from sdqueue.words import unitname

Handler = Callable[[Loading, Entry, Setting, Origin], None]

DEPENDENCY_KEYS: dict[str, Kind] = {
    "Requires": "Requires",
    "Requisite": "Requisite",
    "Wants": "Wants",
    "BindsTo": "BindsTo",
    "BindTo": "BindsTo",
    "Upholds": "Upholds",
    "Conflicts": "Conflicts",
    "Before": "Before",
    "After": "After",
    "OnSuccess": "OnSuccess",
    "OnFailure": "OnFailure",
    "PropagatesReloadTo": "PropagatesReloadTo",
    "PropagateReloadTo": "PropagatesReloadTo",
    "ReloadPropagatedFrom": "ReloadPropagatedFrom",
    "PropagateReloadFrom": "ReloadPropagatedFrom",
    "PropagatesStopTo": "PropagatesStopTo",
    "StopPropagatedFrom": "StopPropagatedFrom",
    "PartOf": "PartOf",
    "JoinsNamespaceOf": "JoinsNamespaceOf",
    "RequiresOverridable": "Requires",
    "RequisiteOverridable": "Requisite",
}
"""Dependency lists of [Unit], obsolete spellings among them, and what each states."""

MOUNTS_FOR_KEYS: dict[str, tuple[MountsKind, int]] = {
    "RequiresMountsFor": ("Requires", 0),
    "WantsMountsFor": ("Wants", 256),
}
LINK_KINDS: dict[str, Kind] = {"wants": "Wants", "requires": "Requires", "upholds": "Upholds"}


def apply_settings(loading: Loading, entry: Entry, settings: Iterable[Setting], kind: str) -> None:
    """State what these lines say; `kind` is "file" or "dropin"."""
    handlers = HANDLERS[entry.type]
    for setting in settings:
        handler = handlers.get((setting.section, setting.key))
        if handler is not None:
            place = setting.place
            origin = Origin("dropin" if kind == "dropin" else "file", place.file, place.line)
            handler(loading, entry, setting, origin)


def apply_links(loading: Loading, entry: Entry, links: Iterable[Link]) -> None:
    """State what the entries of .wants/, .requires/ and .upholds/ directories say."""
    for link in links:
        if link.masked:
            continue
        if link.install is None:
            origin = Origin("link", link.file)
        else:
            origin = Origin("install", link.install.file, link.install.line)
        loading.state(entry, (LINK_KINDS[link.kind],), link.other, origin)


def _dependencies(loading: Loading, entry: Entry, setting: Setting, origin: Origin) -> None:
    kinds = (DEPENDENCY_KEYS[setting.key],)
    for word in words(setting.value):
        name = values.expand_name(entry.speaks_as, word, loading.manager.host)
        if name is not None and not _endless(loading, entry, name, word):
            loading.state(entry, kinds, name, origin)


def _endless(loading: Loading, entry: Entry, name: str, word: str) -> bool:
    """Say whether a template would pull in ever more instances of itself.

    Re-enacts unit_is_likely_recursive_template_dependency(), src/core/load-fragment.c, v252.
    """
    return (
        repeats_instance(word)
        and unitname.is_instance(name)
        and unitname.prefix_of(name) == unitname.prefix_of(entry.name)
        and unitname.type_of(name) == entry.type
        and loading.fragment_of(name) == entry.unit.fragment_file
    )


def _mounts_for(loading: Loading, entry: Entry, setting: Setting, origin: Origin) -> None:
    kind, since = MOUNTS_FOR_KEYS[setting.key]
    if loading.manager.version < since:
        return
    for word, _ in values.tuples([setting]):
        path = values.absolute(entry.unit, word, loading.manager.host)
        if path:
            note = f"{setting.key}={path}"
            needed = Origin("implicit", origin.file, origin.line, note, "file")
            need_mounts(loading, entry, kind, path, needed)


def _slice(loading: Loading, entry: Entry, setting: Setting, origin: Origin) -> None:
    name = values.expand_name(entry.speaks_as, setting.value, loading.manager.host)
    slice_ = loading.refer(name) if name else None
    if slice_ is None or slice_.type != "slice" or entry.type == "slice":
        return
    if entry.name == "init.scope" and slice_.name != unitname.ROOT_SLICE:
        return
    entry.slice = (slice_, Origin("implicit", origin.file, origin.line, "Slice=", "slice-property"))


def _sockets(loading: Loading, entry: Entry, setting: Setting, origin: Origin) -> None:
    for word in words(setting.value):
        name = values.expand_name(entry.speaks_as, word, loading.manager.host)
        if name and name.endswith(".socket"):
            loading.state(entry, ("Wants", "After"), name, origin)
            loading.state(entry, ("TriggeredBy",), name, origin)


def _socket_service(loading: Loading, entry: Entry, setting: Setting, origin: Origin) -> None:
    del origin
    name = values.expand_name(entry.speaks_as, setting.value, loading.manager.host)
    if name and name.endswith(".service"):
        entry.service = loading.refer(name) or entry.service


def _trigger(loading: Loading, entry: Entry, setting: Setting, origin: Origin) -> None:
    name = values.expand_name(entry.speaks_as, setting.value, loading.manager.host)
    if not name or loading.triggers(entry) or name == entry.name or not unitname.is_valid(name):
        return
    loading.state(entry, ("Before", "Triggers"), name, origin)


def _handlers(unit_type: str) -> dict[tuple[str, str], Handler]:
    table: dict[tuple[str, str], Handler] = {
        ("Unit", key): _dependencies for key in DEPENDENCY_KEYS
    }
    table |= {("Unit", key): _mounts_for for key in MOUNTS_FOR_KEYS}
    section = unit_type.capitalize()
    if unit_type in HAS_CGROUP:
        table[section, "Slice"] = _slice
    table |= {place: handler for place, handler in _OF_TYPE.items() if place[0] == section}
    return table


_OF_TYPE: dict[tuple[str, str], Handler] = {
    ("Service", "Sockets"): _sockets,
    ("Socket", "Service"): _socket_service,
    ("Timer", "Unit"): _trigger,
    ("Path", "Unit"): _trigger,
}
HANDLERS = {unit_type: _handlers(unit_type) for unit_type in unitname.UNIT_TYPES}
