"""Which file a name stands for, and under which other names the same unit goes.

Knows the search path's rules of links: inside it they are aliases, out of it the unit is linked.
Reads no unit file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sdqueue.unitfile.files import Entry, Files, Kind
from sdqueue.words import unitname
from sdqueue.words.problem import Problem
from sdqueue.words.unitname import NameKind

FOLLOW_MAX = 8
SUFFIXES = (".wants", ".requires", ".upholds", ".d")


@dataclass(frozen=True, slots=True)
class Found:
    """`entry` is the fragment (None: there is none), `id` and `names` all names of the unit."""

    entry: Entry | None
    id: str
    names: frozenset[str]
    problem: Problem | None = None


@dataclass(slots=True)
class NameMap:
    """The two maps that systemd keeps of a search path, and its cache of directories.

    Re-enacts unit_file_build_name_map() and unit_file_find_fragment(), src/basic/unit-file.c,
    v252. `directories` maps `NAME.d`, `NAME.wants`… to where they are, highest priority first;
    `links` says which link makes a name an alias.
    Differs: a relative link to such a directory is followed from where it stands.
    """

    ids: dict[str, Entry | str] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    directories: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def of(cls, files: Files) -> "NameMap":
        """Look through the search path once."""
        names = cls()
        real = files.real_search_path()
        for directory in files.distinct_search_path():
            for entry in files.listing(directory).values():
                names._add(entry, real, files)
        names._reverse(files)
        return names

    def _add(self, entry: Entry, real: tuple[str, ...], files: Files) -> None:
        name = entry.name
        if unitname.is_valid(name):
            if name in self.ids or entry.kind not in (Kind.FILE, Kind.LINK):
                return
            destination = self._alias(entry, real) if entry.kind is Kind.LINK else entry
            if destination is not None:
                self.ids[name] = destination
            if isinstance(destination, str):
                self.links[name] = entry.file
        elif name.endswith(SUFFIXES) and _is_directory(entry, files):
            self.directories.setdefault(name, []).append(entry.path)

    def _alias(self, entry: Entry, real: tuple[str, ...]) -> Entry | str | None:
        """Return the name that a link in the search path is an alias of, the entry if linked."""
        if not any(entry.target.startswith(f"{directory}/") for directory in real):
            return entry
        target = entry.target.rpartition("/")[2]
        wrong = "" if target == entry.name else alias_fault(entry.name, target)
        if wrong:
            message = f"link to {target} is no alias: {wrong}, ignored"
            self.problems.append(Problem(entry.file, 0, message, "warning"))
        return None if wrong or target == entry.name else target

    def _reverse(self, files: Files) -> None:
        """Fill `aliases`: every name that is not masked is in the list of what it leads to."""
        for source in self.ids:
            entry = self.fragment(source)
            if not isinstance(entry, Entry):
                continue
            if entry.name == source and not unitname.is_template(source):
                continue
            if files.status(entry) in (Kind.MASK, Kind.MISSING, Kind.LOOP):
                continue
            try:
                target = _fill(entry.name, source) if unitname.is_instance(source) else entry.name
            except ValueError:
                continue
            self.aliases.setdefault(target, []).append(source)

    def fragment(self, name: str) -> Entry | LookupError | None:
        """Follow aliases to the file; None where that leads nowhere, LookupError for a loop.

        Re-enacts unit_ids_map_get(), src/basic/unit-file.c, v252.
        """
        current = name
        for hop in range(FOLLOW_MAX):
            found = self.ids.get(current)
            if found is None and hop and unitname.kind_of(current) is NameKind.INSTANCE:
                found = self.ids.get(unitname.template_of(current))
            if found is None or isinstance(found, Entry):
                return found
            current = found
        return LookupError(name)

    def find(self, name: str) -> Found:
        """Return the fragment, the id and all the names of the unit that `name` means.

        The id is what the file is called, with the instance put in; but for a masked template
        under an alias systemd keeps the name that was asked for. A loop of aliases, or one that
        makes too long a name, is a problem, and then there is no fragment.
        """
        try:
            return self._find(name)
        except (LookupError, ValueError) as error:
            problem = Problem(self.links.get(name, name), 0, str(error))
            return Found(None, name, frozenset((name,)), problem)

    def _find(self, name: str) -> Found:
        names = set(self._names(name, name, ""))
        entry = self.fragment(name)
        if entry is None and unitname.is_instance(name):
            entry = self.fragment(unitname.template_of(name))
        if isinstance(entry, LookupError):
            raise LookupError("a loop of alias links")
        if entry is not None and entry.name != name:
            names.update(self._names(entry.name, name, entry.name))
        wanted = _fill(entry.name, name) if entry else name
        filled = frozenset(_fill(each, name) for each in names)
        return Found(entry, wanted if wanted in names else name, filled)

    def _names(self, name: str, asked: str, fragment: str) -> Iterator[str]:
        """Yield what add_names() in unit-file.c adds for `name` when `asked` was asked for."""
        yield name
        kind = unitname.kind_of(asked)
        for alias in self.aliases.get(name, ()):
            if kind is not NameKind.INSTANCE or not unitname.is_template(alias):
                yield alias
                continue
            made = _fill(alias, asked)
            other = self.fragment(made)
            if not (isinstance(other, Entry) and fragment and other.name != fragment):
                yield made


def _fill(name: str, asked: str) -> str:
    """Put the instance of the name asked for into a template."""
    if not unitname.is_template(name):
        return name
    return unitname.with_instance(name, unitname.instance_of(asked) or "")


def alias_fault(source: str, target: str) -> str:
    """Return why `source` can't be an alias of `target`, "" where it can.

    Re-enacts unit_validate_alias_symlink_or_warn(), src/basic/unit-file.c, v252.
    """
    kind, wanted = unitname.kind_of(source), unitname.kind_of(target)
    if kind is None:
        return f"{source} is not a unit name"
    unit_type = unitname.type_of(source)
    if unit_type not in unitname.MAY_ALIAS:
        return f"a {unit_type} unit can't have aliases"
    if kind is not NameKind.PLAIN and unit_type not in unitname.MAY_TEMPLATE:
        return f"a {unit_type} unit can't be a template"
    if wanted is None:
        return f"{target} is not a unit name"
    if wanted is not kind and (kind, wanted) != (NameKind.INSTANCE, NameKind.TEMPLATE):
        return f"the one is of kind {kind}, the other of kind {wanted}"
    if wanted is NameKind.INSTANCE and unitname.instance_of(source) != unitname.instance_of(target):
        return "the instances differ"
    return "" if unitname.type_of(target) == unit_type else "the types differ"


def _is_directory(entry: Entry, files: Files) -> bool:
    name = entry.name.rpartition(".")[0]
    if not (unitname.is_valid(name) or name in unitname.UNIT_TYPES):
        return False
    if entry.kind is Kind.LINK:
        return files.status(entry) is Kind.DIRECTORY
    return entry.kind is Kind.DIRECTORY
