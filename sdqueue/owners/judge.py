"""What evidence amounts to: ACTIVE, RESIDENT, HOLDER or UNKNOWN, and of whom. Pure.

Every threshold is here, with where it comes from: sizes that people have seen and told of, not
measurements of ours. Two samples are compared where one does not do: a counter may go down, and
then the larger value holds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from sdqueue.core.owner import Owner, Use
from sdqueue.owners.clients import BY
from sdqueue.owners.sighting import GIB, MIB, Engine, Gauge, Sighting

RESIDENT_BYTES = 512 * MIB
RESIDENT_SHARE = 0.03
"""Memory from which somebody counts though he is idle: the larger of the two. A desktop's programs
have up to 300 MiB each, an engine that sleeps 370 and more."""
ACTIVE_SHARE = 0.02
"""Of an engine's time; an idle desktop's cursor stays below."""
HIDDEN_BYTES = 2 * GIB
"""Memory that nobody has who can be seen, from which there must be somebody who can't. What a
driver keeps after the end of its last user has been 1 GiB."""
EXPLAINED_BYTES = 64 * MIB
AGREE_BYTES = 256 * MIB
AGREE_SHARE = 0.02
"""Two readings that differ by less are the same: memory has settled."""
STRENGTH = (Use.HOLDER, Use.UNKNOWN, Use.RESIDENT, Use.ACTIVE)
"""What outdoes what, where several sources speak of one process."""


class Evidence(NamedTuple):
    """A sighting with what a second sample says, if there was one, and the time between."""

    first: Sighting
    later: Sighting | None = None
    elapsed_sec: float = 0.0


def resident_from(of_bytes: int) -> int:
    """Say from how much memory on somebody counts, on a device of that size (0: unknown)."""
    return max(RESIDENT_BYTES, int(of_bytes * RESIDENT_SHARE))


def shares(evidence: Evidence) -> dict[str, float]:
    """Say which share of each engine's time was its client's between the samples."""
    if evidence.later is None:
        return {}
    before = evidence.first.engines
    return {
        name: _share(before.get(name, Engine(0)), now, evidence.elapsed_sec)
        for name, now in evidence.later.engines.items()
    }


def _share(before: Engine, now: Engine, elapsed_sec: float) -> float:
    busy = max(0, now.busy - before.busy)
    of = now.total - before.total if now.total else elapsed_sec * 1e9
    return busy / (of * now.capacity) if of > 0 else 0.0


def _has_memory(evidence: Evidence) -> bool:
    last = evidence.later or evidence.first
    return last.memory_bytes is None or last.memory_bytes >= resident_from(last.of_bytes)


def _is_busy(evidence: Evidence) -> bool:
    later = evidence.later
    if evidence.first.is_busy or (later is not None and later.is_busy):
        return True
    return any(share >= ACTIVE_SHARE for share in shares(evidence).values())


class Rule(NamedTuple):
    """One row: where it holds, that is what he does. The first that holds decides."""

    use: Use
    holds: Callable[[Evidence], bool]
    help: str


RULES: tuple[Rule, ...] = (
    Rule(Use.ACTIVE, lambda seen: seen.first.is_named, "the configuration names it"),
    Rule(Use.ACTIVE, _is_busy, "it works, or an engine was its for 2 % of the time"),
    Rule(Use.UNKNOWN, lambda seen: seen.first.is_mute, "it has the device, and no more is told"),
    Rule(Use.RESIDENT, _has_memory, "it has 512 MiB, or 3 % of the device, or nobody can say"),
    Rule(Use.HOLDER, lambda _: True, "none of these"),
)


def use_of(evidence: Evidence) -> Use:
    """Say what somebody does with a device."""
    return next(rule.use for rule in RULES if rule.holds(evidence))


def needs_second(sighting: Sighting) -> bool:
    """Say whether one sample leaves open what he does: only counters could say that he works."""
    return bool(sighting.engines) and use_of(Evidence(sighting)) is Use.HOLDER


def is_quiet_since(before: Sighting | None, now: Sighting) -> bool:
    """Say whether one sample does because of an earlier one: all the work since, had it been in the
    last second, would not be enough.

    Engines of clients are told apart by the client's number, which no other one gets.
    """
    if before is None or now.by != BY:
        return False
    return all(
        name in before.engines and 0 <= engine.busy - before.engines[name].busy <= _idle_ns(engine)
        for name, engine in now.engines.items()
    )


def _idle_ns(engine: Engine) -> int:
    """Say how much may be done in a second and is no work; of cycles it is not known."""
    return 0 if engine.total else int(ACTIVE_SHARE * 1e9 * engine.capacity) - 1


def strongest(uses: Iterable[Use]) -> Use:
    """Join what several sources say of one process."""
    return max(uses, key=STRENGTH.index)


def memory_of(sightings: Sequence[Sighting]) -> int:
    """Say how much memory a process has: the most that one source tells, never the sum of two.

    The memory of compute queues may be told by two sources, or by one.
    """
    told: dict[str, int] = {}
    for seen in sightings:
        told[seen.by] = told.get(seen.by, 0) + (seen.memory_bytes or 0)
    return max(told.values(), default=0)


def together(sightings: Sequence[Sighting]) -> dict[tuple[object, ...], Sighting]:
    """Put the clients of one source and process together: how many files it opened is its own.

    The keys are the same in two samples.
    """
    found: dict[tuple[object, ...], list[Sighting]] = {}
    for seen in sightings:
        alone = seen.what if seen.is_named or seen.is_mute else ""
        found.setdefault((seen.pid, seen.by, alone), []).append(seen)
    return {key: _joined(parts) for key, parts in found.items()}


def _joined(parts: list[Sighting]) -> Sighting:
    first = parts[0]
    sizes = [part.memory_bytes for part in parts]
    engines = {f"{p.what} {name}": engine for p in parts for name, engine in p.engines.items()}
    return replace(
        first,
        memory_bytes=None if None in sizes else sum(filter(None, sizes)),
        engines=engines,
        is_busy=any(part.is_busy for part in parts),
        of_bytes=max(part.of_bytes for part in parts),
    )


KEEPERS = (
    "nvidia-persistenced.service",
    "nvidia-dcgm.service",
    "systemd-logind.service",
    "gdm.service",
    "gdm3.service",
    "sddm.service",
    "lightdm.service",
    "greetd.service",
    "org.gnome.Shell@*.service",
    "plasma-kwin_wayland.service",
    "wayland-wm@*.service",
)
"""Units that have devices open all day and do next to nothing with them: what cannot be told of
their use is no reason to wait. By unit as the manager says it, never by the name of a process."""
OPEN_ONLY = "descriptors: has "


def excused(owner: Owner) -> Owner:
    """Take a keeper of devices of whose use nothing is told for one that merely has them open."""
    is_open_only = all(seen.startswith(OPEN_ONLY) for seen in owner.seen)
    if owner.use is not Use.UNKNOWN or not is_open_only:
        return owner
    is_keeper = any(fnmatchcase(owner.unit, glob) for glob in KEEPERS)
    return replace(owner, use=Use.HOLDER, note="") if is_keeper else owner


# Memory of a device ------------------------------------------------------------------------------


def agree(one: Sequence[Gauge], other: Sequence[Gauge]) -> bool:
    """Say whether two readings of the devices are the same, as near as matters."""
    sizes = {gauge.device: gauge.used_bytes for gauge in one}
    return {gauge.device for gauge in other} == set(sizes) and all(
        abs(gauge.used_bytes - sizes[gauge.device])
        <= max(AGREE_BYTES, AGREE_SHARE * gauge.total_bytes)
        for gauge in other
    )


def remainder_bytes(gauges: Iterable[Gauge], attributed_bytes: int) -> int:
    """Say how much memory is in use that nobody has who was seen."""
    return max(0, sum(gauge.used_bytes for gauge in gauges) - attributed_bytes)
