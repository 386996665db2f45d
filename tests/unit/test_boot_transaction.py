"""A transaction step by step, on graphs of a few units."""

from random import Random

import pytest

from sdqueue.boot.activate import CYCLIC, Outcome, activate, boot_mode
from sdqueue.boot.draws import outlook
from sdqueue.boot.graph import Graph, Kind, LoadState, Node, Origin
from sdqueue.boot.hashorder import HashOrder
from sdqueue.boot.pull import Mode

HERE = Origin("file")
VERSIONS = [252, 257, 262]


Edge = tuple[str, Kind, str]


def graph(*edges: Edge, states: dict[str, LoadState] | None = None) -> Graph:
    made = Graph()
    for unit, kind, other in edges:
        for name in (unit, other):
            if name not in made.nodes:
                made.put(Node(name, load_state=(states or {}).get(name, "loaded")))
        made.add(unit, kind, other, HERE)
    return made


def start(made: Graph, unit: str = "t", mode: Mode = "isolate", version: int = 257) -> Outcome:
    return activate(made, unit, mode=mode, version=version)


TRIO: tuple[Edge, ...] = (
    ("t", "Wants", "a"),
    ("t", "Wants", "b"),
    ("t", "After", "b"),
    ("b", "After", "a"),
    ("a", "After", "t"),
)


def test_requirements_are_pulled_in_through_any_number_of_units() -> None:
    out = start(graph(*((f"u{i}", "Requires", f"u{i + 1}") for i in range(5000))), "u0")
    assert len(out.jobs) == 5001


