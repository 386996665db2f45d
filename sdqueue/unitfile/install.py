"""[Install]: what a unit file says about being enabled, and where that was found.

Knows the keys of the section and how `systemctl enable` looks for the files that may hold them,
which is not how PID 1 does it: it follows aliases one by one and knows no dash prefixes. Makes no
links (`enable`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sdqueue.unitfile import dropins
from sdqueue.unitfile.files import Entry, Files, Kind
from sdqueue.unitfile.namemap import alias_fault
from sdqueue.unitfile.parse import parse
from sdqueue.unitfile.specifier import NAME_SPECIFIERS, Host, Lookup, expand
from sdqueue.unitfile.split import BLANKS, strv
from sdqueue.unitfile.unit import Place, Setting
from sdqueue.words import unitname
from sdqueue.words.problem import Problem
from sdqueue.words.unitname import MAY_ALIAS, MAY_TEMPLATE, NameKind

LISTS: Mapping[str, int] = {"Alias": 0, "WantedBy": 0, "RequiredBy": 0, "UpheldBy": 254}
Word = tuple[str, Place]


class InstallError(Exception):
    """What ends `systemctl enable`; `problem` says it with its place."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(file, line, message)


class Mode(StrEnum):
    """What a name was found to be."""

    REGULAR = "regular"
    ALIAS = "alias"
    LINKED = "linked"
    MASKED = "masked"


@dataclass(slots=True)
class Info:
    """One unit on the way to being enabled; filled in while its files are found.

    `auxiliary`: only an Also= asked for it, so that its failure is none of the whole.
    """

    name: str
    auxiliary: bool = False
    path: str = ""
    mode: Mode | None = None
    target: str = ""
    lists: dict[str, list[Word]] = field(default_factory=lambda: {key: [] for key in LISTS})
    also: list[str] = field(default_factory=list)
    default_instance: str = ""

    @property
    def filled(self) -> str:
        """The name, a template filled with its default instance."""
        if unitname.is_template(self.name) and self.default_instance:
            return unitname.with_instance(self.name, self.default_instance)
        return self.name

    @property
    def has_rules(self) -> bool:
        """Whether enabling this would make any link or enable anything else."""
        return any(self.lists.values()) or bool(self.also)


def expand_install(info: Info, text: str, host: Host) -> str:
    """Expand a specifier of [Install]; a template speaks as its default instance.

    Re-enacts install_name_printf(), src/shared/install-printf.c, v252.
    """
    own: dict[str, Lookup] = {
        "p": lambda _u, _f, _h: unitname.prefix_of(info.name),
        "i": lambda _u, _f, _h: unitname.instance_of(info.name) or info.default_instance,
    }
    return expand(text, info.filled, host, table={**NAME_SPECIFIERS, **own})


