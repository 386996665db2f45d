"""From a knot of ordering to a finding: which cycle to show, who is lost, what to mend.

Shared by the four rules about cycles, which differ in the set of units and in what it means.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from sdqueue.boot.draws import Outlook
from sdqueue.lint.finding import Edge, Finding, Fix, Lost, Severity
from sdqueue.lint.knot import Cut, Knot, Untied
from sdqueue.lint.lines import named
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Box, Situation

NOT_EXACT = "the set of lines is small, but there may be a smaller one"
NO_CUT = (
    "no ordering line of the new files alone breaks this; the edges marked default go with "
    "DefaultDependencies=no, those marked implicit with the setting that they name"
)


def fresh(
    situation: Situation,
    loops: Iterable[Sequence[str]],
    in_base: Callable[[Box], Iterable[Sequence[str]]],
) -> Iterator[Knot]:
    """The knots that the new files bring: with an edge of theirs, or not there without them.

    `in_base` gives those of a box; the one without the new files is made only if it must be.
    """
    for units in loops:
        knot = Knot(situation.graph, frozenset(units), situation.is_new, situation.version)
        if any(knot.has_new(pair) for pair in knot.edges):
            yield knot
        else:
            base = situation.base_box
            if not any(knot.units <= set(old) for old in (in_base(base) if base else ())):
                yield knot


def finding(
    knot: Knot,
    situation: Situation,
    rule: Rule,
    *,
    unit: str,
    message: str,
    severity: Severity | None = None,
    lost: tuple[Lost, ...] = (),
    notes: tuple[str, ...] = (),
) -> Finding:
    """Put a finding together: the cycle from `unit` on, its first place in the new files, fixes."""
    edges = _from(unit, knot.steps(knot.cycle()))
    file, line = _place(edges, situation)
    untied = knot.untie()
    fixes = (*_cuts(untied, situation), *_defusing(knot, situation))
    fixes = fixes or tuple(_freeing(knot, situation))
    more = () if untied.exact else (NOT_EXACT,)
    more = more if fixes else (NO_CUT,)
    return Finding(
        rule.name,
        severity or rule.severity,
        unit,
        file,
        line,
        message,
        edges,
        lost,
        fixes,
        (*notes, *more),
    )


def _from(unit: str, edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    at = next((i for i, edge in enumerate(edges) if edge.unit == unit), 0)
    return edges[at:] + edges[:at]


def _place(edges: Sequence[Edge], situation: Situation) -> tuple[str, int]:
    new = [e for e in edges if e.line and situation.is_new_file(e.file)]
    written = [e for e in new if e.origin in ("file", "dropin")]
    best = next(iter(written or new), None)
    if best:
        return best.file, best.line
    units = (situation.unit(edge.unit) for edge in edges if edge.unit in situation.new_units)
    file = next((unit.fragment_file for unit in units if unit and unit.fragment_file), "")
    return file, 1 if file else 0


def _cuts(untied: Untied, situation: Situation) -> Iterator[Fix]:
    for cut in sorted(untied.singles, key=lambda cut: not _on_target(cut)):
        yield Fix(cut.place.file, cut.place.line, f"remove {_written(cut, situation)}", "alone")
    for cut in untied.several:
        text = f"remove {_written(cut, situation)}"
        yield Fix(cut.place.file, cut.place.line, text, "with others")


def _written(cut: Cut, situation: Situation) -> str:
    """The dependency as it stands in its file, where an alias or a specifier may stand for it."""
    name = cut.pair[0] if cut.stated == "After" else cut.pair[1]
    other = cut.named
    unit = situation.unit(name)
    for _, ref in named(situation, unit, cut.stated) if unit else ():
        here = (ref.place.file, ref.place.line) == (cut.place.file, cut.place.line)
        if here and situation.graph.id(ref.name) == other:
            return f"{cut.stated}={ref.name}"
    return cut.text


def _on_target(cut: Cut) -> bool:
    """Whether the line orders a unit after a target: mostly the line that is wrong."""
    return cut.stated == "After" and cut.pair[1].endswith(".target")


def _defusing(knot: Knot, situation: Situation) -> Iterator[Fix]:
    for name, target in knot.defused_by():
        unit = situation.unit(name)
        file = unit.fragment_file if unit else None
        if unit is None or file is None or not situation.is_new_file(file):
            continue
        lines = [
            s.place.line for s in unit.settings if s.section == "Unit" and s.place.file == file
        ]
        text = f"add After={target} to {name} (the target then drops its default edge)"
        yield Fix(file, max(lines, default=1), text, "alone")


def _freeing(knot: Knot, situation: Situation) -> Iterator[Fix]:
    for name in knot.freed_by():
        unit = situation.unit(name)
        file = unit.fragment_file if unit else None
        if file is not None and situation.is_new_file(file):
            text = (
                f"set DefaultDependencies=no in {name}, with its own Conflicts=shutdown.target and "
                "Before=shutdown.target, and an After= for what it needs"
            )
            yield Fix(file, 1, text, "alone")


def lost_jobs(knot: Knot, outlook: Outlook, others: Iterable[frozenset[str]]) -> tuple[Lost, ...]:
    """Which start jobs go because of this knot, most often lost first.

    With several knots a job outside of all of them belongs to each knot that it leans on.
    """
    elsewhere = frozenset().union(*others)
    found = []
    for job, p_lost in outlook.p_lost.items():
        unit = job.rpartition("/")[0]
        if unit in knot.units or (unit not in elsewhere and _leans_on(knot, unit)):
            found.append(Lost(job, outlook.p_deleted.get(job, 0.0), p_lost))
    return tuple(found)


def _leans_on(knot: Knot, unit: str) -> bool:
    seen, todo = {unit}, [unit]
    while todo:
        for other in knot.graph.neighbours(todo.pop(), "Requires", "BindsTo", "Requisite"):
            if other in knot.units:
                return True
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return False


def spoken_for(knot: Knot, lost: Sequence[Lost], situation: Situation) -> str:
    """The unit of the shown cycle that is lost most often, a new one of those nearly alike."""
    names = [job.job.rpartition("/")[0] for job in lost]
    cycle = knot.cycle()
    own = [name for name in names if name in cycle]
    new = [name for name in own if name in situation.new_units]
    if own and new and lost[names.index(new[0])].p_lost >= lost[names.index(own[0])].p_lost / 2:
        return new[0]
    fallback = [name for name in situation.new_units if name in cycle]
    return next(iter([*own, *fallback, *cycle, *sorted(knot.units)]))
