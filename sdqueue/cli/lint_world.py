"""Looks at the files to lint and at the box they are for, and makes a Situation of it.

Knows paths, roots and options. Decides nothing about units: what they mean is the business of
`sdqueue.unitfile`, `sdqueue.boot` and `sdqueue.lint`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sdqueue.boot.graph import Kind
from sdqueue.boot.loading import Loaded, Manager, build
from sdqueue.boot.loading.manager import NEWEST
from sdqueue.lint.situation import DEFAULT_TARGET, Box, Situation
from sdqueue.unitbase import BASES, facts
from sdqueue.unitfile.enable import enable
from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.parse import Parsed
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import LoadState, Unit
from sdqueue.unitpath import Added, Tree, search_path
from sdqueue.unitpath.search import CONFIG
from sdqueue.words import unitname
from sdqueue.words.errors import UsageError
from sdqueue.words.problem import Problem

NEEDS: tuple[Kind, ...] = ("Requires", "Wants", "BindsTo", "Requisite", "After", "Before")
PARTS = (".d", ".wants", ".requires", ".upholds")
INSTALL = ("WantedBy", "RequiredBy", "UpheldBy", "Alias", "Also")
NO_ID = "0" * 31 + "1"
"""Stands for an id that is made at boot."""
_SHARED = re.compile(r"^libsystemd-shared-(\d+)")
_LIBRARIES = ("usr/lib/systemd", "lib/systemd", "usr/lib64/systemd", "usr/lib/*/systemd")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for, as options say it."""

    paths: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    mask: tuple[str, ...] = ()
    root: str = ""
    base: str = ""
    generators: str | None = None
    user: bool = False
    version: int | None = None
    target: str = ""
    everything: bool = False
    seed: int = 1


@dataclass(slots=True)
class Given:
    """The files to lint: where each is imagined to be installed, and what couldn't be taken.

    `files` are their paths as findings say them; `installed` those of them that are in the search
    path already.
    """

    added: dict[str, Added] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    installed: set[str] = field(default_factory=set)
    real: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    taken: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """The situation, what could not be known, and where imagined links really lie."""

    situation: Situation
    version: int
    base: str
    unknown: tuple[str, ...]
    problems: tuple[Problem, ...]
    real: dict[str, str]
    looked: bool


def look(wish: Wish) -> World:
    """Look at the box and the files, install them in imagination, and load all of it."""
    root = os.path.abspath(wish.root).rstrip("/") if wish.root else ""
    if root and not os.path.isdir(root):
        raise UsageError(f"{wish.root}: there is no such directory")
    directories = search_path(
        root, user=wish.user, generators=wish.generators, environ=None if root else os.environ
    )
    config_dir = f"{root}{CONFIG[wish.user]}"
    given = collect(wish.paths, config_dir, directories)
    version, notes = _version(wish, root)
    manager = Manager(version=version, user=wish.user, host=_host(root, user=wish.user))
    scene = _Scene(root, directories, config_dir, manager, wish, given)
    units, loaded = scene.with_new()
    named = None if wish.everything or not wish.paths else frozenset(given.files)
    new_units = tuple(_new_units(units, loaded, named))
    situation = Situation(
        box=Box(loaded.graph, version, () if named is None else new_units, seed=wish.seed),
        base=lambda: None if named is None else scene.without_new(),
        unit=lambda name: units.get(name) if unitname.is_valid(name) else None,
        new_files=named,
        new_units=new_units,
        enabled=frozenset(scene.enabled),
        names=frozenset(units.known()),
        user=wish.user,
        host=manager.host,
        problems=(*given.problems, *scene.problems, *_about(loaded.problems, named)),
    )
    unknown = [*notes, *scene.notes, *_unknown(situation, loaded)]
    return World(
        situation,
        version,
        wish.base or root or "/",
        tuple(unknown),
        (*given.problems, *scene.problems),
        given.real,
        looked=bool(given.taken) or not wish.paths,
    )


@contextmanager
def rooted(wish: Wish) -> Iterator[Wish]:
    """Give a named base a root of its own for as long as it is looked at."""
    if not wish.base:
        yield wish
        return
    if wish.base not in BASES:
        raise UsageError(f"there is no base {wish.base}. The bases: {', '.join(BASES)}.")
    if wish.root:
        raise UsageError("--base and --root: the box can't be both")
    with TemporaryDirectory(prefix="sdqueue-lint-") as root:
        _unpack(wish.base, root)
        yield replace(wish, root=root, version=wish.version or BASES[wish.base].systemd)


def _unpack(base: str, root: str) -> None:
    found = facts(base)
    for path in {os.path.dirname(path) for path in (*found.files, *found.links)}:
        os.makedirs(f"{root}/{path}", exist_ok=True)
    os.symlink("usr/lib", f"{root}/lib")
    for path, text in found.files.items():
        Path(f"{root}/{path}").write_text(text)
    for path, text in found.links.items():
        os.symlink(text, f"{root}/{path}")