@dataclass(slots=True)
class Finder:
    """Finds the files of a unit and reads their [Install] sections into an `Info`.

    `also` collects the names that Also= asked for, in order; `made` holds links that are not there
    yet but are to be seen as if they were.
    """

    files: Files
    host: Host
    version: int
    also: list[str] = field(default_factory=list)
    made: dict[str, Entry] = field(default_factory=dict)

    def search(self, info: Info, *, load: bool = True) -> None:
        """Find what `info.name` is; InstallError or KeyError (no such file).

        Re-enacts unit_file_search(), src/shared/install.c, v252.
        """
        if info.mode is not None:
            return
        template = unitname.template_of(info.name) if unitname.is_instance(info.name) else ""
        for name in (info.name, template) if template else (info.name,):
            entry = self._first(name)
            if entry is not None:
                break
        else:
            raise KeyError(info.name)
        self._load_or_readlink(info, entry, load=load)
        info.path = entry.path
        if info.mode is Mode.MASKED or not load:
            return
        names = (info.name, template) if template else (info.name,)
        places = (f"{place}/{name}.d" for name in names for place in self.files.search_path)
        for dropin in dropins.entries(places, ".conf", self.files):
            self._read(info, dropin, dropin=True)

    def follow(self, info: Info) -> None:
        """Go on at the target of a link; re-enacts install_info_follow(), v252."""
        entry = self.at(info.target)
        if entry is None:
            raise InstallError(info.path, 0, f"a link to {info.target}, which is not there")
        info.path, info.mode = info.target, None
        self._load_or_readlink(info, entry, load=True)

    def _first(self, name: str) -> Entry | None:
        for place in self.files.search_path:
            entry = self.at(f"{place}/{name}")
            if entry is not None:
                return entry
        return None

    def at(self, path: str) -> Entry | None:
        """Return what is at a path, or would be."""
        parent, _, name = path.rpartition("/")
        return self.made.get(path) or self.files.listing(parent).get(name)

    def _load_or_readlink(self, info: Info, entry: Entry, *, load: bool) -> None:
        kind = unitname.type_of(info.name)
        if unitname.kind_of(info.name) is not NameKind.PLAIN and kind not in MAY_TEMPLATE:
            raise InstallError(entry.file, 0, f"a {kind} unit can't be a template")
        if entry.kind is Kind.LINK:
            self._readlink(info, entry)
        elif entry.kind is not Kind.FILE:
            raise InstallError(entry.file, 0, "not a regular file")
        elif self.files.status(entry) is Kind.MASK:
            info.mode = Mode.MASKED
        else:
            if load:
                self._read(info, entry, dropin=False)
            info.mode = Mode.REGULAR

    def _readlink(self, info: Info, entry: Entry) -> None:
        """Re-enacts unit_file_load_or_readlink(), src/shared/install.c, v252."""
        outside = not any(entry.target.startswith(f"{d}/") for d in self.files.search_path)
        name = entry.target.rpartition("/")[2]
        fault = "" if outside else (alias_fault(entry.name, name) or _to_itself(entry.name, name))
        if fault:
            raise InstallError(entry.file, 0, f"link to {name} is no alias: {fault}")
        info.target = entry.target
        if self.files.status(entry) is Kind.MASK:
            info.mode = Mode.MASKED
        else:
            info.mode = Mode.LINKED if outside else Mode.ALIAS

    def _read(self, info: Info, entry: Entry, *, dropin: bool) -> None:
        if dropin and self.files.status(entry) is Kind.MASK:
            return
        data = self.files.read(entry)
        if isinstance(data, Problem):
            raise InstallError(data.file, data.line, data.message)
        read = parse(data, entry.file)
        for setting in read.settings:
            if setting.section == "Install":
                self._take(info, setting)
        if read.failed:
            fault = read.problems[-1]
            raise InstallError(fault.file, fault.line, fault.message)

    def _take(self, info: Info, setting: Setting) -> None:
        key, value, place = setting.key, setting.value, setting.place
        if key == "Also":
            self._take_also(info, setting)
        elif key == "DefaultInstance":
            self._take_instance(info, setting)
        elif key in LISTS and LISTS[key] <= self.version:
            if key == "Alias" and unitname.type_of(info.name) not in MAY_ALIAS:
                return
            if not value:
                info.lists[key].clear()
            info.lists[key] += [(word, place) for word in strv(value)]

    def _take_also(self, info: Info, setting: Setting) -> None:
        place = setting.place
        for word in _words_without_backslashes(setting):
            try:
                name = expand_install(info, word, self.host)
            except ValueError:
                name = ""
            if not unitname.is_valid(name):
                raise InstallError(place.file, place.line, f"Also={word}: not a valid unit name")
            info.also.append(name)
            self.also.append(name)

    def _take_instance(self, info: Info, setting: Setting) -> None:
        if not unitname.is_template(info.name):
            return
        place = setting.place
        try:
            instance = expand_install(info, setting.value, self.host)
        except ValueError as error:
            raise InstallError(place.file, place.line, f"DefaultInstance=: {error}") from None
        if instance and not unitname.instance_is_valid(instance):
            message = f"DefaultInstance={instance}: not a valid instance"
            raise InstallError(place.file, place.line, message)
        info.default_instance = instance


def _to_itself(source: str, target: str) -> str:
    return "it leads to itself" if source == target else ""


def _words_without_backslashes(setting: Setting) -> list[str]:
    """Split as extract_first_word() without flags does: a backslash only goes away."""
    text, place = setting.value, setting.place
    out: list[str] = []
    rest = iter(text.strip(BLANKS))
    for char in rest:
        if char == "\\":
            following = next(rest, "")
            if not following:
                raise InstallError(place.file, place.line, "Also= ends in a backslash")
            out.append("\ue000" if following in BLANKS else following)
        else:
            out.append(" " if char in BLANKS else char)
    return [word.replace("\ue000", " ") for word in "".join(out).split(" ") if word]
