"""From a name to a unit: fragment, drop-ins, links, load state. On demand, each unit once.

Knows the order in which systemd reads the files of a unit. Must not know what settings mean, but
for what decides the load state (`fatal`, `refusal`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sdqueue.unitfile import dropins
from sdqueue.unitfile.fatal import until_fatal
from sdqueue.unitfile.files import Entry, Files, Kind
from sdqueue.unitfile.namemap import Found, NameMap
from sdqueue.unitfile.parse import Parsed, parse
from sdqueue.unitfile.refs import fill_template
from sdqueue.unitfile.refusal import refusal
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import Comment, Link, LinkKind, LoadState, Setting, Unit
from sdqueue.words import unitname
from sdqueue.words.problem import Problem
from sdqueue.words.unitname import NameKind

PERPETUAL = frozenset(("-.slice", "init.scope", "-.mount"))
PERPETUAL_SYSTEM = PERPETUAL | {"system.slice"}
NEEDS_NO_FILE = frozenset(("slice", "device"))
# v259, and the later releases of v257: drop-ins and links of a masked unit are not read.
MASKED_IS_BARE_SINCE = 257
# Checked: v257 takes an entry of .wants/ that links to itself, v262 does not.
LOOPS_DO_NOT_COUNT_SINCE = 258
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
        draft = self._fragment(name, self.names.find(name))
        if draft.load_state is LoadState.NOT_FOUND:
            if draft.problems or not self._needs_no_file(draft.name):
                return draft.unit()
            draft.load_state, draft.extras = LoadState.LOADED, True
        masked = draft.load_state is LoadState.MASKED and self.version < MASKED_IS_BARE_SINCE
        if draft.load_state is LoadState.LOADED or masked:
            self._add_links(draft)
            self._add_dropins(draft)
        unit = draft.unit()
        refused = unit.loaded and refusal(unit, self.host, self.version)
        if not refused:
            return unit
        draft.problems.append(refused.problem(unit))
        draft.load_state, draft.extras = refused.load_state, refused.extras
        return draft.unit()

    def _needs_no_file(self, name: str) -> bool:
        required = unitname.type_of(name) not in NEEDS_NO_FILE
        return not required or name in self.perpetual or name in self.present

    def _fragment(self, name: str, found: Found) -> "_Draft":
        """Read the unit file alone; re-enacts unit_load_fragment(), src/core/load-fragment.c.

        Aliases are merged after the file was read well: of a file with a fault each name is a unit.
        """
        kind = unitname.type_of(name)
        draft = _Draft(name, frozenset((name,)), kind, self.host, self.version)
        if found.problem:
            draft.problems.append(found.problem)
        if found.entry is None:
            draft.names = found.names
            return draft
        masked = self.files.status(found.entry) is Kind.MASK
        read = Parsed(found.entry.file) if masked else self._read(found.entry)
        if isinstance(read, Problem):
            draft.problems.append(read)
            return draft
        draft.fragment_file = found.entry.file
        if draft.take(read):
            draft.load_state = LoadState.BAD_SETTING
        elif read.failed:
            draft.load_state = LoadState.ERROR
        else:
            draft.name, draft.names = found.id, found.names
            hidden = masked and name not in self.perpetual
            draft.load_state = LoadState.MASKED if hidden else LoadState.LOADED
        draft.extras = draft.load_state is LoadState.LOADED
        return draft

    def _read(self, entry: Entry) -> Parsed | Problem:
        """Parse a file, once."""
        read = self._parsed.get(entry.file)
        if read is None:
            data = self.files.read(entry)
            read = data if isinstance(data, Problem) else parse(data, entry.file)
            self._parsed[entry.file] = read
        return read

    def _entries(self, draft: "_Draft", directory: str, suffix: str) -> list[Entry]:
        aliases = tuple(sorted(draft.names - {draft.name}))
        known = self.names.directories
        path = self.files.search_path
        places = dropins.directories(directory, draft.name, aliases, path, known)
        loops_count = self.version < LOOPS_DO_NOT_COUNT_SINCE
        return dropins.entries(places, suffix, self.files, loops_count=loops_count)

    def _add_dropins(self, draft: "_Draft") -> None:
        """Add drop-ins; re-enacts unit_load_dropin(), src/core/load-dropin.c, v252."""
        for entry in self._entries(draft, ".d", ".conf"):
            draft.dropin_files.append(entry.file)
            if self.files.status(entry) is Kind.MASK:
                continue
            read = self._read(entry)
            if isinstance(read, Problem):
                draft.problems.append(read)
            else:
                draft.take(read)

    def _add_links(self, draft: "_Draft") -> None:
        """Add `.wants/` and the like; re-enacts process_deps(), src/core/load-dropin.c, v252."""
        for kind, since in LINKS:
            if self.version < since:
                continue
            for entry in self._entries(draft, f".{kind}", ""):
                made = self._link(draft.name, kind, entry)
                if isinstance(made, Problem):
                    draft.problems.append(made)
                    continue
                draft.links.append(made)
                wrong = _link_mismatch(draft.name, entry) if not made.masked else ""
                if wrong:
                    draft.problems.append(Problem(entry.file, 0, wrong, "warning"))

    def _link(self, unit: str, kind: LinkKind, entry: Entry) -> Link | Problem:
        masked = self.files.status(entry) is Kind.MASK
        if entry.kind is not Kind.LINK and not masked:
            return Problem(entry.file, 0, "not a symbolic link, ignored", "warning")
        try:
            other = fill_template(unit, entry.name)
        except ValueError as error:
            return Problem(entry.file, 0, f"{error}, ignored", "warning")
        if not unitname.is_valid(other):
            return Problem(entry.file, 0, "not a valid unit name, ignored", "warning")
        return Link(kind, other, entry.file, masked, entry.install)


@dataclass(slots=True)
class _Draft:
    """A unit while its files are read."""

    name: str
    names: frozenset[str]
    type: str
    host: Host
    version: int
    load_state: LoadState = LoadState.NOT_FOUND
    fragment_file: str | None = None
    extras: bool = False
    dropin_files: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def take(self, read: Parsed) -> bool:
        """Add what one file says; True where a setting in it is refused."""
        taken, fatal = until_fatal(
            read.settings, self.name, self.host, self.fragment_file, self.version
        )
        self.settings += taken
        self.comments += read.comments
        self.problems += read.problems
        if fatal:
            self.problems.append(fatal)
        return fatal is not None

    def unit(self) -> Unit:
        """Return the unit as it stands."""
        return Unit(
            self.name,
            self.names,
            self.type,
            self.load_state,
            self.fragment_file,
            tuple(self.dropin_files),
            tuple(self.settings),
            tuple(self.links),
            tuple(self.comments),
            tuple(self.problems),
            self.extras,
        )


def _link_mismatch(unit: str, entry: Entry) -> str:
    """Say how an entry's name differs from what it links to; "" where it does not.

    Re-enacts unit_symlink_name_compatible(), src/basic/unit-file.c, v252.
    """
    target = entry.text.rstrip("/").rpartition("/")[2]
    kind = unitname.kind_of(entry.name)
    spreads = kind is NameKind.TEMPLATE and unitname.is_instance(unit)
    if target == entry.name and (kind is not NameKind.TEMPLATE or spreads):
        return ""
    if kind is NameKind.INSTANCE and target == unitname.template_of(entry.name):
        return ""
    return f"links to {entry.text}, a different name; the name of the link counts"
