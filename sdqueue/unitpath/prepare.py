"""One question put together: this root, these files, these units enabled, masked, as default.

The front door of the loader for the command line and for tests: it looks, and answers with a
`UnitSet` in which everything is as if it were installed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from sdqueue.unitfile.enable import Enabled, enable
from sdqueue.unitfile.files import Files
from sdqueue.unitfile.install import Finder, Info, InstallError
from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.specifier import Host
from sdqueue.unitpath.generated import Generators, generators
from sdqueue.unitpath.given import Given, given
from sdqueue.unitpath.host import read_host, systemd_version
from sdqueue.unitpath.search import CONFIG, NEWEST, search_path
from sdqueue.unitpath.tree import Added, Tree
from sdqueue.words import unitname
from sdqueue.words.problem import Problem


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for. `enable` None: every given unit that has an [Install] section.

    `generators` is a directory with `generator/` and its two siblings. Where there is none, and the
    root has no output of generators either, those of the root that can be are emulated;
    `has_generators` names them where the root is none that can be looked into. `extra` are further
    entries.
    """

    paths: tuple[str, ...] = ()
    root: str = ""
    user: bool = False
    enable: tuple[str, ...] | None = None
    mask: tuple[str, ...] = ()
    default_target: str = ""
    version: int | None = None
    generators: str | None = None
    container: bool = False
    extra: tuple[Added, ...] = ()
    has_generators: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The units with everything laid over, and `base`, the same without what was given.

    `enabled` are the links that enabling makes, `enabled_names` the units that were to be enabled,
    `names` the units that were given, `given_files` their files and links as places name them. What
    `unseen_generators` would add is not known.
    """

    units: UnitSet
    base: UnitSet
    enabled: Enabled
    names: tuple[str, ...]
    version: int
    host: Host
    problems: tuple[Problem, ...] = ()
    unseen_generators: tuple[str, ...] = ()
    enabled_names: tuple[str, ...] = ()
    given_files: tuple[str, ...] = ()


def prepare(wish: Wish, *, environ: Mapping[str, str] | None = None) -> Prepared:
    """Look at the root and the given files, and lay them over each other."""
    env = os.environ if environ is None else environ
    root = wish.root.rstrip("/")
    config = _config_dir(root, env, user=wish.user)
    version = wish.version or systemd_version(root) or NEWEST
    path = search_path(
        root, user=wish.user, generators=wish.generators, environ=env, version=version
    )
    host = read_host(root, user=wish.user, environ=env)
    written = _generated(wish, root, version)
    below = (*written.added, *wish.extra)
    base = Tree(root, path, below)
    what = given(wish.paths, config)
    with_files = Tree(root, path, (*below, *what.added))
    problems = [*written.problems, *what.problems]
    names = wish.enable if wish.enable is not None else installable(what, with_files, host, version)
    made = _enable(names, with_files, host, config, version)
    chosen = (*_masks(wish.mask, config), *_default(wish.default_target, with_files, config))
    everything = Tree(root, path, (*below, *what.added, *links(made), *chosen))
    return Prepared(
        units=UnitSet(everything, host, version, wish.user),
        base=UnitSet(base, host, version, wish.user),
        enabled=made,
        names=what.names,
        version=version,
        host=host,
        problems=(*problems, *made.problems),
        unseen_generators=written.unseen,
        enabled_names=names,
        given_files=tuple(each.file or each.path for each in what.added),
    )


def _generated(wish: Wish, root: str, version: int) -> Generators:
    """Return what the root's generators would write, where their own output is not at hand."""
    if wish.generators or wish.user:
        return Generators()
    return generators(root, version, container=wish.container, there=wish.has_generators)


def _enable(names: tuple[str, ...], files: Tree, host: Host, config: str, version: int) -> Enabled:
    """Enable one after the other, so that one that can't be doesn't keep the others from it."""
    each = [
        enable((name,), files, host, config_dir=config, root=files.root, version=version)
        for name in names
    ]
    return Enabled(
        links=tuple(link for one in each for link in one.links),
        problems=tuple(problem for one in each for problem in one.problems),
        without_rules=tuple(name for one in each for name in one.without_rules),
    )


def _config_dir(root: str, env: Mapping[str, str], *, user: bool) -> str:
    if not user:
        return f"{root}{CONFIG[False]}"
    home = env.get("XDG_CONFIG_HOME") or f"{env.get('HOME', '/root')}/.config"
    return f"{root}{home}/systemd/user" if not root else f"{root}{CONFIG[True]}"


def installable(what: Given, files: Files, host: Host, version: int) -> tuple[str, ...]:
    """Return the given units that say how to enable them; templates only with an instance."""
    finder = Finder(files, host, version)
    return tuple(name for name in what.names if _has_rules(name, finder))


def _has_rules(name: str, finder: Finder) -> bool:
    info = Info(name)
    try:
        finder.search(info)
    except (InstallError, KeyError):
        return False
    return info.has_rules and not (unitname.is_template(name) and not info.default_instance)


def links(made: Enabled) -> tuple[Added, ...]:
    """Return the links of a simulated `enable` as entries; those that exist stay as they are."""
    return tuple(
        Added(each.path, text=each.text, install=each.place)
        for each in made.links
        if not each.existed
    )


def _masks(names: tuple[str, ...], config: str) -> tuple[Added, ...]:
    return tuple(Added(f"{config}/{unitname.mangle(name)}", text="/dev/null") for name in names)


def _default(target: str, files: Files, config: str) -> tuple[Added, ...]:
    """Return the link default.target, to where the target is found first."""
    if not target:
        return ()
    name = unitname.mangle(target, "target")
    found = next((d for d in files.search_path if name in files.listing(d)), config)
    return (Added(f"{config}/default.target", text=os.path.relpath(f"{found}/{name}", config)),)