@dataclass(slots=True)
class _Scene:
    """The box, and the files laid over it."""

    root: str
    directories: tuple[str, ...]
    config_dir: str
    manager: Manager
    wish: Wish
    given: Given
    enabled: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _parsed: dict[str, Parsed | Problem] = field(default_factory=dict)

    def with_new(self) -> tuple[UnitSet, Loaded]:
        """The units with the new files installed and enabled."""
        added = {**self.given.added, **self._masks()}
        tree = self._tree(added)
        for name in self.wish.enable or self._installable(self._units(tree)):
            made = enable(
                (name,), tree, self.manager.host, config_dir=self.config_dir, root=self.root,
                version=self.manager.version,
            )  # fmt: skip
            self.problems += made.problems
            self.enabled.append(name)
            for link in made.links:
                if not link.existed:
                    added[link.path] = Added(link.path, text=link.text, install=link.place)
        added |= self._default(self._units(tree))
        units = self._units(self._tree(added))
        loaded = self._load(units, [DEFAULT_TARGET, *self._names()])
        return units, loaded

    def without_new(self) -> Box:
        """The box as it would be without the new files."""
        masked = {path: Added(path, text="/dev/null") for path in self.given.installed}
        units = self._units(self._tree({**masked, **self._masks()}))
        added = masked | self._masks() | self._default(units)
        units = self._units(self._tree(added))
        names = (n for n in self._names() if n not in self.given.added)
        graph = self._load(units, [DEFAULT_TARGET, *names]).graph
        return Box(graph, self.manager.version, seed=self.wish.seed)

    def _tree(self, added: dict[str, Added]) -> Tree:
        return Tree(self.root, self.directories, tuple(added.values()))

    def _units(self, tree: Tree) -> UnitSet:
        return UnitSet(
            tree,
            host=self.manager.host,
            version=self.manager.version,
            user=self.wish.user,
            _parsed=self._parsed,
        )

    def _load(self, units: UnitSet, wanted: Iterable[str]) -> Loaded:
        return build(units.get, self.manager, wanted, fragment_of=units.fragment_file)

    def _masks(self) -> dict[str, Added]:
        paths = (f"{self.config_dir}/{name}" for name in self.wish.mask)
        return {path: Added(path, text="/dev/null") for path in paths}

    def _default(self, units: UnitSet) -> dict[str, Added]:
        if not self.wish.target:
            return {}
        entry = units.names.find(self.wish.target).entry
        path = f"{self.config_dir}/{DEFAULT_TARGET}"
        text = entry.path.removeprefix(self.root) if entry else self.wish.target
        return {path: Added(path, text=text)}

    def _names(self) -> list[str]:
        """The new units that can be loaded by themselves: not templates."""
        names = (path.rpartition("/")[2] for path in (*self.given.added, *self.given.installed))
        return [n for n in names if unitname.is_valid(n) and not unitname.is_template(n)]

    def _installable(self, units: UnitSet) -> list[str]:
        """The new unit files that have anything in [Install]."""
        found = []
        for path in (*self.given.added, *self.given.installed):
            name = path.rpartition("/")[2]
            if not unitname.is_valid(name) or path.rpartition("/")[0] not in self.directories:
                continue
            template = unitname.is_template(name)
            unit = units.get(unitname.with_instance(name, "x") if template else name)
            if unit.load_state is LoadState.MASKED or not _has_install(unit):
                continue
            if template and not unit.value("Install", "DefaultInstance"):
                self.notes.append(
                    f"{name} is a template: --enable an instance to have it looked at"
                )
            else:
                found.append(name)
        return found


def _has_install(unit: Unit) -> bool:
    own = (s for s in unit.settings if s.place.file == unit.fragment_file)
    return any(s.section == "Install" and s.key in INSTALL and s.value for s in own)


def collect(paths: Sequence[str], config_dir: str, directories: Sequence[str]) -> Given:
    """Take files, and directories laid out like /etc/systemd/system, as lying in `config_dir`."""
    given = Given()
    for path in paths:
        for file, place in _entries(path, given):
            _take(given, file, f"{config_dir}/{place}", directories)
    return given


def _entries(path: str, given: Given) -> Iterator[tuple[str, str]]:
    """Yield (file, where it belongs in a unit directory) for what a person named."""
    path = os.path.normpath(path)
    name = path.rpartition("/")[2]
    if os.path.isdir(path) and not name.endswith(PARTS):
        yield from _in_directory(path, given)
    elif os.path.isdir(path):
        yield from ((f"{path}/{each}", f"{name}/{each}") for each in _listing(path, given))
    elif not os.path.lexists(path):
        given.problems.append(Problem(path, 0, "there is no such file"))
    elif name.endswith(".conf") and os.path.dirname(path).endswith(".d"):
        yield path, f"{os.path.basename(os.path.dirname(os.path.abspath(path)))}/{name}"
    elif unitname.is_valid(name):
        yield path, name
    else:
        given.problems.append(Problem(path, 0, "not the name of a unit file"))


