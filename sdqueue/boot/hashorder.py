"""The order in which systemd walks its hash tables: random in each process, the same within one.

systemd keys its tables anew in each process (get_hash_key(), src/basic/hashmap.c), so every table
has an arbitrary order that stays as long as the process. A `HashOrder` is one process's luck: a
seeded generator of random numbers, and the numbers already handed out. Without a generator it
keeps the order of insertion, which is as good an order as any where order decides nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

T = TypeVar("T", bound=str)


@dataclass(slots=True)
class HashOrder:
    """One process's order of each table; `table` names it, its members get a place on demand."""

    rng: Random | None = None
    _place: dict[tuple[object, str], float] = field(default_factory=dict)

    def of(self, table: object, members: Iterable[T]) -> list[T]:
        """The members in that table's order."""
        if self.rng is None:
            return list(members)
        return sorted(members, key=lambda member: self._of(table, member))

    def _of(self, table: object, member: str) -> float:
        assert self.rng is not None
        key = (table, member)
        if key not in self._place:
            self._place[key] = self.rng.random()
        return self._place[key]
