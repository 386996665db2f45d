"""Makes a Situation of files and a box: lays the one over the other, loads both, says what is new.

Decides nothing about units: what they mean is the business of `sdqueue.unitfile`, `sdqueue.boot`
and `sdqueue.lint`; looking at files is that of `sdqueue.unitpath`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sdqueue.boot.graph import Kind
from sdqueue.boot.loading import Loaded, Manager, build
from sdqueue.cli.lint_box import Box, filled, find_box
from sdqueue.lint.situation import DEFAULT_TARGET, Situation
from sdqueue.lint.situation import Box as Judged
from sdqueue.unitfile.load import UnitSet
from sdqueue.unitpath import Added
from sdqueue.unitpath.generated import EMULATED
from sdqueue.unitpath.prepare import Prepared, prepare
from sdqueue.unitpath.prepare import Wish as Wanted
from sdqueue.words import unitname
from sdqueue.words.names import JOB_UNIT_PREFIX, LANE_TARGET_PREFIX, target_of_lane, unit_of_job
from sdqueue.words.problem import Problem

NEEDS: tuple[Kind, ...] = ("Requires", "Wants", "BindsTo", "Requisite", "After", "Before")
QUEUE_UNITS = {
    JOB_UNIT_PREFIX: unit_of_job("any"),
    LANE_TARGET_PREFIX: target_of_lane("any"),
}
"""Units that the queue makes only when it runs: imagined where a drop-in for them is given."""
QUEUE_UNIT = b"[Unit]\nDescription=imagined\n[Service]\nType=oneshot\nExecStart=/bin/true\n"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for, as options say it; without `enable` it is all that can be."""

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


@dataclass(frozen=True, slots=True)
class World:
    """The situation, what it is held against, what could not be known, and what went wrong.

    `looked` is false where none of the paths could be looked at.
    """

    situation: Situation
    version: int
    base: str
    unknown: tuple[str, ...]
    problems: tuple[Problem, ...]
    looked: bool


def look(wish: Wish) -> World:
    """Look at the box and the files, install them in imagination, and load all of it."""
    box = find_box(wish.root, wish.base, wish.version)
    found = prepare(_wanted(wish, box), environ=box.environ)
    host = found.units.host = found.base.host = filled(found.host)
    manager = Manager(version=box.version, user=wish.user, host=host)
    own = [name for name in found.names if not unitname.is_template(name)]
    own += [job for start, job in QUEUE_UNITS.items() if _has_dropin_for(found, start)]
    loaded = _load(found.units, manager, own)
    everything = wish.everything or not wish.paths
    new = None if everything else _new_files(found)
    new_units = tuple(
        dict.fromkeys([*_ids(found.units, own), *_of_files(found.units, loaded, new)])
    )
    situation = Situation(
        box=Judged(loaded.graph, box.version, () if everything else new_units, seed=wish.seed),
        base=lambda: None if everything else _without(found, manager, wish.seed),
        unit=lambda name: found.units.get(name) if unitname.is_valid(name) else None,
        new_files=new,
        new_units=new_units,
        enabled=frozenset(wish.enable or found.enabled_names),
        names=frozenset(found.units.known()),
        user=wish.user,
        host=host,
        problems=(*found.problems, *_about(loaded.problems, new)),
    )
    unknown = (*box.notes, *_not_known(found, situation, loaded))
    looked = bool(found.given_files) or not wish.paths
    return World(situation, box.version, box.label, unknown, found.problems, looked)


def _not_known(found: Prepared, situation: Situation, loaded: Loaded) -> Iterator[str]:
    """Yield the sentences about what the verdict does not cover."""
    yield from _unseen(found)
    yield from _templates(found)
    yield from _unused(situation)
    yield from _unknown(situation, loaded)


