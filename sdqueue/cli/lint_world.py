"""Looks at the files to lint and at the box they are for, and makes a Situation of it.

Knows paths, roots and options. Decides nothing about units: what they mean is the business of
`sdqueue.unitfile`, `sdqueue.boot` and `sdqueue.lint`.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sdqueue.boot.graph import Kind
from sdqueue.boot.loading import Loaded, Manager, build
from sdqueue.cli.lint_box import Wish, host, version
from sdqueue.cli.lint_given import Given, collect
from sdqueue.lint.situation import DEFAULT_TARGET, Box, Situation
from sdqueue.unitfile.enable import enable
from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.parse import Parsed
from sdqueue.unitfile.unit import LoadState, Unit
from sdqueue.unitpath import Added, Tree, search_path
from sdqueue.unitpath.search import CONFIG
from sdqueue.words import unitname
from sdqueue.words.errors import UsageError
from sdqueue.words.problem import Problem

NEEDS: tuple[Kind, ...] = ("Requires", "Wants", "BindsTo", "Requisite", "After", "Before")
INSTALL = ("WantedBy", "RequiredBy", "UpheldBy", "Alias", "Also")


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
    number, notes = version(wish, root)
    manager = Manager(version=number, user=wish.user, host=host(root, user=wish.user))
    scene = _Scene(root, directories, config_dir, manager, wish, given)
    units, loaded = scene.with_new()
    named = None if wish.everything or not wish.paths else frozenset(given.files)
    own = {units.get(name).name: None for name in scene.own_names()}
    new_units = tuple(dict.fromkeys([*own, *_new_units(units, loaded, named)]))
    situation = Situation(
        box=Box(loaded.graph, number, () if named is None else new_units, seed=wish.seed),
        base=lambda: None if named is None else scene.without_new(),
        unit=lambda name: units.get(name) if unitname.is_valid(name) else None,
        new_files=named,
        new_units=new_units,
        enabled=frozenset(scene.enabled),
        names=frozenset(units.known()),
        user=wish.user,
        host=manager.host,
        problems=(
            *given.problems,
            *scene.problems,
            *_about(loaded.problems, named),
            *_leading_nowhere(units, scene),
        ),
    )
    unknown = [*notes, *scene.notes, *_unknown(situation, loaded)]
    return World(
        situation,
        number,
        wish.base or root or "/",
        tuple(unknown),
        (*given.problems, *scene.problems),
        given.real,
        looked=bool(given.taken) or not wish.paths,
    )


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
        loaded = self._load(units, [DEFAULT_TARGET, *self.own_names()])
        return units, loaded

    def without_new(self) -> Box:
        """The box as it would be without the new files."""
        masked = {path: Added(path, text="/dev/null") for path in self.given.installed}
        units = self._units(self._tree({**masked, **self._masks()}))
        added = masked | self._masks() | self._default(units)
        units = self._units(self._tree(added))
        names = (n for n in self.own_names() if n not in self.given.added)
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

    def own_names(self) -> list[str]:
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


def _new_units(units: UnitSet, loaded: Loaded, named: frozenset[str] | None) -> Iterator[str]:
    for name in loaded.graph.nodes:
        unit = units.get(name)
        files = {unit.fragment_file, *unit.dropin_files} - {None}
        if files if named is None else files & named:
            yield name


def _leading_nowhere(units: UnitSet, scene: "_Scene") -> Iterator[Problem]:
    """The given links that come to no unit file."""
    for name in scene.own_names():
        added = scene.given.added.get(f"{scene.config_dir}/{name}")
        unit = units.get(name)
        if added and added.text and unit.load_state is LoadState.NOT_FOUND and not unit.problems:
            yield Problem(added.path, 0, f"links to {added.text}, and there is no unit file there")


def _about(problems: Iterable[Problem], named: frozenset[str] | None) -> Iterator[Problem]:
    for problem in problems:
        if named is None or problem.file in named:
            yield problem


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
