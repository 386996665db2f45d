"""What rules look at: the units as they would be after the next boot, and what boot makes of them.

Values and look-ups only. `base` is the same box without the new files, made only when a rule asks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sdqueue.boot.activate import boot_mode
from sdqueue.boot.draws import Outlook, outlook
from sdqueue.boot.graph import Graph, Kind, Origin
from sdqueue.lint.later import (
    all_loaded_loops,
    reached_later,
    shutdown_outlook,
    started_by_hand,
)
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import Unit
from sdqueue.words.problem import Problem

DEFAULT_TARGET = "default.target"
BY_HAND_MAX = 50
STARTED_BY: tuple[Kind, ...] = ("RequiredBy", "WantedBy", "BoundBy", "UpheldBy", "TriggeredBy")


@dataclass(frozen=True)
class Box:
    """One set of units and the three questions to it: boot, shutdown, and what is only latent.

    `by_hand` are units that a person may start, though boot doesn't.
    """

    graph: Graph
    version: int
    by_hand: tuple[str, ...] = ()
    target: str = DEFAULT_TARGET
    seed: int = 1

    @cached_property
    def boot(self) -> Outlook:
        """What PID 1 makes of the default target."""
        return outlook(
            self.graph,
            self.graph.id(self.target),
            mode=boot_mode(self.graph, self.graph.id(self.target)),
            version=self.version,
            seed=self.seed,
        )

    @cached_property
    def shutdown(self) -> Outlook:
        """What it makes of shutting down when all that boot starts and triggers is running."""
        return shutdown_outlook(
            self.graph, self.boot, self.version, by_hand=self.by_hand, seed=self.seed
        )

    def by_hand_outlook(self, unit: str) -> Outlook:
        """What systemctl start of a unit leads to once the box has booted."""
        return started_by_hand(self.graph, unit, self.boot, self.version)

    @cached_property
    def latent(self) -> list[list[str]]:
        """Where the ordering of all loaded units has no beginning, whether started or not."""
        return all_loaded_loops(self.graph)


@dataclass(frozen=True)
class Situation:
    """The box with the new files, which files and units are new, and the box without them.

    `new_files` None: everything is looked at as if it were new. `unit` gives a loaded unit by any
    of its names, `known` tells whether a name has a file, `names` lists those that have.
    """

    box: Box
    base: Callable[[], Box | None]
    unit: Callable[[str], Unit | None]
    new_files: frozenset[str] | None
    new_units: tuple[str, ...]
    enabled: frozenset[str]
    names: frozenset[str]
    user: bool = False
    host: Host = field(default_factory=Host)
    problems: tuple[Problem, ...] = ()

    @property
    def graph(self) -> Graph:
        return self.box.graph

    @property
    def version(self) -> int:
        return self.box.version

    @cached_property
    def base_box(self) -> Box | None:
        """The same without the new files; None where nothing is new."""
        return self.base()

    def is_new_file(self, file: str) -> bool:
        """Whether a finding about that file is wanted."""
        return self.new_files is None or file in self.new_files

    def is_new(self, origin: Origin) -> bool:
        """Whether a dependency is there only because of the new files or of enabling them."""
        return origin.kind == "install" or self.is_new_file(origin.file)

    def units(self, *types: str) -> Iterator[Unit]:
        """The new units that are loaded, of these types or of any."""
        for name in self.new_units:
            unit = self.unit(name)
            if unit is not None and unit.loaded and (not types or unit.type in types):
                yield unit

    def by_hand(self) -> list[str]:
        """The new units that boot doesn't start and a person might; not too many of them."""
        if self.new_files is None:
            return []
        names = [unit.name for unit in self.units() if unit.name not in self.box.boot.jobs]
        return names[:BY_HAND_MAX]

    def starts(self, unit: str) -> bool:
        """Whether boot has a start job for the unit, or finds it active."""
        node = self.graph.node(unit)
        return node.active or "start" in self.box.boot.jobs.get(node.name, ())

    @cached_property
    def started_later(self) -> frozenset[str]:
        """The units that something which boot starts can trigger, with all that they pull in."""
        return reached_later(self.graph, self.box.boot, self.version)

    def reached(self, unit: str) -> bool:
        """Whether the unit is started at boot or can be triggered by what is."""
        name = self.graph.id(unit)
        return self.starts(name) or name in self.started_later

    def pulled_in_by(self, unit: str) -> list[str]:
        """The units that would start this one if they were started."""
        return list(self.graph.neighbours(self.graph.id(unit), *STARTED_BY))

    def is_after(self, unit: str, other: str) -> bool:
        """Whether one unit is ordered after the other, through any number of units."""
        seen, todo = {unit}, [unit]
        while todo:
            for near in self.graph.neighbours(todo.pop(), "After"):
                if near == other:
                    return True
                if near not in seen:
                    seen.add(near)
                    todo.append(near)
        return False
