"""`systemctl enable`, simulated: which links it would make, each with the line that asks for it.

Knows the rules of [Install] and changes nothing; the links come out as values, to be laid over a
tree (`sdqueue.unitpath.Added`).

Re-enacts unit_file_enable(), src/shared/install.c, v252 (UpheldBy= v254). Differs: presets and
SysV scripts do not exist; a failure is a Problem and what was made before it stays, as there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sdqueue.unitfile.files import Entry, Files, Kind
from sdqueue.unitfile.install import Finder, Info, InstallError, Mode, Word, expand_install
from sdqueue.unitfile.namemap import alias_fault
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import Place
from sdqueue.words import unitname
from sdqueue.words.problem import Problem
from sdqueue.words.unitname import NameKind

FOLLOW_MAX = 64
WANTS = (("WantedBy", ".wants"), ("RequiredBy", ".requires"), ("UpheldBy", ".upholds"))
_GENERATED = ("/generator", "/generator.early", "/generator.late", "/transient")


@dataclass(frozen=True, slots=True)
class MadeLink:
    """A link that enabling makes at `path` (with the root in front), saying `text`.

    `unit` is the unit that asked for it, `place` the [Install] line, None for the link that brings
    a file from outside into the search path. `existed`: it is there already.
    """

    path: str
    text: str
    unit: str
    place: Place | None = None
    existed: bool = False


@dataclass(frozen=True, slots=True)
class Enabled:
    """The links in the order of making, and what would be complained of.

    `without_rules` are names that were asked for and have no [Install] rules at all.
    """

    links: tuple[MadeLink, ...] = ()
    problems: tuple[Problem, ...] = ()
    without_rules: tuple[str, ...] = ()


def enable(
    names: tuple[str, ...],
    files: Files,
    host: Host,
    *,
    config_dir: str,
    root: str = "",
    version: int = 257,
) -> Enabled:
    """Return what `systemctl --root=ROOT enable NAMES…` would do.

    `config_dir` is the directory that gets the links, with the root in front.
    """
    run = _Run(files, host, config_dir, root.rstrip("/"), version, Finder(files, host, version))
    try:
        for name in names:
            run.ask_for(name)
        run.apply()
    except InstallError as error:
        run.problems.append(error.problem)
    silent = tuple(each.name for each in run.asked if not each.has_rules)
    return Enabled(tuple(run.links.values()), tuple(run.problems), silent)


@dataclass(slots=True)
class _Run:
    """One call of `enable`: what is still to be processed, in order, and what was made."""

    files: Files
    host: Host
    config_dir: str
    root: str
    version: int
    finder: Finder
    asked: list[Info] = field(default_factory=list)
    infos: dict[str, Info] = field(default_factory=dict)
    links: dict[str, MadeLink] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def ask_for(self, name: str) -> None:
        """Add a unit that a person named; InstallError where that ends everything."""
        if not unitname.is_valid(name):
            raise InstallError(name, 0, "not a valid unit name")
        found = self._traverse(self._add(name, auxiliary=False), may_follow_config=True)
        self.asked.append(found)
        if found.mode is Mode.MASKED:
            raise InstallError(found.path, 0, "masked, can't be enabled")
        if found.path.rpartition("/")[0].endswith(_GENERATED):
            raise InstallError(found.path, 0, "generated or transient, can't be enabled")

    def apply(self) -> None:
        """Make the links of everything; re-enacts install_context_apply(), v252."""
        done = 0
        while done < len(self.infos):
            info = list(self.infos.values())[done]
            done += 1
            try:
                self._traverse(info, may_follow_config=False)
            except InstallError as error:
                if not info.auxiliary:
                    raise
                why = f"Also={info.name}: {error}, ignored"
                self.problems.append(Problem(error.problem.file, 0, why, "warning"))
                continue
            if info.mode is Mode.MASKED:
                self._warn(Place(info.path, 0), f"{info.name} is masked, ignored")
            elif info.mode is Mode.REGULAR:
                self._apply(info)

    def _add(self, name: str, *, auxiliary: bool) -> Info:
        info = self.infos.setdefault(name, Info(name, auxiliary))
        info.auxiliary = info.auxiliary and auxiliary
        return info

    def _traverse(self, start: Info, *, may_follow_config: bool) -> Info:
        """Follow links from `start` to a file; re-enacts install_info_traverse(), v252."""
        info = start
        self._search(info)
        for _ in range(FOLLOW_MAX):
            if info.mode not in (Mode.ALIAS, Mode.LINKED):
                return info
            if not may_follow_config and info.path.rpartition("/")[0] == self.config_dir:
                raise InstallError(info.path, 0, "an alias or a linked unit file, not enabled")
            info = self._follow(info)
        raise InstallError(start.path, 0, "too many links")

    def _follow(self, info: Info) -> Info:
        name = info.target.rpartition("/")[2]
        if info.mode is Mode.ALIAS and name != info.name:
            if unitname.is_instance(info.name) and unitname.is_template(name):
                name = unitname.with_instance(name, unitname.instance_of(info.name) or "")
            if name != info.name:
                other = self._add(name, auxiliary=False)
                self._search(other)
                return other
        self._found(info, self.finder.follow)
        return info

    def _search(self, info: Info) -> None:
        self._found(info, self.finder.search)

    def _found(self, info: Info, how: Callable[[Info], None]) -> None:
        try:
            how(info)
        except KeyError:
            raise InstallError(info.name, 0, "no such unit file") from None
        for name in self.finder.also:
            self._add(name, auxiliary=True)
        self.finder.also.clear()

    def _apply(self, info: Info) -> None:
        if info.path.rpartition("/")[0] not in self.files.search_path:
            path = f"{self.config_dir}/{info.name}"
            if not self._link(info, path, None, force=False):
                return
        for word in info.lists["Alias"]:
            self._alias(info, word)
        for key, suffix in WANTS:
            if info.lists[key]:
                self._wants(info, key, suffix)

    def _expand(self, info: Info, key: str, word: Word) -> str:
        try:
            return expand_install(info, word[0], self.host)
        except ValueError as error:
            self._fail(word[1], f"{key}={word[0]}: {error}")
            return ""

    def _alias(self, info: Info, word: Word) -> None:
        """Re-enacts install_info_symlink_alias() and unit_file_verify_alias(), v252."""
        name, place = self._expand(info, "Alias", word), word[1]
        if not name:
            return
        if "/" in name:
            wrong = _legacy_alias_fault(info.name, name)
        else:
            if unitname.is_template(name) and unitname.is_instance(info.name):
                name = unitname.with_instance(name, unitname.instance_of(info.name) or "")
            if name == info.name:
                return
            wrong = alias_fault(name, info.name)
        if wrong:
            self._fail(place, f"Alias={name}: {wrong}")
        else:
            path = name if name.startswith("/") else f"{self.config_dir}/{name}"
            target = self._alias_target(info)
            self._link(info, path, place, force=self._may_replace(path), target=target)

    def _alias_target(self, info: Info) -> str:
        """Return what an alias links to: from v256 on the link that brings it in."""
        outside = info.path.rpartition("/")[0] not in self.files.search_path
        return f"{self.config_dir}/{info.name}" if outside and self.version >= 256 else info.path

    def _may_replace(self, path: str) -> bool:
        """Say whether a link that leads nowhere is in the way, which counts as none since v253."""
        entry = self.finder.at(path)
        if entry is None or entry.kind is not Kind.LINK or self.version < 253:
            return False
        return self.files.status(entry) is Kind.MISSING

    def _wants(self, info: Info, key: str, suffix: str) -> None:
        """Re-enacts install_info_symlink_wants(), v252."""
        name = info.filled
        accepted = set(NameKind)
        if name != info.name:
            self._check_instance(name)
        elif unitname.is_template(name):
            accepted = {NameKind.INSTANCE, NameKind.TEMPLATE}
        for word in info.lists[key]:
            target, place = self._expand(info, key, word), word[1]
            if not target:
                continue
            kind = unitname.kind_of(target)
            if kind is None:
                self._fail(place, f"{key}={target}: not a valid unit name")
            elif kind not in accepted:
                self._fail(
                    place, f"{key}={target}: a template needs an instance to be wanted by it"
                )
            else:
                path = f"{self.config_dir}/{target}{suffix}/{name}"
                self._link(info, path, place, force=True)
                self._check_target(target, key, place)

    def _check_instance(self, name: str) -> None:
        instance = Info(name)
        try:
            self.finder.search(instance, load=False)
        except KeyError:
            raise InstallError(name, 0, "no such unit file") from None
        if instance.mode is Mode.MASKED:
            raise InstallError(instance.path, 0, "masked, can't be enabled")

    def _check_target(self, target: str, key: str, place: Place) -> None:
        try:
            self.finder.search(Info(target), load=False)
        except KeyError:
            self._warn(place, f"{key}={target}: there is no such unit")
        except InstallError:
            pass

    def _link(
        self, info: Info, path: str, place: Place | None, *, force: bool, target: str = ""
    ) -> bool:
        """Make a link to `target`, the unit's file; False where something else is in the way.

        Re-enacts create_symlink(), src/shared/install.c, v252.
        """
        text = (target or info.path).removeprefix(self.root)
        entry = self.finder.at(path)
        there = entry.text if entry else ""
        same = bool(there) and self._equivalent(path, there, text)
        if entry and not same and (not force or entry.kind is not Kind.LINK):
            self._fail(place or Place(path, 0), f"{path} is there already")
            return False
        if same:
            self.links.setdefault(path, MadeLink(path, there, info.name, place, existed=True))
            return True
        self.links[path] = MadeLink(path, text, info.name, place)
        name = path.rpartition("/")[2]
        made = Entry(name, Kind.LINK, path, path, text, self._absolute(text, ""), place)
        self.finder.made[path] = made
        return True

    def _equivalent(self, path: str, one: str, other: str) -> bool:
        """Re-enacts chroot_unit_symlinks_equivalent(), src/shared/install.c, v252."""
        parent = path.rpartition("/")[0]
        there, wanted = self._absolute(one, parent), self._absolute(other, parent)
        if there == wanted:
            return True
        inside = all(
            any(each.startswith(f"{place}/") for place in self.files.search_path)
            for each in (there, wanted)
        )
        return inside and there.rpartition("/")[2] == wanted.rpartition("/")[2]

    def _absolute(self, text: str, parent: str) -> str:
        if text.startswith("/"):
            return f"{self.root}{text}"
        parts: list[str] = []
        for part in f"{parent}/{text}".split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        return "/" + "/".join(parts)

    def _fail(self, place: Place, message: str) -> None:
        self.problems.append(Problem(place.file, place.line, message))

    def _warn(self, place: Place, message: str) -> None:
        self.problems.append(Problem(place.file, place.line, message, "warning"))


def _legacy_alias_fault(unit: str, alias: str) -> str:
    """Return what is wrong with an alias of the old form `X.wants/UNIT`."""
    directory, _, name = alias.rpartition("/")
    owner, _, suffix = directory.rpartition(".")
    if suffix not in ("wants", "requires") or not unitname.is_valid(owner):
        return f"{directory} is not the .wants or .requires directory of a unit"
    kind = unitname.kind_of(name)
    spreads = unitname.is_template(owner)
    if name == unit and (kind is not NameKind.TEMPLATE or spreads):
        return ""
    if kind is NameKind.INSTANCE and unit == unitname.template_of(name):
        return ""
    return f"{name} does not fit {unit}"
