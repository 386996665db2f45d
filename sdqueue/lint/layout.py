"""A small layered layout: what runs first stands on top. Plain numbers, no drawing.

Edges that close a cycle are turned round for layering only. Each unit stands one layer below the
lowest of those before it; within a layer units stand below the middle of what leads to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the middle of each box's top edge is, and how large all of it is."""

    places: Mapping[str, tuple[float, float]]
    width: float
    height: float


def lay_out(
    sizes: Mapping[str, float],
    edges: Sequence[Pair],
    box_height: float,
    gap_x: float,
    gap_y: float,
    margin: float,
) -> Layout:
    """Place boxes of these widths; `edges` lead downwards where they can."""
    layers = _layers(list(sizes), edges)
    rows: dict[int, list[str]] = {}
    for unit, layer in layers.items():
        rows.setdefault(layer, []).append(unit)
    widths = [sum(sizes[u] for u in row) + gap_x * (len(row) - 1) for row in rows.values()]
    total = max(widths, default=0.0) + 2 * margin + 3 * gap_x
    places: dict[str, tuple[float, float]] = {}
    for layer in sorted(rows):
        row = sorted(rows[layer], key=lambda unit: _middle(unit, edges, places, total))
        used = sum(sizes[u] for u in row) + gap_x * (len(row) - 1)
        x = (total - 3 * gap_x - used) / 2
        for unit in row:
            places[unit] = (x + sizes[unit] / 2, margin + layer * (box_height + gap_y))
            x += sizes[unit] + gap_x
    height = 2 * margin + len(rows) * (box_height + gap_y) - gap_y if rows else 2 * margin
    return Layout(places, total, height)


def _middle(
    unit: str, edges: Sequence[Pair], places: Mapping[str, tuple[float, float]], total: float
) -> float:
    above = [places[before][0] for before, after in edges if after == unit and before in places]
    return sum(above) / len(above) if above else total / 2


def _layers(units: Sequence[str], edges: Sequence[Pair]) -> dict[str, int]:
    downward = _acyclic(units, edges)
    layers = dict.fromkeys(units, 0)
    for _ in units:
        changed = False
        for before, after in downward:
            if layers[after] <= layers[before]:
                layers[after] = layers[before] + 1
                changed = True
        if not changed:
            break
    return _dense(layers)


def _dense(layers: Mapping[str, int]) -> dict[str, int]:
    used = {layer: rank for rank, layer in enumerate(sorted(set(layers.values())))}
    return {unit: used[layer] for unit, layer in layers.items()}


def _acyclic(units: Sequence[str], edges: Sequence[Pair]) -> list[Pair]:
    """The edges without those that would close a cycle, earlier ones kept first."""
    below: dict[str, set[str]] = {unit: {unit} for unit in units}
    kept = []
    for before, after in edges:
        if before not in below[after]:
            kept.append((before, after))
            for reached in below.values():
                if before in reached:
                    reached |= below[after]
    return kept
