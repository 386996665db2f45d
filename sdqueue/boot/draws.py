"""How often each job is lost: many draws of one transaction, with a seed, so always the same.

Theory of operation. What systemd does with a request depends on the order of its hash tables, which
is random. `outlook()` prepares the transaction once and then plays the part that is random many
times over (`sdqueue.boot.compiled` says why that is short). Within one draw the order stays: a unit
that was first among the relevant ones remains first for as long as it is relevant, and so does each
unit's first neighbour. Once it is gone, the next is again any of those left with equal chance,
because the order of the others was never looked at.

Where the order decides more than that (`sdqueue.boot.luck`), whole transactions are played, fewer
of them. Whether a request fails for certain isn't drawn but decided: `Outlook.fatal`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from sdqueue.boot.activate import CYCLIC, Outcome, activate, prepare
from sdqueue.boot.compiled import Compiled, State, compile_
from sdqueue.boot.contest import Contest, contest
from sdqueue.boot.graph import Graph
from sdqueue.boot.hashorder import HashOrder
from sdqueue.boot.jobs import JobType
from sdqueue.boot.luck import is_decided_by_luck
from sdqueue.boot.pull import Mode, Refusal
from sdqueue.boot.transaction import Transaction

RUNS = 1000
"""How many draws at most."""
LOOKED_AT = 120_000
MIN_RUNS = 100
"""How many units may be looked at for them, and the draws that are made whatever they cost."""
WHOLE_JOBS = 20_000
MIN_WHOLE = 30
"""The same where each draw means building the transaction anew: how many jobs are built in all."""


@dataclass(slots=True)
class Outlook:
    """What can come of a request, over `runs` draws.

    Jobs are spelled as systemd does. `p_deleted`: the job is a victim. `p_lost`: it is gone in the
    end, as a victim or with one. `p_conflicting`: it lost against another job of its unit.
    `errors`: how often the whole request failed, by message. `fatal`: the cycles of jobs that all
    matter, which make it fail always. `loops`: the strongly connected components of ordering,
    `cycles`: the cycles that draws met, most frequent first. `jobs`: by unit, what it had at first.
    """

    runs: int
    refusal: Refusal | None = None
    fatal: list[list[str]] = field(default_factory=list)
    loops: list[list[str]] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)
    p_deleted: dict[str, float] = field(default_factory=dict)
    p_lost: dict[str, float] = field(default_factory=dict)
    p_conflicting: dict[str, float] = field(default_factory=dict)
    cycles: list[tuple[str, ...]] = field(default_factory=list)
    jobs: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Whether nothing is lost and nothing fails, in no draw."""
        return not (self.refusal or self.fatal or self.errors or self.p_lost or self.p_conflicting)


@dataclass(slots=True)
class _Tally:
    runs: int = 0
    deleted: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    conflicting: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    cycles: Counter[tuple[str, ...]] = field(default_factory=Counter)


