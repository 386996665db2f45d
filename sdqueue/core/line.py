"""A sorted line of names: who is next in a lane.

A plain list under `bisect`: the insertion moves pointers, which for 100,000 of them takes tens of
microseconds, and the head, the order and a bulk load cost what they should.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

Rank = tuple[int, str]


class Line:
    """Names in the order of their ranks; a name stands in it once.

    A rank is `(-priority, sort key of the name)`, so two names never share one.
    """

    def __init__(self) -> None:
        self._ranks: list[tuple[Rank, str]] = []
        self._rank_of: dict[str, Rank] = {}

    def add(self, name: str, rank: Rank) -> None:
        """Put a name in its place, also when it stands there already with another rank."""
        self.discard(name)
        self._rank_of[name] = rank
        insort(self._ranks, (rank, name))

    def extend(self, ranked: Iterable[tuple[Rank, str]]) -> None:
        """Put many names in their places with one sort."""
        fresh = {name: rank for rank, name in ranked}
        kept = [entry for entry in self._ranks if entry[1] not in fresh]
        self._rank_of.update(fresh)
        self._ranks = sorted(kept + [(rank, name) for name, rank in fresh.items()])

    def discard(self, name: str) -> None:
        """Take a name out, where it stands in the line."""
        rank = self._rank_of.pop(name, None)
        if rank is not None:
            del self._ranks[bisect_left(self._ranks, (rank, name))]

    def head(self) -> str | None:
        """Say who is next."""
        return self._ranks[0][1] if self._ranks else None

    def __contains__(self, name: object) -> bool:
        return name in self._rank_of

    def __len__(self) -> int:
        return len(self._ranks)

    def __iter__(self) -> Iterator[str]:
        return (name for _, name in self._ranks)
