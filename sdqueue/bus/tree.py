"""Which objects there are, by path.

Pure. Knows single objects and families: all objects below one prefix, found when they are asked
for, since there may be a hundred thousand jobs and nobody looks at most of them.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sdqueue.bus.interface import Interface
from sdqueue.bus.labels import escape_label, unescape_label

CHILDREN_MAX = 1000
"""Most children that introspection lists, since `busctl tree` introspects each of them; more are
there, for whoever knows their name.
"""


@dataclass(frozen=True, slots=True)
class Node:
    """What is at a path: an object and its interfaces, or a mere step on the way to some (none)."""

    path: str
    target: object
    interfaces: tuple[Interface, ...]


@dataclass(frozen=True, slots=True)
class _Family:
    find: Callable[[str], object | None]
    names: Callable[[], Iterable[str]]
    interfaces: tuple[Interface, ...]


class ObjectTree:
    """The objects that a service serves."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._families: dict[str, _Family] = {}

    def add(self, path: str, target: object, *interfaces: Interface) -> None:
        """Put one object at a path, in the place of what was there."""
        self._nodes[path] = Node(path, target, interfaces)

    def remove(self, path: str) -> None:
        """Take one object away; it need not be there."""
        self._nodes.pop(path, None)

    def add_family(
        self,
        prefix: str,
        find: Callable[[str], object | None],
        names: Callable[[], Iterable[str]],
        *interfaces: Interface,
    ) -> None:
        """Put an object at `object_path(prefix, name)` for every name that `find` knows.

        `names` lists them, for introspection only.
        """
        self._families[prefix] = _Family(find, names, interfaces)

    def node(self, path: str) -> Node | None:
        """Return what is at a path, None where nothing is, nor anything below it."""
        if node := self._nodes.get(path):
            return node
        prefix, _, label = path.rpartition("/")
        if family := self._families.get(prefix):
            name = unescape_label(label)
            target = family.find(name)
            # One object has one path: other spellings of its name are not it.
            if target is not None and escape_label(name) == label:
                return Node(path, target, family.interfaces)
            return None
        if path in self._families or any(self._is_above(path, each) for each in self._roots()):
            return Node(path, None, ())
        return None

    def children(self, path: str) -> list[str]:
        """Return the names of the nodes right below a path, sorted, without their path."""
        base = "/" if path == "/" else path + "/"
        found = {each[len(base) :].split("/")[0] for each in self._roots() if each.startswith(base)}
        if family := self._families.get(path):
            found.update(map(escape_label, itertools.islice(family.names(), CHILDREN_MAX)))
        return sorted(found - {""})

    def _roots(self) -> Iterable[str]:
        return itertools.chain(self._nodes, self._families)

    @staticmethod
    def _is_above(path: str, other: str) -> bool:
        return other.startswith("/" if path == "/" else path + "/")


def object_path(prefix: str, name: str) -> str:
    """Return the path of a family's member."""
    return f"{prefix}/{escape_label(name)}"
