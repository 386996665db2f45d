"""From a name to a unit: fragment, drop-ins, links, load state. On demand, each unit once.

Knows the order in which systemd reads the files of a unit. Must not know what settings mean, but
for what decides the load state (`verify`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sdqueue.unitfile import dropins
from sdqueue.unitfile.files import Entry, Files, Kind
from sdqueue.unitfile.namemap import Found, NameMap
from sdqueue.unitfile.parse import Parsed, parse
from sdqueue.unitfile.refs import fill_template
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import Link, LinkKind, LoadState, Unit
from sdqueue.unitfile.verify import refusal, until_fatal
from sdqueue.words import unitname
from sdqueue.words.problem import Problem
from sdqueue.words.unitname import NameKind

PERPETUAL = frozenset(("-.slice", "init.scope", "-.mount"))
PERPETUAL_SYSTEM = PERPETUAL | {"system.slice"}
NEEDS_NO_FILE = frozenset(("slice", "device"))
LINKS: tuple[tuple[LinkKind, int], ...] = (("wants", 0), ("requires", 0), ("upholds", 254))


@dataclass(slots=True)
class UnitSet:
    """All units of a search path, loaded when asked for.

    `version` is the systemd whose rules count, `present` names units that are there without a file
    (mounts that the kernel has). A name and its aliases give the same object. `transient` units do
    not exist here.
    """

    files: Files
    host: Host = field(default_factory=Host)
    version: int = 257
    user: bool = False
    present: frozenset[str] = frozenset()
    _names: NameMap | None = None
    _units: dict[str, Unit] = field(default_factory=dict)
    _parsed: dict[str, Parsed | Problem] = field(default_factory=dict)

    @property
    def names(self) -> NameMap:
        """The map of all names in the search path."""
        if self._names is None:
            self._names = NameMap.of(self.files)
        return self._names

    @property
    def perpetual(self) -> frozenset[str]:
        """The units that are always there and can't be masked."""
        return PERPETUAL if self.user else PERPETUAL_SYSTEM

    @property
    def units(self) -> tuple[Unit, ...]:
        """Every unit loaded so far, once."""
        return tuple({id(unit): unit for unit in self._units.values()}.values())

    def get(self, name: str) -> Unit:
        """Return the unit that `name` means, loaded; ValueError for no name of a unit.

        What is wrong with its files is in its `load_state` and its `problems`. Differs: an alias of
        a masked unit gives that unit, but is among its names only if it was asked for first.
        """
        unit = self._units.get(name)
        if unit is None:
            if unitname.kind_of(name) in (None, NameKind.TEMPLATE):
                raise ValueError(f"{name}: not the name of a unit")
            unit = self._load(name)
            unit = self._units.get(unit.name, unit)
            for each in (name, *unit.names):
                self._units.setdefault(each, unit)
        return unit

    def fragment_file(self, name: str) -> str | None:
        """Return the file that `name` is read from, without loading the unit."""
        entry = self.names.find(name).entry
        return entry.file if entry else None

    def known(self) -> Iterator[str]:
        """Yield every name, templates too, that has a file or a link in the search path."""
        return iter(self.names.ids)

    def _load(self, name: str) -> Unit:
        found = self.names.find(name)
        unit = self._fragment(name, found)
        if unit.load_state is LoadState.NOT_FOUND:
            if unit.problems or not self._needs_no_file(unit.name):
                return unit
            unit = replace(unit, load_state=LoadState.LOADED, extras=True)
        if unit.load_state not in (LoadState.LOADED, LoadState.MASKED):
            return unit
        unit = self._with_links(self._with_dropins(unit))
        refused = unit.loaded and refusal(unit, self.host, self.version)
        if not refused:
            return unit
        problems = (*unit.problems, refused.problem(unit))
        state, extras = refused.load_state, refused.extras
        return replace(unit, load_state=state, extras=extras, problems=problems)

    def _needs_no_file(self, name: str) -> bool:
        required = unitname.type_of(name) not in NEEDS_NO_FILE
        return not required or name in self.perpetual or name in self.present

    def _fragment(self, name: str, found: Found) -> Unit:
        """Read the unit file alone; re-enacts unit_load_fragment(), src/core/load-fragment.c."""
        kind, state = unitname.type_of(name), LoadState.NOT_FOUND
        unit = Unit(name, found.names, kind, state)
        if found.problem:
            return replace(unit, problems=(found.problem,))
        if found.entry is None:
            return unit
        masked = self.files.status(found.entry) is Kind.MASK
        read = Parsed(found.entry.file) if masked else self._read(found.entry)
        if isinstance(read, Problem):
            return replace(unit, problems=(read,))
        unit = replace(unit, name=found.id, fragment_file=found.entry.file)
        settings, fatal = until_fatal(read.settings, unit.name, self.host, unit.fragment_file)
        state = LoadState.LOADED
        if masked and name not in self.perpetual:
            state = LoadState.MASKED
        elif fatal:
            state = LoadState.BAD_SETTING
        elif read.failed:
            state = LoadState.ERROR
        return replace(
            unit,
            load_state=state,
            settings=settings,
            comments=read.comments,
            problems=(*read.problems, fatal) if fatal else read.problems,
            extras=state is LoadState.LOADED,
        )

    def _read(self, entry: Entry) -> Parsed | Problem:
        """Parse a file, once."""
        read = self._parsed.get(entry.file)
        if read is None:
            data = self.files.read(entry)
            read = data if isinstance(data, Problem) else parse(data, entry.file)
            self._parsed[entry.file] = read
        return read

    def _directories(self, unit: Unit, suffix: str) -> Iterator[str]:
        aliases = tuple(sorted(unit.names - {unit.name}))
        known = self.names.directories
        return dropins.directories(suffix, unit.name, aliases, self.files.search_path, known)

    def _with_dropins(self, unit: Unit) -> Unit:
        """Add drop-ins; re-enacts unit_load_dropin(), src/core/load-dropin.c, v252."""
        entries = dropins.entries(self._directories(unit, ".d"), ".conf", self.files)
        if not entries:
            return unit
        settings, comments, problems = (
            list(unit.settings),
            list(unit.comments),
            list(unit.problems),
        )
        for entry in entries:
            if self.files.status(entry) is Kind.MASK:
                continue
            read = self._read(entry)
            if isinstance(read, Problem):
                problems.append(read)
                continue
            taken, fatal = until_fatal(read.settings, unit.name, self.host, unit.fragment_file)
            settings += taken
            problems += [fatal] if fatal else []
            comments += read.comments
            problems += read.problems
        return replace(
            unit,
            dropin_files=tuple(entry.file for entry in entries),
            settings=tuple(settings),
            comments=tuple(comments),
            problems=tuple(problems),
        )

    def _with_links(self, unit: Unit) -> Unit:
        """Add `.wants/` and the like; re-enacts process_deps(), src/core/load-dropin.c, v252."""
        links: list[Link] = []
        problems: list[Problem] = []
        for kind, since in LINKS:
            if self.version < since:
                continue
            for entry in dropins.entries(self._directories(unit, f".{kind}"), "", self.files):
                made = self._link(unit, kind, entry)
                if isinstance(made, Problem):
                    problems.append(made)
                    continue
                links.append(made)
                wrong = _link_mismatch(unit, entry) if not made.masked else ""
                if wrong:
                    problems.append(Problem(entry.file, 0, wrong, "warning"))
        return replace(unit, links=tuple(links), problems=(*unit.problems, *problems))

    def _link(self, unit: Unit, kind: LinkKind, entry: Entry) -> Link | Problem:
        masked = self.files.status(entry) is Kind.MASK
        if entry.kind is not Kind.LINK and not masked:
            return Problem(entry.file, 0, "not a symbolic link, ignored", "warning")
        try:
            other = fill_template(unit.name, entry.name)
        except ValueError as error:
            return Problem(entry.file, 0, f"{error}, ignored", "warning")
        if not unitname.is_valid(other):
            return Problem(entry.file, 0, "not a valid unit name, ignored", "warning")
        return Link(kind, other, entry.file, masked, entry.install)


def _link_mismatch(unit: Unit, entry: Entry) -> str:
    """Say how an entry's name differs from what it links to; "" where it does not.

    Re-enacts unit_symlink_name_compatible(), src/basic/unit-file.c, v252.
    """
    target = entry.text.rstrip("/").rpartition("/")[2]
    kind = unitname.kind_of(entry.name)
    spreads = kind is NameKind.TEMPLATE and unitname.is_instance(unit.name)
    if target == entry.name and (kind is not NameKind.TEMPLATE or spreads):
        return ""
    if kind is NameKind.INSTANCE and target == unitname.template_of(entry.name):
        return ""
    return f"links to {entry.text}, a different name; the name of the link counts"
