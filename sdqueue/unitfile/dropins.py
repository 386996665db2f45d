"""Which drop-in files a unit has, and which `.wants/` entries; order and shadowing.

Knows names and directories; reads no file.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from sdqueue.unitfile.files import Entry, Files, Kind
from sdqueue.words import unitname

_NOT_CONSIDERED = frozenset(("lost+found", "aquota.user", "aquota.group"))
_RPM = ("rpmnew", "rpmsave", "rpmorig")
_DPKG = ("dpkg-old", "dpkg-new", "dpkg-tmp", "dpkg-dist", "dpkg-bak", "dpkg-backup", "dpkg-remove")
_BACKUP = frozenset((*_RPM, *_DPKG, "ucf-new", "ucf-old", "ucf-dist", "swp", "bak", "old", "new"))


@lru_cache(maxsize=4096)
def names_looked_up(name: str) -> tuple[str, ...]:
    """Return the names whose directories count for a unit, in order; `name` may be a type.

    Re-enacts unit_file_find_dirs(), src/shared/dropin.c, v252.
    """
    found: tuple[str, ...] = (name,)
    if name in unitname.UNIT_TYPES:
        return found
    if unitname.is_instance(name):
        found += names_looked_up(unitname.template_of(name))
    shorter = unitname.less_specific(name)
    return found + names_looked_up(shorter) if shorter else found


def directories(
    suffix: str,
    name: str,
    aliases: tuple[str, ...],
    search_path: tuple[str, ...],
    known: Mapping[str, list[str]],
) -> Iterator[str]:
    """Yield the directories with `suffix` of a unit, most important first.

    A higher place in the search path beats a more specific name; only the directories of the type
    come after everything. `known` maps a directory's name to where there is one.
    """
    for group in (name, *aliases, unitname.type_of(name)):
        there = [each for each in names_looked_up(group) if f"{each}{suffix}" in known]
        for place in search_path if there else ():
            for each in there:
                path = f"{place}/{each}{suffix}"
                if path in known[f"{each}{suffix}"]:
                    yield path


def entries(
    paths: Iterator[str], suffix: str, files: Files, *, loops_count: bool = True
) -> list[Entry]:
    """Return the entries of all directories sorted by name, the first of each name only.

    Re-enacts conf_files_list_strv() without flags, src/basic/conf-files.c, v252. From v258 on a
    link without end is passed over (`loops_count` false), so that it hides nothing either.
    """
    chosen: dict[str, Entry] = {}
    for path in paths:
        for name, entry in files.listing(path).items():
            if not name.endswith(suffix) or name in chosen or is_hidden(name):
                continue
            if loops_count or files.status(entry) is not Kind.LOOP:
                chosen[name] = entry
    return sorted(chosen.values(), key=lambda entry: entry.name.encode("utf-8", "surrogateescape"))


def is_hidden(name: str) -> bool:
    """Say whether systemd passes over a file as hidden or a backup.

    Re-enacts hidden_or_backup_file(), src/basic/path-util.c, v252.
    """
    if name.startswith(".") or name.endswith("~") or name in _NOT_CONSIDERED:
        return True
    return name.rpartition(".")[2] in _BACKUP and "." in name
