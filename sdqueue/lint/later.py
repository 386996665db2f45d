"""After boot: what gets started later, how all of it shuts down, and what else is loaded.

Shutting down starts shutdown.target, which conflicts with nearly everything that runs; the stop
jobs are ordered backwards. Nothing in systemd shows that beforehand, since units that aren't
running have nothing to stop; here they are simply taken as running.
"""

from collections.abc import Iterable
from dataclasses import replace

from sdqueue.boot.atoms import kinds_with
from sdqueue.boot.components import loops
from sdqueue.boot.draws import Outlook, outlook
from sdqueue.boot.graph import Graph

SHUTDOWN = "shutdown.target"
RUNS = 300
RUNS_BY_HAND = 20
ENDS = frozenset({SHUTDOWN, "umount.target", "final.target"})


def reached_later(
    graph: Graph, boot: Outlook, version: int, by_hand: Iterable[str] = ()
) -> frozenset[str]:
    """What boot starts or a person does (`by_hand`), what can trigger, and all they pull in."""
    pulls = (
        *kinds_with("pull-in-start", version),
        *kinds_with("pull-in-start-ignored", version),
        "Triggers",
        "OnFailure",
        "OnSuccess",
    )
    seen = {unit for unit, types in boot.jobs.items() if "start" in types}
    seen.update(unit for unit in by_hand if graph.node(unit).load_state == "loaded")
    todo = list(seen)
    while todo:
        for other in graph.neighbours(todo.pop(), *pulls):
            if other not in seen and graph.node(other).load_state == "loaded":
                seen.add(other)
                todo.append(other)
    return frozenset(seen)


def shutdown_outlook(
    graph: Graph, boot: Outlook, version: int, *, by_hand: Iterable[str] = (), seed: int = 1
) -> Outlook:
    """What starting shutdown.target leads to while everything that could run is running."""
    if graph.node(SHUTDOWN).load_state != "loaded":
        return Outlook(1)
    running = graph.with_nodes(
        replace(graph.node(name), active_state="active")
        for name in reached_later(graph, boot, version, by_hand)
        if name not in ENDS
    )
    return outlook(
        running, graph.id(SHUTDOWN), mode="replace", version=version, runs=RUNS, seed=seed
    )


def started_by_hand(graph: Graph, unit: str, boot: Outlook, version: int) -> Outlook:
    """What systemctl start of a unit leads to, with all that boot starts running."""
    running = graph.with_nodes(
        replace(graph.node(name), active_state="active")
        for name, types in boot.jobs.items()
        if "start" in types
    )
    return outlook(running, unit, mode="replace", version=version, runs=RUNS_BY_HAND)


def all_loaded_loops(graph: Graph) -> list[list[str]]:
    """Strongly connected components of the ordering of all loaded units."""
    loaded = {name for name, node in graph.nodes.items() if node.load_state == "loaded"}
    return loops(loaded, lambda unit: [o for o in graph.neighbours(unit, "After") if o in loaded])