def _wanted(wish: Wish, box: Box) -> Wanted:
    return Wanted(
        paths=wish.paths,
        root=box.root,
        user=wish.user,
        enable=wish.enable or None,
        mask=wish.mask,
        default_target=wish.target,
        version=box.version,
        generators=wish.generators,
        extra=(*box.entries, *_queue_units(box)),
        has_generators=EMULATED if box.entries else None,
    )


def _queue_units(box: Box) -> Iterator[Added]:
    for name in QUEUE_UNITS.values():
        yield Added(f"{box.root}/usr/lib/systemd/system/{name}", data=QUEUE_UNIT)


def _has_dropin_for(found: Prepared, start: str) -> bool:
    return any(f"/{start}" in file and file.endswith(".conf") for file in found.given_files)


def _load(units: UnitSet, manager: Manager, names: Iterable[str]) -> Loaded:
    wanted = [DEFAULT_TARGET, *names]
    return build(units.get, manager, wanted, fragment_of=units.fragment_file)


def _without(found: Prepared, manager: Manager, seed: int) -> Judged:
    """The box as it is without the new files; units of theirs that it has anyway are loaded too."""
    names = (name for name in found.names if not unitname.is_template(name))
    there = [name for name in names if found.base.fragment_file(name)]
    return Judged(_load(found.base, manager, there).graph, manager.version, seed=seed)


def _new_files(found: Prepared) -> frozenset[str]:
    return frozenset(found.given_files)


def _ids(units: UnitSet, names: Iterable[str]) -> Iterator[str]:
    return (units.get(name).name for name in names)


def _of_files(units: UnitSet, loaded: Loaded, new: frozenset[str] | None) -> Iterator[str]:
    """The loaded units that have a part in these files, or in any file."""
    for name in loaded.graph.nodes:
        unit = units.get(name)
        files = {file for file in (unit.fragment_file, *unit.dropin_files) if file}
        if files if new is None else files & new:
            yield name


def _about(problems: Iterable[Problem], new: frozenset[str] | None) -> Iterator[Problem]:
    return (problem for problem in problems if new is None or problem.file in new)


def _unseen(found: Prepared) -> Iterator[str]:
    for name in found.unseen_generators:
        yield f"{name}: what this generator writes at boot has not been seen"


def _templates(found: Prepared) -> Iterator[str]:
    for name in found.names:
        if unitname.is_template(name) and name not in found.enabled_names:
            yield f"{name} is a template: --enable an instance to have it looked at"


def _unused(situation: Situation) -> Iterator[str]:
    """The drop-ins that belong to no unit that is there."""
    units = [unit for unit in map(situation.unit, situation.new_units) if unit]
    used = {file for unit in units for file in unit.dropin_files}
    for file in sorted(situation.new_files or ()):
        if file.endswith(".conf") and file not in used:
            yield f"{file} is for no unit that is loaded"


def _unknown(situation: Situation, loaded: Loaded) -> Iterator[str]:
    """What the verdict doesn't cover, in sentences."""
    if situation.box.boot.refusal:
        why = situation.box.boot.refusal
        yield (
            f"default.target can't be started ({why}), so what boot would start is not known; "
            "--base takes a plain box instead"
        )
    for other, name in _missing(situation).items():
        yield f"{other}, named by {name}, is not in the base: what it would bring is not known"
    for unsure in loaded.unsure:
        if unsure.unit in situation.new_units or unsure.other in situation.new_units:
            yield f"{unsure.unit} and {unsure.other}: {unsure.why}"


def _missing(situation: Situation) -> dict[str, str]:
    """The units that new files name and nobody has, with one that names each."""
    graph = situation.graph
    missing: dict[str, str] = {}
    for name in situation.new_units if situation.new_files is not None else ():
        for kind in NEEDS:
            for other in graph.neighbours(name, kind):
                said = graph.origins(name, kind, other)
                mine = any(side == "origin" and situation.is_new(o) for side, o in said)
                if mine and graph.node(other).load_state == "not-found":
                    missing.setdefault(other, name)
    return missing
