"""Pictures: every cycle among its neighbours, as input for graphviz or as SVG without it.

An arrow leads from what runs first to what runs after it. The edges of the cycles that were found
are red and say where they come from; neighbours are what has an ordering edge with a unit of a
cycle, as many as the eye can take.
"""

import html
from collections.abc import Iterable
from dataclasses import dataclass, field

from sdqueue.lint.finding import Edge
from sdqueue.lint.layout import Layout, lay_out
from sdqueue.lint.report import Report

NEIGHBOURS_MAX = 8
CHAR, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 7.3, 30, 40, 80, 20
STYLE = """\
  text { font: 12px "DejaVu Sans Mono", monospace; fill: #222; }
  .box { fill: #f4f4f4; stroke: #999; } .in { fill: #fdecea; stroke: #c0392b; stroke-width: 2; }
  .edge { fill: none; stroke: #bbb; } .bad { fill: none; stroke: #c0392b; stroke-width: 2; }
  .place { font-size: 10px; fill: #c0392b; }"""


@dataclass(slots=True)
class Picture:
    """`edges` of the cycles by (before, after); `around` the other ordering between the units."""

    units: dict[str, bool] = field(default_factory=dict)
    edges: dict[tuple[str, str], Edge] = field(default_factory=dict)
    around: set[tuple[str, str]] = field(default_factory=set)


def picture(report: Report) -> Picture:
    """What is to be seen of a report: its cycles and what is next to them."""
    made = Picture()
    for finding in report.findings:
        for edge in finding.cycle:
            made.edges[edge.other, edge.unit] = edge
            made.units |= {edge.unit: True, edge.other: True}
    for unit in list(made.units):
        near = list(report.graph.neighbours(unit, "Before", "After"))
        jobs = [other for other in near if report.graph.node(other).load_state == "loaded"]
        for other in jobs[:NEIGHBOURS_MAX] if len(made.units) < 40 else ():
            made.units.setdefault(other, False)
    made.around = {
        (unit, other)
        for unit in made.units
        for other in report.graph.neighbours(unit, "Before")
        if other in made.units and made.units[unit] + made.units[other] > 0
    } - made.edges.keys()
    return made


def label(edge: Edge) -> str:
    """Where an edge comes from, shortly."""
    name = edge.file.rpartition("/")[2]
    where = f"{name}:{edge.line}" if name and edge.line else name
    return (
        where
        if edge.origin in ("file", "dropin")
        else ", ".join(filter(None, (edge.origin, where)))
    )


def dot(report: Report) -> str:
    """The picture in graphviz's language."""
    made = picture(report)
    lines = ["digraph cycles {", "  rankdir=TB;", '  node [shape=box, fontname="monospace"];']
    for unit, inside in made.units.items():
        look = ', color="#c0392b", penwidth=2' if inside else ', color="#999999"'
        lines.append(f"  {_quoted(unit)} [label={_quoted(unit)}{look}];")
    for (before, after), edge in made.edges.items():
        look = f'color="#c0392b", penwidth=2, label={_quoted(label(edge))}'
        lines.append(f"  {_quoted(before)} -> {_quoted(after)} [{look}];")
    for before, after in sorted(made.around):
        lines.append(f'  {_quoted(before)} -> {_quoted(after)} [color="#bbbbbb"];')
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def svg(report: Report) -> str:
    """The picture as SVG."""
    made = picture(report)
    sizes = {unit: len(unit) * CHAR + 20 for unit in made.units}
    layout = lay_out(sizes, [*made.edges, *made.around], BOX_HEIGHT, GAP_X, GAP_Y, MARGIN)
    body = [_line(layout, pair, "edge") for pair in sorted(made.around)]
    body += [_line(layout, pair, "bad") for pair in made.edges]
    body += [_place(layout, pair, edge) for pair, edge in made.edges.items()]
    body += [_box(layout, unit, sizes[unit], inside=inside) for unit, inside in made.units.items()]
    return _document(layout, body)


def _document(layout: Layout, body: Iterable[str]) -> str:
    marks = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
        for name, colour in (("edge", "#bbb"), ("bad", "#c0392b"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width:.0f}" '
        f'height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}">\n'
        f"<style>\n{STYLE}\n</style>\n<defs>{marks}</defs>\n" + "\n".join(body) + "\n</svg>\n"
    )


def _box(layout: Layout, unit: str, width: float, *, inside: bool) -> str:
    x, y = layout.places[unit]
    return (
        f'<rect class="{"in" if inside else "box"}" x="{x - width / 2:.1f}" y="{y:.1f}" '
        f'width="{width:.1f}" height="{BOX_HEIGHT}" rx="4"/>'
        f'<text x="{x:.1f}" y="{y + 19:.1f}" text-anchor="middle">{html.escape(unit)}</text>'
    )


def _line(layout: Layout, pair: tuple[str, str], look: str) -> str:
    (x1, y1), (x2, y2) = (layout.places[unit] for unit in pair)
    if y1 < y2:
        y1, bend = y1 + BOX_HEIGHT, (y2 - y1) / 2
        curve = f"C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}"
        path = f"M{x1:.1f},{y1:.1f} {curve}"
    else:
        side = layout.width - MARGIN / 2
        y1, y2 = y1 + BOX_HEIGHT / 2, y2 + BOX_HEIGHT / 2
        path = f"M{x1:.1f},{y1:.1f} C{side:.1f},{y1:.1f} {side:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    return f'<path class="{look}" marker-end="url(#{look})" d="{path}"/>'


def _place(layout: Layout, pair: tuple[str, str], edge: Edge) -> str:
    (x1, y1), (x2, y2) = (layout.places[unit] for unit in pair)
    back = y1 >= y2
    x = (x1 + x2) / 2 + (layout.width - (x1 + x2) / 2) / 2 if back else (x1 + x2) / 2 + 6
    y = (y1 + y2 + BOX_HEIGHT) / 2
    return f'<text class="place" x="{x:.1f}" y="{y:.1f}">{html.escape(label(edge))}</text>'
