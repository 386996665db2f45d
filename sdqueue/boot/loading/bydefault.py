"""What a unit gets without a word: its default dependencies, and the unit of its own name."""

from sdqueue.boot.graph import Kind, Origin
from sdqueue.boot.loading.queue import Entry, Loading
from sdqueue.boot.loading.table import Trait, defaults

TRIGGER: tuple[Kind, ...] = ("Before", "Triggers")
_ORIGINS: dict[tuple[str, str], Origin] = {}


def state_defaults(
    loading: Loading, entry: Entry, traits: frozenset[Trait] = frozenset(), word: str = ""
) -> None:
    """State what DefaultDependencies=yes gives, if it isn't no."""
    if not entry.default_dependencies:
        return
    manager = loading.manager
    for row in defaults(entry.type, manager.version, traits, user=manager.user):
        origin = _default_origin(row.type, word)
        loading.state(entry, row.kinds, row.other, origin)


def _default_origin(unit_type: str, word: str) -> Origin:
    note = f"default dependency of a {unit_type}"
    return _ORIGINS.setdefault((unit_type, word), Origin("default", note=note, word=word))


def trigger_related(loading: Loading, entry: Entry, unit_type: str) -> None:
    """Let a unit trigger the one of its own name, unless it says which."""
    if loading.triggers(entry):
        return
    other = loading.related(entry, unit_type)
    if other is not None:
        for kind in TRIGGER:
            loading.add(entry, kind, other, Origin("implicit", note="the unit of the same name"))