def test_ordering_and_notification_pull_nothing_in() -> None:
    kinds: tuple[Kind, ...] = ("After", "Before", "PartOf", "OnFailure", "OnSuccess", "Triggers")
    out = start(graph(*(("t", kind, kind) for kind in kinds)))
    assert out.jobs == {"t/start"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cycle_is_broken_at_the_first_job_that_does_not_matter(version: int) -> None:
    out = start(graph(*TRIO), version=version)
    assert len(out.cycles) == 1
    assert out.cycles[0].victim in ("a", "b")
    assert out.deleted == [f"{out.cycles[0].victim}/start"]
    assert not out.error


def test_what_requires_the_victim_goes_with_it_silently() -> None:
    made = graph(*TRIO, ("t", "Wants", "c"), ("c", "Requires", "a"), ("c", "Requires", "b"))
    out = start(made)
    assert out.silent == ["c/start"]
    assert "c/start" not in out.jobs


def test_what_only_the_victim_wanted_stays_when_isolating_and_goes_when_not() -> None:
    made = graph(*TRIO, ("a", "Wants", "only-a"), ("b", "Wants", "only-b"))
    kept, collected = start(made), start(made, mode="replace")
    assert {"only-a/start", "only-b/start"} <= kept.jobs
    assert collected.garbage == [f"only-{collected.cycles[0].victim}/start"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cycle_of_jobs_that_all_matter_fails_the_whole_request(version: int) -> None:
    strict: list[Edge] = [(u, "Requires" if k == "Wants" else k, o) for u, k, o in TRIO]
    made = graph(*strict)
    assert start(made, version=version).error == CYCLIC
    found = outlook(made, "t", mode="isolate", version=version)
    assert {unit for loop in found.fatal for unit in loop} == {"t", "a", "b"}
    assert found.errors == {CYCLIC: 1.0}


def test_a_unit_that_is_active_has_no_job_and_cuts_the_cycle() -> None:
    made = graph(*TRIO)
    made.put(Node("a", active_state="active"))
    assert not start(made).cycles


def test_ordering_turns_round_where_units_stop() -> None:
    made = graph(*(("s", "Conflicts", u) for u in "ab"), ("a", "After", "b"), ("b", "After", "s"))
    for unit in "ab":
        made.put(Node(unit, active_state="active"))
    assert start(made, "s", "replace").cycles == []
    made.add("b", "Requires", "c", HERE)
    assert start(made, "s", "replace").jobs == {"s/start", "a/stop", "b/stop"}


@pytest.mark.parametrize(("version", "starts"), [(252, True), (253, True), (254, False)])
@pytest.mark.parametrize("state", ["not-found", "masked", "bad-setting"])
def test_without_its_requirement_a_wanted_unit_started_until_253(
    version: int, state: LoadState, *, starts: bool
) -> None:
    made = graph(("t", "Wants", "a"), ("a", "Requires", "x"), states={"x": state})
    assert ("a/start" in start(made, version=version).jobs) == starts


def test_a_request_whose_own_requirement_is_missing_is_refused() -> None:
    made = graph(("t", "Requires", "x"), states={"x": "not-found"})
    assert start(made).refusal == "not-found"


@pytest.mark.parametrize("version", VERSIONS)
def test_of_two_that_conflict_the_named_one_is_never_started(version: int) -> None:
    made = graph(("t", "Wants", "a"), ("t", "Wants", "b"), ("a", "Conflicts", "b"))
    found = outlook(made, "t", mode="isolate", version=version)
    assert found.p_conflicting == {"a/stop": 1.0, "b/start": 1.0}


def test_of_two_that_conflict_with_each_other_one_is_started_by_chance() -> None:
    made = graph(
        *(("t", "Wants", u) for u in "ab"), ("a", "Conflicts", "b"), ("b", "Conflicts", "a")
    )
    found = outlook(made, "t", mode="isolate", version=257)
    assert found.p_conflicting["a/start"] + found.p_conflicting["b/start"] == pytest.approx(1.0)
    assert 0.4 < found.p_conflicting["a/start"] < 0.6


def test_jobs_that_both_matter_and_conflict_fail_the_request() -> None:
    made = graph(("t", "Requires", "a"), ("t", "Conflicts", "a"))
    assert "conflicting jobs" in start(made).error
    found = outlook(made, "t", mode="replace", version=257)
    assert sum(found.errors.values()) == pytest.approx(1.0)


def test_a_job_that_is_queued_irreversibly_may_not_be_reversed() -> None:
    made = graph(("t", "Wants", "a"))
    out = activate(
        made,
        "t",
        mode="replace",
        version=257,
        installed={"a": "stop"},
        irreversible=frozenset({"a"}),
    )
    assert "destructive" in out.error


def test_a_perpetual_unit_is_never_stopped() -> None:
    made = graph(("t", "Conflicts", "p"))
    made.put(Node("p", perpetual=True, active_state="active"))
    assert start(made).jobs == {"t/start"}


def test_a_stop_reaches_what_requires_the_unit_and_gracefully_what_it_names_since_254() -> None:
    made = graph(
        ("t", "Conflicts", "a"),
        ("t", "Wants", "c"),
        ("b", "Requires", "a"),
        ("a", "PropagatesStopTo", "c"),
    )
    for unit in "abc":
        made.put(Node(unit, active_state="active"))
    assert start(made, mode="replace").jobs >= {"a/stop", "b/stop"}


def test_a_target_is_isolated_at_boot_only_where_it_allows_that() -> None:
    made = Graph()
    made.put(Node("t", allow_isolate=True))
    assert boot_mode(made, "t") == "isolate"
    assert boot_mode(made, "u") == "replace"


def random_graph(rng: Random, n: int) -> Graph:
    pulls: list[Kind] = ["Wants", "Wants", "Requires"]
    made = graph(*(("t", rng.choice(pulls), f"u{i}") for i in range(n)))
    after: list[Kind] = ["After"]
    kinds: list[Kind] = [*after * 6, "Before", "Requires", "Wants"]
    for _ in range(2 * n):
        made.add(f"u{rng.randrange(n)}", rng.choice(kinds), f"u{rng.randrange(n)}", HERE)
        if rng.random() < 0.2:
            made.add("t", rng.choice(["Before", "After"]), f"u{rng.randrange(n)}", HERE)
    return made


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mode", ["isolate", "replace"])
def test_many_draws_at_once_have_the_odds_of_draws_one_by_one(seed: int, mode: Mode) -> None:
    made = random_graph(Random(seed), 3 + seed)
    found = outlook(made, "t", mode=mode, version=257)
    n = 300
    outs = [
        activate(made, "t", mode=mode, version=257, luck=HashOrder(Random(i))) for i in range(n)
    ]
    failed = sum(bool(out.error) for out in outs) / n
    assert failed == pytest.approx(sum(found.errors.values()), abs=0.15)
    assert bool(found.fatal) == (failed == 1.0)
    kept = [out for out in outs if not out.error]
    for share, what in (
        (found.p_deleted, [set(out.deleted) for out in kept]),
        (found.p_lost, [{*out.deleted, *out.silent, *out.garbage} for out in kept]),
    ):
        for job in set(share).union(*what):
            seen = sum(job in one for one in what) / n
            assert seen == pytest.approx(share.get(job, 0.0), abs=0.15), job


def test_the_same_seed_gives_the_same_odds() -> None:
    made = random_graph(Random(3), 9)
    one, two = (outlook(made, "t", mode="isolate", version=257, seed=7) for _ in range(2))
    assert one == two
