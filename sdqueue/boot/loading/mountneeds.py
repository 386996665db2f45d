"""Who needs what is mounted where: RequiresMountsFor= and all that works like it.

A unit that needs a path needs each mount unit at or above it, as far as there are any. Of the two,
the one that is loaded later states the dependency.

Re-enacts unit_add_mounts_for() and unit_add_mount_dependencies(), src/core/unit.c, v262, and the
end of mount_add_mount_dependencies(), src/core/mount.c.
"""

from collections.abc import Iterator
from functools import lru_cache

from sdqueue.boot.graph import Origin
from sdqueue.boot.loading.queue import Entry, Loading, MountsKind
from sdqueue.words import unitname

MOUNTS_KINDS: tuple[MountsKind, ...] = ("Requires", "Wants")


def need_mounts(
    loading: Loading, entry: Entry, kind: MountsKind, path: str, origin: Origin
) -> None:
    """Let a unit need what is mounted at or above an absolute path; said twice, first counts.

    Re-enacts unit_add_mounts_for(), src/core/unit.c, v262.
    """
    path = unitname.simplify_path(path)
    wanted = entry.mounts_for.setdefault(kind, {})
    if path in wanted or not unitname.path_is_normalized(path):
        return
    wanted[path] = origin
    for prefix in prefixes(path):
        loading.needing.setdefault((kind, prefix), {})[entry] = None


def add_mount_dependencies(loading: Loading, entry: Entry) -> None:
    """State what a unit needs of mount units that are loaded, and queue those that aren't."""
    for kind, wanted in entry.mounts_for.items():
        for path, origin in wanted.items():
            for prefix in prefixes(path):
                _need_one(loading, entry, kind, prefix, origin)


def _need_one(
    loading: Loading, entry: Entry, kind: MountsKind, prefix: str, origin: Origin
) -> None:
    name = mount_name(prefix)
    mount = loading.known(name) if name else None
    if mount is None:
        if name:
            loading.prepare(name)
    elif mount is not entry and mount.load_state == "loaded":
        _need_mount(loading, entry, kind, mount, origin)


def _need_mount(
    loading: Loading, entry: Entry, kind: MountsKind, mount: Entry, origin: Origin
) -> None:
    loading.add(entry, "After", mount, origin)
    if mount.unit.fragment_file is not None:
        loading.add(entry, kind, mount, origin)


def serve_mounts(loading: Loading, mount: Entry, where: str) -> None:
    """State, for the units that are loaded and need this mount, that they do."""
    prefix = "" if where == "/" else where
    for kind in MOUNTS_KINDS:
        for other in loading.needing.get((kind, prefix), ()):
            if other.load_state == "loaded" and other is not mount:
                origin = _need_of(other, kind, prefix)
                path = Origin("implicit", origin.file, origin.line, origin.note, "path")
                _need_mount(loading, other, kind, mount, path)


@lru_cache(maxsize=65536)
def prefixes(path: str) -> tuple[str, ...]:
    """Return a path and all above it, the root as ""."""
    return tuple(_prefixes(path))


def _prefixes(path: str) -> Iterator[str]:
    path = path.rstrip("/")
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""


@lru_cache(maxsize=65536)
def mount_name(path: str) -> str | None:
    """Return the mount unit of a path, None where no unit could be named so."""
    try:
        return unitname.from_path(path or "/", "mount")
    except ValueError:
        return None


def _need_of(entry: Entry, kind: MountsKind, prefix: str) -> Origin:
    """Return the first need of a unit that lies at or below a path."""
    wanted = entry.mounts_for[kind]
    return next(o for path, o in wanted.items() if path == prefix or path.startswith(f"{prefix}/"))