def _in_directory(path: str, given: Given) -> Iterator[tuple[str, str]]:
    for name in _listing(path, given):
        each = f"{path}/{name}"
        if unitname.is_valid(name):
            yield each, name
        elif name.endswith(PARTS) and os.path.isdir(each):
            yield from ((f"{each}/{one}", f"{name}/{one}") for one in _listing(each, given))
        else:
            given.problems.append(Problem(each, 0, "not part of a unit directory", "info"))


def _listing(path: str, given: Given) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        given.problems.append(Problem(path, 0, f"can't be looked into: {error.strerror}"))
        return []


def _take(given: Given, file: str, place: str, directories: Sequence[str]) -> None:
    """Note one file or link; what is neither is trouble."""
    link = os.path.islink(file)
    if not link and not os.path.isfile(file):
        given.problems.append(Problem(file, 0, "neither a file nor a link"))
        return
    at = os.path.abspath(file)
    given.taken += 1
    if os.path.dirname(at) in directories or os.path.dirname(os.path.dirname(at)) in directories:
        given.installed.add(at)
        given.files.add(at)
        return
    if place in given.added:
        first = given.added[place].file or given.real.get(place, place)
        given.problems.append(Problem(file, 0, f"the same name as {first}; that one counts"))
        return
    given.added[place] = Added(place, text=os.readlink(file)) if link else Added(place, file=file)
    given.files.add(place if link else file)
    if link:
        given.real[place] = file


def _new_units(units: UnitSet, loaded: Loaded, named: frozenset[str] | None) -> Iterator[str]:
    for name in loaded.graph.nodes:
        unit = units.get(name)
        files = {unit.fragment_file, *unit.dropin_files} - {None}
        if files if named is None else files & named:
            yield name


def _about(problems: Iterable[Problem], named: frozenset[str] | None) -> Iterator[Problem]:
    for problem in problems:
        if named is None or problem.file in named:
            yield problem


def _version(wish: Wish, root: str) -> tuple[int, list[str]]:
    found = wish.version or version_of(root)
    if found is None:
        return NEWEST, [f"the version of systemd in {root or '/'} is not known; taken for {NEWEST}"]
    if found > NEWEST:
        return found, [f"systemd {found} is newer than what this was checked against ({NEWEST})"]
    return found, []


def version_of(root: str) -> int | None:
    """The version of the systemd in a root, by the name of its own library; None if none is."""
    found = [
        int(match.group(1))
        for place in _LIBRARIES
        for file in Path(root or "/").glob(f"{place}/libsystemd-shared-*")
        if (match := _SHARED.match(file.name))
    ]
    return max(found, default=None)


def _host(root: str, *, user: bool) -> Host:
    lines = _text(f"{root}/etc/os-release").splitlines()
    release = dict(line.split("=", 1) for line in lines if "=" in line)
    host = Host(
        machine_id=_text(f"{root}/etc/machine-id").strip() or NO_ID,
        boot_id=NO_ID,
        hostname=_text(f"{root}/etc/hostname").strip() or "localhost",
        pretty_hostname="localhost",
        architecture=os.uname().machine.replace("_", "-"),
        kernel=os.uname().release,
        os_release={key: value.strip("\"'") for key, value in release.items()},
    )
    return _of_user(host) if user else host


def _of_user(host: Host) -> Host:
    """The same for a user's manager: the caller's, since whose it will be isn't known."""
    home = os.environ.get("HOME") or "/root"
    return replace(
        host,
        uid=os.getuid(),
        gid=os.getgid(),
        home=home,
        runtime_dir=os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}",
        state_dir=f"{home}/.local/state",
        cache_dir=f"{home}/.cache",
        logs_dir=f"{home}/.local/state/log",
        config_dir=f"{home}/.config",
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace") if os.path.isfile(path) else ""
    except OSError:
        return ""


def _unknown(situation: Situation, loaded: Loaded) -> Iterator[str]:
    """What the verdict doesn't cover, in sentences."""
    graph = situation.graph
    if situation.box.boot.refusal:
        why = situation.box.boot.refusal
        yield f"default.target can't be started ({why}), so what boot would start is not known"
    missing: dict[str, str] = {}
    for name in situation.new_units if situation.new_files is not None else ():
        for kind in NEEDS:
            for other in graph.neighbours(name, kind):
                said = graph.origins(name, kind, other)
                mine = any(side == "origin" and situation.is_new(o) for side, o in said)
                if mine and graph.node(other).load_state == "not-found":
                    missing.setdefault(other, name)
    for other, name in missing.items():
        yield f"{other}, named by {name}, is not in the base: what it would bring is not known"
    for unsure in loaded.unsure:
        if unsure.unit in situation.new_units or unsure.other in situation.new_units:
            yield f"{unsure.unit} and {unsure.other}: {unsure.why}"
