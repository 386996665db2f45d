"""In which slice a unit runs, and what that and its memory settings make it depend on.

Re-enacts unit_set_default_slice(), unit_add_slice_dependencies() and
unit_add_oomd_dependencies(), src/core/unit.c, v252 to v262.
"""

from sdqueue.boot.graph import Kind, Origin
from sdqueue.boot.loading.mounts import in_force
from sdqueue.boot.loading.queue import Entry, Loading
from sdqueue.boot.loading.values import implicit, last_word, listed
from sdqueue.words import unitname

OOM_RULES_SINCE = 261
NEED: tuple[Kind, ...] = ("After", "Requires")


def state_slice(loading: Loading, entry: Entry) -> None:
    if entry.slice is not None:
        slice_, origin = entry.slice
        loading.add(entry, "InSlice", slice_, origin)


def order_after_slice(loading: Loading, entry: Entry) -> None:
    word = "implicit" if entry.type == "slice" else "file"
    if entry.slice is not None:
        slice_, said = entry.slice
        origin = Origin("implicit", said.file, said.line, said.note, word)
        for kind in NEED:
            loading.add(entry, kind, slice_, origin)
    elif entry.name != unitname.ROOT_SLICE:
        origin = Origin("implicit", note="every unit is in a slice", word=word)
        loading.state(entry, NEED, unitname.ROOT_SLICE, origin)


def need_oomd(loading: Loading, entry: Entry) -> None:
    """Re-enacts unit_add_oomd_dependencies(), src/core/unit.c, v252."""
    if not entry.default_dependencies or not loading.manager.memory_controller:
        return
    section, unit = entry.type.capitalize(), entry.unit
    words = frozenset({"auto", "kill"})
    for key in ("ManagedOOMSwap", "ManagedOOMMemoryPressure"):
        if last_word(unit, section, key, words) == "kill":
            origin = implicit(unit.last(section, key), f"{key}=kill")
            loading.state(entry, ("After", "Wants"), "systemd-oomd.service", origin)
            return
    rules = listed(unit, section, ("OOMRules",))
    if rules and loading.manager.version >= OOM_RULES_SINCE:
        origin = implicit(rules[0], "OOMRules=")
        loading.state(entry, ("After", "Wants"), "systemd-oomd.service", origin)


def set_default_slice(loading: Loading, entry: Entry) -> None:
    """Re-enacts unit_set_default_slice(), src/core/unit.c, v252."""
    if entry.slice is not None:
        return
    instance = unitname.instance_of(entry.name)
    user = loading.manager.user
    if instance:
        prefix = unitname.escape(unitname.prefix_of(entry.name))
        name = f"{'app' if user else 'system'}-{prefix}.slice"
        note = "instances of a template are in a slice of their own"
    elif is_extrinsic(loading, entry):
        name, note = unitname.ROOT_SLICE, "outside all other slices"
    else:
        name, note = ("app.slice" if user else "system.slice"), "the default slice"
    slice_ = loading.refer(name)
    if slice_ is not None:
        entry.slice = (slice_, Origin("implicit", note=note, word="slice-property"))


def is_extrinsic(loading: Loading, entry: Entry) -> bool:
    """Re-enacts unit_is_extrinsic(), src/core/unit.c, v252."""
    if entry.perpetual:
        return True
    if entry.type == "mount":
        return in_force(loading, entry).extrinsic(user=loading.manager.user)
    return entry.type == "swap" and loading.manager.user
