"""What evidence amounts to: each rule, each threshold from both sides, and two samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.core.owner import Owner, Use
from sdqueue.owners import judge
from sdqueue.owners.judge import RULES, Evidence, use_of
from sdqueue.owners.sighting import GIB, MIB, Engine, Gauge, Sighting

SEC = 1_000_000_000


def client(memory: int | None = 0, busy_ns: int | None = None, **more: object) -> Sighting:
    engines = {} if busy_ns is None else {"gfx": Engine(busy_ns)}
    return Sighting(17, "descriptors", "is a client", memory, engines, **more)  # type: ignore[arg-type]


CASES = {
    "named": (Evidence(client(is_named=True)), Use.ACTIVE),
    "work is seen": (Evidence(client(is_busy=True)), Use.ACTIVE),
    "work is seen later": (Evidence(client(), client(is_busy=True), 1.0), Use.ACTIVE),
    "2 % of an engine": (Evidence(client(0, 0), client(0, SEC // 50), 1.0), Use.ACTIVE),
    "under 2 %": (Evidence(client(0, 0), client(0, SEC // 50 - 1), 1.0), Use.HOLDER),
    "512 MiB": (Evidence(client(512 * MIB)), Use.RESIDENT),
    "less": (Evidence(client(512 * MIB - 1)), Use.HOLDER),
    "memory is not told": (Evidence(client(None)), Use.RESIDENT),
    "mute": (Evidence(client(is_mute=True)), Use.UNKNOWN),
    "mute, and work is seen": (Evidence(client(is_mute=True, is_busy=True)), Use.ACTIVE),
    "3 % of a large device": (Evidence(client(3 * GIB, of_bytes=100 * GIB)), Use.RESIDENT),
    "less of a large one": (Evidence(client(3 * GIB - 1, of_bytes=100 * GIB)), Use.HOLDER),
    "nothing": (Evidence(client()), Use.HOLDER),
}


@pytest.mark.parametrize("name", CASES)
def test_use(name: str) -> None:
    evidence, use = CASES[name]
    assert use_of(evidence) is use


def test_every_rule_decides_a_case() -> None:
    decided = {
        next(rule.help for rule in RULES if rule.holds(evidence)) for evidence, _ in CASES.values()
    }
    assert decided == {rule.help for rule in RULES}


def test_a_counter_that_went_down_is_not_work() -> None:
    assert use_of(Evidence(client(0, 9 * SEC), client(0, SEC), 1.0)) is Use.HOLDER


def test_an_engine_that_was_not_told_before_had_done_nothing() -> None:
    assert use_of(Evidence(client(), client(0, SEC), 1.0)) is Use.ACTIVE


def test_cycles_are_a_share_of_all_cycles_whatever_the_time() -> None:
    def xe(busy: int, total: int) -> Sighting:
        return Sighting(17, "descriptors", "x", 0, {"rcs": Engine(busy, total)})

    assert use_of(Evidence(xe(0, 1000), xe(20, 2000), 99.0)) is Use.ACTIVE
    assert use_of(Evidence(xe(0, 1000), xe(19, 2000), 99.0)) is Use.HOLDER
    assert use_of(Evidence(xe(5, 1000), xe(5, 1000), 1.0)) is Use.HOLDER


def test_several_engines_of_a_kind_have_several_times_the_time() -> None:
    first = Sighting(17, "d", "x", 0, {"video": Engine(0, 0, 2)})
    half = Sighting(17, "d", "x", 0, {"video": Engine(SEC * 3 // 100, 0, 2)})
    assert use_of(Evidence(first, half, 1.0)) is Use.HOLDER


def test_a_second_sample_is_for_counters_below_the_memory_threshold_only() -> None:
    assert judge.needs_second(client(0, 5))
    assert not judge.needs_second(client(0))
    assert not judge.needs_second(client(GIB, 5))
    assert not judge.needs_second(client(0, 5, is_busy=True))
    assert not judge.needs_second(client(0, 5, is_named=True))


def test_the_memory_of_one_process_is_the_most_that_one_source_tells() -> None:
    seen = [
        Sighting(17, "kfd", "a", 3 * GIB),
        Sighting(17, "descriptors", "b", 2 * GIB),
        Sighting(17, "descriptors", "c", 2 * GIB),
        Sighting(17, "nvml", "d", None),
    ]
    assert judge.memory_of(seen) == 4 * GIB
    assert judge.memory_of([]) == 0


def test_the_clients_of_one_process_count_together() -> None:
    seen = [Sighting(17, "descriptors", f"client {n}", 200 * MIB) for n in range(3)]
    (joined,) = judge.together(seen).values()
    assert use_of(Evidence(joined)) is Use.RESIDENT


def test_what_outdoes_what() -> None:
    assert judge.strongest([Use.HOLDER, Use.UNKNOWN]) is Use.UNKNOWN
    assert judge.strongest([Use.UNKNOWN, Use.RESIDENT]) is Use.RESIDENT
    assert judge.strongest([Use.RESIDENT, Use.ACTIVE, Use.HOLDER]) is Use.ACTIVE


@pytest.mark.parametrize(
    ("before", "now", "total", "same"),
    [
        (0, 256 * MIB, 4 * GIB, True),
        (0, 256 * MIB + 1, 4 * GIB, False),
        (5 * GIB, 3 * GIB, 100 * GIB, True),
        (5 * GIB, 3 * GIB - 1, 100 * GIB, False),
    ],
)
def test_readings_agree_within_256_mib_or_2_percent(
    before: int, now: int, total: int, same: bool
) -> None:
    one, other = [Gauge("a", before, total)], [Gauge("a", now, total)]
    assert judge.agree(one, other) is same


def test_readings_of_other_devices_do_not_agree() -> None:
    assert not judge.agree([Gauge("a", 0, GIB)], [])
    assert not judge.agree([], [Gauge("a", 0, GIB)])
    assert judge.agree([], [])


def test_a_keeper_of_devices_is_excused_where_nothing_is_told_of_its_use() -> None:
    seen = ("descriptors: has /dev/nvidia0 open",)
    daemon = Owner(5, unit="nvidia-persistenced.service", use=Use.UNKNOWN, seen=seen)
    assert judge.excused(daemon).use is Use.HOLDER
    assert judge.excused(Owner(5, unit="engine.service", use=Use.UNKNOWN, seen=seen)).counts
    works = Owner(5, unit="nvidia-persistenced.service", use=Use.ACTIVE, seen=seen)
    assert judge.excused(works).use is Use.ACTIVE
    queue = Owner(5, unit="gdm.service", use=Use.UNKNOWN, seen=(*seen, "kfd: has compute queues"))
    assert judge.excused(queue).use is Use.UNKNOWN


sighting = st.builds(
    Sighting,
    pid=st.just(17),
    by=st.sampled_from(["kfd", "descriptors"]),
    what=st.text(max_size=3),
    memory_bytes=st.one_of(st.none(), st.integers(0, 1 << 40)),
    engines=st.dictionaries(
        st.sampled_from(["gfx", "rcs"]),
        st.builds(Engine, st.integers(0, 1 << 60), st.integers(0, 1 << 60), st.integers(1, 8)),
    ),
    is_busy=st.booleans(),
    is_named=st.booleans(),
    is_mute=st.booleans(),
    of_bytes=st.integers(0, 1 << 40),
)


@given(sighting, st.one_of(st.none(), sighting), st.floats(0, 1e6))
def test_everything_has_a_use(first: Sighting, later: Sighting | None, elapsed_sec: float) -> None:
    assert use_of(Evidence(first, later, elapsed_sec)) in judge.STRENGTH


@given(st.lists(sighting, max_size=6))
def test_joining_loses_no_memory(seen: list[Sighting]) -> None:
    joined = judge.together(seen).values()
    assert sum(s.memory_bytes or 0 for s in joined if s.memory_bytes is not None) <= sum(
        s.memory_bytes or 0 for s in seen
    )
    assert {s.pid for s in joined} == {s.pid for s in seen}