def outlook(
    graph: Graph,
    unit: str,
    *,
    mode: Mode,
    version: int,
    type_: JobType = "start",
    runs: int = RUNS,
    seed: int = 1,
) -> Outlook:
    """Say what can come of a request, without any knowledge of how the tables are ordered."""
    tr = Transaction(graph, version)
    refusal = prepare(tr, type_, unit, mode)
    if refusal:
        return Outlook(runs, refusal=refusal)
    plan = compile_(tr, collects_garbage=mode != "isolate")
    first = plan.first()
    found = Outlook(runs, fatal=plan.mattering_loops())
    found.loops = [[plan.names[unit] for unit in loop] for loop in first.loops]
    found.jobs = {u: frozenset(job.type for job in jobs) for u, jobs in tr.jobs.items()}
    rng = Random(seed)
    again = partial(prepare, type_=type_, unit=unit, mode=mode)
    if is_decided_by_luck(tr, again, collects_garbage=plan.collects_garbage):
        draw = partial(activate, graph, unit, type_=type_, mode=mode, version=version)
        tally = _play_whole(draw, rng, min(runs, max(MIN_WHOLE, WHOLE_JOBS // len(plan.jobs))))
    else:
        tally = _play(plan, contest(tr), rng, runs)
    _fill(found, tally)
    return found


def _play_whole(draw: Callable[..., Outcome], rng: Random, runs: int) -> _Tally:
    """Play whole transactions, each with another order of the hash tables."""
    tally = _Tally()
    for _ in range(runs):
        _count_whole(tally, draw(luck=HashOrder(Random(rng.getrandbits(64)))))
    return tally


def _play(plan: Compiled, rivals: Contest, rng: Random, runs: int) -> _Tally:
    """Play what is random of the check of the ordering and of merging, at most `runs` times."""
    tally = _Tally()
    first = plan.first()
    if not first.loops and not rivals.units:
        tally.runs = runs
        return tally
    while tally.runs < runs and (plan.looked_at < LOOKED_AT or tally.runs < MIN_RUNS):
        _count(tally, plan, rivals, _draw(plan, first, rng), rng)
    return tally


@dataclass(slots=True)
class _Fate:
    end: State
    cycles: list[tuple[int, ...]]
    victims: list[int]
    failed: bool = False


def _draw(plan: Compiled, state: State, rng: Random) -> _Fate:
    """Play the check of the ordering once, from the first cycle to the last."""
    start = -1
    chosen: dict[int, int] = {}
    fate = _Fate(state, [], [])
    while state.starts:
        if start not in state.steps:
            start = rng.choice(state.starts)
        cycle = _walk(state, start, chosen, rng)
        fate.cycles.append(cycle)
        victim = next((unit for unit in reversed(cycle) if not plan.matters[unit]), None)
        if victim is None:
            fate.failed = True
            break
        fate.victims.append(victim)
        state = plan.without(state, victim)
    fate.end = state
    return fate


def _walk(state: State, start: int, chosen: dict[int, int], rng: Random) -> tuple[int, ...]:
    """Follow each unit's first relevant neighbour until a unit comes again; give the cycle."""
    seen: dict[int, int] = {}
    unit = start
    while unit not in seen:
        seen[unit] = len(seen)
        unit = _next(state, unit, chosen, rng)
    return tuple(seen)[seen[unit] :]


def _next(state: State, unit: int, chosen: dict[int, int], rng: Random) -> int:
    before, after = state.steps[unit]
    ways = before or after
    if (known := chosen.get(unit, -1)) in ways:
        return known
    chosen[unit] = other = rng.choice(ways)
    return other


def _count(tally: _Tally, plan: Compiled, rivals: Contest, fate: _Fate, rng: Random) -> None:
    tally.runs += 1
    tally.cycles.update({_canonical([plan.names[u] for u in c]) for c in fate.cycles})
    if fate.failed:
        tally.errors[CYCLIC] += 1
        return
    beaten, error = rivals.settle(plan, set(fate.end.dead), rng) if rivals.units else (set(), "")
    if error:
        tally.errors[error] += 1
        return
    tally.deleted.update({_logged_job(plan, unit) for unit in fate.victims})
    tally.lost.update({plan.jobs[job] for job in fate.end.dead})
    tally.conflicting.update({plan.jobs[job] for job in beaten})


def _logged_job(plan: Compiled, unit: int) -> str:
    """The job that systemd names when it deletes a unit's jobs: the newest."""
    return plan.jobs[plan.jobs_of[unit][0]]


def _count_whole(tally: _Tally, out: Outcome) -> None:
    tally.runs += 1
    tally.cycles.update({_canonical([_unit(job) for job in c.jobs]) for c in out.cycles})
    if out.error:
        tally.errors[out.error] += 1
        return
    tally.deleted.update(set(out.deleted))
    tally.lost.update({*out.deleted, *out.silent, *out.garbage})
    tally.conflicting.update(set(out.conflicting))


def _unit(job: str) -> str:
    return job.rpartition("/")[0]


def _canonical(units: list[str]) -> tuple[str, ...]:
    """The same cycle always from the same unit on."""
    at = units.index(min(units))
    return (*units[at:], *units[:at])


def _fill(found: Outlook, tally: _Tally) -> None:
    found.runs = tally.runs
    found.errors = _shares(tally.errors, found.runs)
    found.p_deleted = _shares(tally.deleted, found.runs)
    found.p_lost = _shares(tally.lost, found.runs)
    found.p_conflicting = _shares(tally.conflicting, found.runs)
    found.cycles = [cycle for cycle, _ in tally.cycles.most_common()]


def _shares(counted: Counter[str], runs: int) -> dict[str, float]:
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return {what: n / runs for what, n in ordered}
