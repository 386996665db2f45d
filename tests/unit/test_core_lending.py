"""Leases: who gets one, who waits for whom, and what is told of it."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core import foreign
from sdqueue.core.decide import step
from sdqueue.core.lane import Lane
from sdqueue.core.lease import Lease, lease_of_unit, lease_properties
from sdqueue.core.model import Code, Reason
from sdqueue.core.owner import Owner, Standing, Use
from sdqueue.core.plan import plan
from sdqueue.core.verdict import LANE_WORD_HELP, LaneWord
from sdqueue.core.view import why
from sdqueue.words import names
from tests.unit.core_queue import Queue, job, lanes, logged, only, started

GPU = Lane(name="gpu", excludes=frozenset({"net"}), foreign=("llama-server",))
NET = Lane(name="net", excludes=frozenset({"gpu"}), before=("gpu",))
LLAMA = Owner(77, comm="llama-server", unit="llm.service", started=5, uid=1000)


def granted(actions: Iterable[act.Action]) -> list[str]:
    return [action.lease.who for action in only(act.Grant, actions)]


def denied(actions: Iterable[act.Action]) -> list[tuple[str, Code]]:
    return [(deny.lease.who, deny.reasons[0].code) for deny in only(act.Deny, actions)]


def word(queue: Queue, lane: str = "gpu") -> LaneWord:
    return queue.state.lanes[lane].verdict.word


# Granted, refused


def test_a_free_lane_is_lent_at_once_and_its_lease_holds_a_slot() -> None:
    queue = Queue()
    assert word(queue) is LaneWord.FREE
    assert granted(queue.ask("gpu")) == ["engine"]
    assert word(queue) is LaneWord.LEASED
    assert started(queue.add(job("1", lane="gpu"))) == []
    why = queue.why("1")
    assert why
    assert why.code is Code.LEASED
    assert why.blocker == "sdqueue-lease-gpu-engine.service"
    assert "engine, pid 77 (to serve)" in why.detail
    assert started(queue.let_go("gpu")) == ["1"]


def test_it_excludes_jobs_of_excluded_lanes_as_a_job_would_and_nobody_else() -> None:
    queue = Queue()
    queue.lend("gpu")
    assert started(queue.add(job("n", lane="net"), job("c", lane="cpu"))) == ["c"]
    assert queue.code("n") == "excluded-lane"
    assert word(queue, "net") is LaneWord.WANTED
    assert denied(queue.ask("net", "other")) == [("other", Code.EXCLUDED_LANE)]


@pytest.mark.parametrize("lane", ["gpu", "net"])
def test_it_is_refused_while_a_job_has_the_lane_or_one_that_excludes_it(lane: str) -> None:
    queue = Queue()
    queue.add(job("1", lane=lane))
    ((who, code),) = denied(queue.ask("gpu"))
    assert who == "engine"
    assert code in (Code.LANE_TAKEN, Code.EXCLUDED_LANE)


def test_it_is_refused_while_another_has_one_and_had_after_that() -> None:
    queue = Queue()
    queue.lend("gpu", "one")
    assert denied(queue.ask("gpu", "two")) == [("two", Code.LEASED)]
    queue.let_go("gpu", "one")
    assert granted(queue.ask("gpu", "two")) == ["two"]


def test_two_that_ask_in_one_step_do_not_both_get_it() -> None:
    queue = Queue()
    one, two = (Lease(who, "gpu", who) for who in ("one", "two"))
    actions = queue.tell(ev.LeaseAsked(one), ev.LeaseAsked(two))
    assert granted(actions) == ["one"]
    assert denied(actions) == [("two", Code.LANE_TAKEN)] or denied(actions)[0][1] is Code.LEASED


def test_from_the_instant_at_which_a_job_waits_nobody_comes_before_it() -> None:
    queue = Queue(lanes(GPU, NET))
    queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))
    assert word(queue) is LaneWord.FOREIGN
    queue.add(job("1", lane="gpu"))
    assert denied(queue.ask("gpu", "late")) == [("late", Code.EARLIER_JOB)]
    lease = Lease("later", "gpu", "later")
    actions = queue.tell(ev.OwnersSeen("gpu", ()), ev.LeaseAsked(lease))
    assert started(actions) == ["1"]
    assert denied(actions) == [("later", Code.LANE_TAKEN)]


def test_a_job_that_is_just_about_to_start_is_not_overtaken_by_an_excluded_lane() -> None:
    queue = Queue(lanes(GPU, NET))
    queue.tell(ev.OwnersSeen("gpu", ()))
    queue.wait(10)
    assert only(act.Look, queue.add(job("1", lane="gpu")))
    assert denied(queue.ask("net")) == [("engine", Code.EXCLUDED_LANE)]


def test_a_paused_lane_starts_no_job_and_can_be_lent() -> None:
    queue = Queue()
    queue.tell(ev.LanePaused("gpu", True))
    queue.add(job("1", lane="gpu"))
    assert granted(queue.ask("gpu")) == ["engine"]


def test_nothing_is_lent_while_the_queue_is_halted() -> None:
    queue = Queue(starting=True)
    assert denied(queue.ask("gpu")) == [("engine", Code.STARTING)]
    assert word(queue) is LaneWord.UNKNOWN


def test_a_lane_that_is_not_there_is_not_lent() -> None:
    assert denied(Queue().ask("disk")) == [("engine", Code.BAD_FILE)]


def test_a_lease_uses_one_slot_of_many() -> None:
    queue = Queue(lanes(Lane(name="cpu", slots=2)))
    queue.lend("cpu", "one")
    assert started(queue.add(job("1"), job("2"))) == ["1"]
    assert queue.code("2") == "leased"


# Waiting


def test_who_waits_comes_after_the_jobs_that_were_there_and_before_those_that_come_later() -> None:
    queue = Queue()
    queue.add(job("1", lane="gpu"), job("2", lane="gpu"))
    queue.begin("1")
    actions = queue.ask("gpu", wait=True)
    (told,) = logged("lease-wait", actions)
    assert told.fields["reason"] == "lane-taken"
    queue.wait(1)
    queue.add(job("0", lane="gpu"))
    ended = queue.end("1")
    ended += queue.settle(ended)
    assert started(ended) == ["0"], "the line is in its own order; the request is behind job 2"
    ended = queue.run("0")
    assert started(ended) == ["2"]
    queue.wait(1)
    queue.add(job("3", lane="gpu"))
    ended = queue.run("2")
    assert (started(ended), granted(ended)) == ([], ["engine"])
    assert started(queue.let_go("gpu")) == ["3"]


@pytest.mark.parametrize("lane", ["gpu", "net"])
def test_a_job_whose_checks_are_asked_keeps_its_place_before_who_waits(lane: str) -> None:
    queue = Queue(lanes(Lane(name="gpu", excludes=frozenset({"net"})), Lane(name="net")))
    queue.lend("gpu", "first")
    queue.add(job("1", lane=lane, requires=("true",)))
    queue.wait(1)
    queue.ask("gpu", "second", wait=True)
    queue.wait(1)
    assert only(act.Check, queue.let_go("gpu", "first"))
    queue.wait(1)
    actions = queue.tell(ev.Checked("1"), queue.checks_gone(lane))
    assert (started(actions), granted(actions)) == (["1"], [])


def test_who_asks_while_a_job_is_checked_comes_after_it() -> None:
    queue = Queue(lanes(GPU))
    queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))
    queue.add(job("1", lane="gpu", requires=("true",)))
    queue.wait(1)
    queue.ask("gpu", wait=True)
    assert granted(queue.tell(ev.Checked("1"), queue.checks_gone("gpu"))) == []
    assert queue.code("1") == "foreign"
    queue.wait(1)
    actions = queue.tell(ev.OwnersSeen("gpu", ()))
    assert (started(actions), granted(actions)) == (["1"], [])


def test_those_who_wait_get_it_in_the_order_in_which_they_asked() -> None:
    queue = Queue()
    queue.lend("gpu", "first")
    queue.ask("gpu", "second", wait=True)
    queue.ask("gpu", "third", wait=True)
    assert granted(queue.let_go("gpu", "first")) == ["second"]
    assert granted(queue.let_go("gpu", "second")) == ["third"]


def test_a_job_that_comes_later_waits_for_a_request_that_waits_for_an_excluded_lane() -> None:
    queue = Queue()
    queue.add(job("n", lane="net"))
    queue.begin("n")
    queue.ask("gpu", wait=True)
    queue.wait(1)
    queue.add(job("g", lane="gpu"))
    assert queue.code("g") == "excluded-lane"
    ended = queue.end("n")
    ended += queue.settle(ended)
    assert (started(ended), granted(ended)) == ([], ["engine"])
    assert queue.code("g") == "leased"


def test_a_request_whose_caller_is_gone_holds_nobody_up() -> None:
    queue = Queue()
    queue.lend("gpu", "first")
    queue.ask("gpu", "second", wait=True)
    queue.tell(ev.LeaseWithdrawn("second"))
    queue.add(job("1", lane="gpu"))
    actions = queue.let_go("gpu", "first")
    assert (started(actions), granted(actions)) == (["1"], [])


def test_a_request_of_a_lane_that_is_configured_no_more_is_refused() -> None:
    queue = Queue()
    queue.lend("gpu", "first")
    queue.ask("gpu", "second", wait=True)
    actions = queue.tell(ev.ConfigRead(lanes(Lane(name="cpu"))))
    assert denied(actions) == [("second", Code.BAD_FILE)]
    assert "gpu" in queue.state.lanes, "its lease is held yet"
    queue.let_go("gpu", "first")
    assert "gpu" not in queue.state.lanes


def test_a_refusal_of_pid_1_is_told_or_waited_for() -> None:
    queue = Queue()
    why = Reason(Code.REFUSED, "n1.service runs", "n1.service")
    (grant,) = only(act.Grant, queue.ask("gpu"))
    assert denied(queue.tell(ev.LeaseRefused(grant.lease, why))) == [("engine", Code.REFUSED)]
    assert word(queue) is LaneWord.EXCLUDED
    assert granted(queue.tell(ev.UnitGone("n1.service"))) == []
    (grant,) = only(act.Grant, queue.ask("gpu", wait=True))
    assert denied(queue.tell(ev.LeaseRefused(grant.lease, why, wait=True))) == []
    assert granted(queue.tell(ev.UnitGone("n1.service"))) == ["engine"]


@pytest.mark.parametrize("wait", [True, False])
def test_what_pid_1_refuses_in_a_lane_that_is_configured_no_more_is_answered(wait: bool) -> None:
    queue = Queue()
    (grant,) = only(act.Grant, queue.ask("gpu", wait=wait))
    queue.tell(ev.ConfigRead(lanes(Lane(name="cpu"))))
    why = Reason(Code.REFUSED, "n1.service runs", "n1.service")
    actions = queue.tell(ev.LeaseRefused(grant.lease, why, wait=wait))
    assert denied(actions) == [("engine", Code.BAD_FILE)]
    assert "gpu" not in queue.state.lanes


def test_a_name_that_is_a_jobs_leads_nobody_to_that_job() -> None:
    queue = Queue(lanes(GPU, Lane(name="cpu")))
    queue.add(job("1-cpu-a"))
    queue.tell(ev.OwnersSeen("gpu", ()))
    queue.lend("gpu", "first")
    queue.ask("gpu", "1-cpu-a", wait=True)
    queue.wait(1)
    queue.add(job("2", lane="gpu"))
    gone = ev.UnitGone(names.unit_of_lease("gpu", "first"))
    _, planned = step(queue.state, [gone], queue.now)
    assert planned.blocks["gpu"].code is Code.LEASED
    assert [link["name"] for link in why(queue.state, queue["2"], planned)][1:] == [
        names.unit_of_lease("gpu", "1-cpu-a")
    ]
    queue.let_go("gpu", "1-cpu-a")
    queue.tell(ev.OwnersSeen("gpu", (replace(LLAMA, comm="1-cpu-a", unit=""),)))
    assert queue.code("2") == "foreign"
    planned = plan(queue.state, queue.now)
    assert [link["name"] for link in why(queue.state, queue["2"], planned)] == ["2"]


# What is told


def test_a_lease_and_its_end_are_told_once_each() -> None:
    queue = Queue()
    (begun,) = logged("lease", queue.lend("gpu"))
    assert (begun.fields["who"], begun.fields["pid"]) == ("engine", 77)
    (ended,) = logged("lease-end", queue.let_go("gpu"))
    assert "revoked" not in ended.fields
    assert logged("lease-end", queue.let_go("gpu")) == []


def test_a_lease_that_was_over_before_it_was_told_is_not_told_at_all() -> None:
    queue = Queue()
    queue.ask("gpu")
    assert logged("lease-end", queue.let_go("gpu")) == []
    unit = names.unit_of_lease("gpu", "engine")
    assert logged("lease", queue.tell(ev.LeaseStarted(unit))) == []
    assert word(queue) is LaneWord.FREE


def test_a_lease_that_was_stopped_by_somebody_else_is_told_so_and_its_slot_is_the_units() -> None:
    queue = Queue()
    queue.lend("gpu")
    queue.add(job("1", lane="gpu"))
    actions = queue.tell(ev.LeaseRevoked("sdqueue-lease-gpu-engine.service"))
    (ended,) = logged("lease-end", actions)
    assert ended.fields["revoked"] is True
    assert started(actions) == []
    actions = queue.let_go("gpu")
    assert (started(actions), logged("lease-end", actions)) == (["1"], [])


def test_whoever_waits_for_a_lease_is_told_to_wait_and_to_wait_no_longer() -> None:
    queue = Queue()
    queue.lend("gpu", "first")
    assert len(logged("lease-wait", queue.ask("gpu", "second", wait=True))) == 1
    assert len(logged("lease-wait", queue.ask("gpu", "third", wait=True))) == 1
    (ended,) = logged("lease-wait-end", queue.tell(ev.LeaseWithdrawn("third")))
    assert ended.fields["who"] == "third"
    actions = queue.let_go("gpu", "first")
    assert [log.fields["who"] for log in logged("lease-wait-end", actions)] == ["second"]
    unit = names.unit_of_lease("gpu", "second")
    assert logged("lease-wait-end", queue.tell(ev.LeaseStarted(unit))) == []


def test_a_wait_that_is_refused_by_pid_1_goes_on_and_is_told_once() -> None:
    queue = Queue()
    (grant,) = only(act.Grant, queue.ask("gpu", wait=True))
    why = Reason(Code.REFUSED, "n1.service runs", "n1.service")
    actions = queue.tell(ev.LeaseRefused(grant.lease, why, wait=True))
    assert len(logged("lease-wait", actions)) == 1
    assert logged("lease-wait-end", actions) == []


def test_a_lease_that_is_found_held_is_told_and_again_when_another_process_has_it() -> None:
    queue = Queue(starting=True)
    lease = Lease("x", "gpu", "engine", pid=7)
    assert len(logged("lease", queue.tell(ev.LeaseSeen(lease), ev.Halted(None)))) == 1
    assert logged("lease", queue.tell(ev.LeaseSeen(lease))) == []
    (told,) = logged("lease", queue.tell(ev.LeaseSeen(replace(lease, pid=8))))
    assert told.fields["pid"] == 8


def test_a_lease_that_a_look_finds_while_it_is_lent_is_told_once() -> None:
    queue = Queue()
    (grant,) = only(act.Grant, queue.ask("gpu"))
    assert len(logged("lease", queue.tell(ev.LeaseSeen(grant.lease)))) == 1
    assert logged("lease", queue.tell(ev.LeaseStarted(grant.lease.backing_unit))) == []


def test_a_wait_for_a_lease_is_told_to_readers_of_the_log_as_any_other_user_is() -> None:
    queue = Queue()
    queue.lend("gpu")
    (wait,) = logged("gpu-wait", queue.add(job("1", lane="gpu")))
    assert (wait.job, wait.fields["pid"], wait.fields["cmd"]) == ("1", 77, "engine")
    actions = queue.let_go("gpu")
    actions += queue.begin("1")
    assert started(actions) == ["1"]
    assert logged("gpu-wait-end", actions) == []


def test_the_holder_is_told_who_waits_and_when_nobody_does_any_more() -> None:
    queue = Queue()
    queue.lend("gpu")

    def waiters() -> list[tuple[str, str]]:
        return list(queue.state.lanes["gpu"].waiters)

    assert waiters() == []
    actions = queue.add(job("1", lane="gpu"), job("2", lane="gpu"), job("n", lane="net"))
    assert act.LaneChanged("gpu") in actions
    assert waiters() == [("job", "1"), ("job", "n")]
    queue.ask("gpu", "other", wait=True)
    assert waiters() == [("job", "1"), ("lease", "other"), ("job", "n")]
    queue.tell(ev.LeaseWithdrawn("other"), *(ev.FileGone(name) for name in ("1", "2")))
    actions = queue.tell(ev.FileGone("n"))
    assert act.LaneChanged("gpu") in actions
    assert waiters() == []


def test_a_holder_is_told_who_waits_also_where_a_job_has_another_slot() -> None:
    queue = Queue(lanes(GPU._replace(slots=2, foreign=()), NET))
    queue.add(job("1", lane="gpu"))
    queue.begin("1")
    queue.lend("gpu")
    queue.add(job("2", lane="gpu"), job("n", lane="net"))
    assert queue.state.lanes["gpu"].waiters == (("job", "2"), ("job", "n"))


def test_a_lease_that_is_held_since_before_holds_its_lane() -> None:
    queue = Queue(starting=True)
    queue.tell(ev.LeaseSeen(Lease("x", "gpu", "engine")), ev.Halted(None))
    assert word(queue) is LaneWord.LEASED
    assert started(queue.add(job("1", lane="gpu"))) == []
    assert started(queue.let_go("gpu", "x")) == ["1"]


def test_who_inherits_a_lease_is_its_holder_and_brings_no_lease_back_that_is_over() -> None:
    queue = Queue()
    queue.lend("gpu")
    (lease,) = queue.state.lanes["gpu"].leases.values()
    heir = replace(lease, pid=99)
    queue.tell(ev.LeasePassed(heir))
    assert queue.state.lanes["gpu"].leases == {lease.backing_unit: heir}
    queue.tell(ev.UnitGone(lease.backing_unit), ev.LeasePassed(lease))
    assert word(queue) is LaneWord.FREE
    assert queue.state.lanes["gpu"].leases == {}


def test_the_generation_grows_with_each_change_and_stands_still_else() -> None:
    queue = Queue()
    before = queue.state.generation
    queue.tell(ev.Tick())
    assert queue.state.generation == before
    queue.lend("gpu")
    assert queue.state.generation == before + 1
    assert queue.state.lanes["gpu"].verdict.generation == before + 1
    assert queue.state.lanes["net"].verdict.word is LaneWord.EXCLUDED
    assert queue.state.lanes["net"].verdict.generation == before + 1


def test_every_word_has_its_help() -> None:
    assert set(LANE_WORD_HELP) == set(LaneWord)


# Holders as users of the device


def watched() -> Queue:
    queue = Queue(lanes(GPU, NET))
    queue.tell(ev.OwnersSeen("gpu", ()))
    queue.lend("gpu")
    queue.add(job("1", lane="gpu"))
    return queue


def test_after_a_lease_the_lane_is_looked_at_anew_and_who_stays_is_a_stranger() -> None:
    queue = watched()
    actions = queue.let_go("gpu")
    assert only(act.Look, actions) == [act.Look("gpu")]
    assert started(actions) == []
    queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))
    assert queue.code("1") == "foreign"


@pytest.mark.parametrize(
    ("user", "starts"),
    [
        (replace(LLAMA, use=Use.RESIDENT, memory_bytes=600 << 20), True),
        (replace(LLAMA, use=Use.RESIDENT, memory_bytes=601 << 20), False),
        (replace(LLAMA, use=Use.ACTIVE, memory_bytes=600 << 20), False),
        (replace(LLAMA, use=Use.UNKNOWN, memory_bytes=0), False),
        (replace(LLAMA, started=6, use=Use.RESIDENT, memory_bytes=1 << 20), False),
    ],
)
def test_memory_that_a_holder_said_it_keeps_is_in_nobodys_way_until_it_works(
    user: Owner, starts: bool
) -> None:
    queue = watched()
    queue.tell(ev.LeaseParked("sdqueue-lease-gpu-engine.service", 600 << 20))
    (ended,) = logged("lease-end", queue.let_go("gpu"))
    assert ended.fields["parked_bytes"] == 600 << 20
    assert bool(started(queue.tell(ev.OwnersSeen("gpu", (user,))))) is starts


def test_who_has_worked_again_has_parked_nothing_any_more() -> None:
    queue = watched()
    queue.tell(ev.LeaseParked("sdqueue-lease-gpu-engine.service", 600 << 20))
    queue.let_go("gpu")
    queue.tell(ev.OwnersSeen("gpu", (replace(LLAMA, use=Use.ACTIVE, memory_bytes=1 << 20),)))
    idle = replace(LLAMA, use=Use.RESIDENT, memory_bytes=1 << 20)
    assert started(queue.tell(ev.OwnersSeen("gpu", (idle,)))) == []


@pytest.mark.parametrize(
    ("unit", "is_holder"),
    [
        ("llm.service", True),
        ("session-3.scope", False),
        ("user@1000.service", False),
        ("capsule@x.service", False),
        ("", False),
    ],
)
def test_who_shares_a_service_with_the_holder_is_the_holder_and_a_session_is_none(
    unit: str, is_holder: bool
) -> None:
    lease = Lease("a", "gpu", "engine", pid=7, started=3, uid=1000, unit=unit)
    child = Owner(8, started=4, uid=1000, unit=unit)
    assert foreign.is_holder(lease, child) is is_holder
    assert foreign.is_holder(lease, replace(child, pid=7, started=3, unit="other.service"))
    assert not foreign.is_holder(lease, replace(child, uid=1001))


def test_what_can_not_be_told_is_not_the_holder_whom_nobody_knows() -> None:
    unknown = Lease("a", "gpu", "engine", uid=1000)
    assert not foreign.is_holder(unknown, Owner(0, use=Use.UNKNOWN, note="it can't be told"))
    assert not foreign.has_by(unknown, Owner(8, ppid=0, started=4))


def test_who_takes_the_lane_again_has_parked_nothing() -> None:
    queue = watched()
    queue.tell(ev.FileGone("1"), ev.LeaseParked("sdqueue-lease-gpu-engine.service", 1 << 30))
    queue.let_go("gpu")
    queue.tell(ev.OwnersSeen("gpu", ()))
    queue.lend("gpu")
    assert queue.state.lanes["gpu"].parked == []


def test_who_asks_for_the_lane_and_is_refused_has_parked_what_it_had() -> None:
    queue = watched()
    queue.tell(ev.LeaseParked("sdqueue-lease-gpu-engine.service", 600 << 20))
    queue.let_go("gpu")
    assert denied(queue.ask("gpu")) == [("engine", Code.EARLIER_JOB)]
    idle = replace(LLAMA, use=Use.RESIDENT, memory_bytes=600 << 20)
    assert started(queue.tell(ev.OwnersSeen("gpu", (idle,)))) == ["1"]


@pytest.mark.parametrize(
    ("sizes", "use", "starts"),
    [
        ((600,), Use.RESIDENT, True),
        ((400, 200), Use.RESIDENT, True),
        ((400, 201), Use.RESIDENT, False),
        ((600,), Use.ACTIVE, False),
    ],
)
def test_a_router_that_lets_go_says_what_its_children_keep(
    sizes: tuple[int, ...], use: Use, starts: bool
) -> None:
    queue = watched()
    (lease,) = queue.state.lanes["gpu"].leases.values()
    router = replace(lease, unit=LLAMA.unit, uid=1000)
    queue.tell(ev.LeaseSeen(router), ev.LeaseParked(router.backing_unit, 600 << 20))
    queue.let_go("gpu")
    children = [replace(LLAMA, pid=100 + size, use=use, memory_bytes=size << 20) for size in sizes]
    assert bool(started(queue.tell(ev.OwnersSeen("gpu", tuple(children))))) is starts


def test_the_holder_of_a_lease_is_no_stranger_in_a_lane_of_more_slots() -> None:
    queue = Queue(lanes(GPU._replace(slots=2, excludes=frozenset())))
    queue.tell(ev.OwnersSeen("gpu", ()))
    queue.lend("gpu")
    queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))
    assert started(queue.add(job("1", lane="gpu"))) == ["1"]


def test_the_holder_as_a_user_says_what_it_is() -> None:
    lease = Lease("a", "gpu", "engine", pid=7, started=3, uid=1000)
    assert lease.owner.standing is Standing.LEASED
    assert lease.owner.identity == (7, 3)
    assert lease.owner.comm == "engine"


# Its unit

text = st.text(max_size=40).filter(str.isprintable)


@given(who=text, why=text, pid=st.integers(0, 2**22), since_sec=st.floats(0, 4e9))
def test_a_lease_is_read_back_from_its_unit(who: str, why: str, pid: int, since_sec: float) -> None:
    lease = Lease("1f", "gpu", who, why, 1000, pid, 5, "c", "u.service", 99, "", since_sec)
    found = {name: value for name, _, value in lease_properties(lease, GPU, system=True)}
    assert lease_of_unit(lease.backing_unit, found["Environment"]) == lease  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "spoiled",
    [
        ("SDQUEUE_LEASE_PID=7", "SDQUEUE_LEASE_PID=seven"),
        ("SDQUEUE_LEASE_ID=1f", "SDQUEUE_LEASE_ID=../1f"),
        ("SDQUEUE_LEASE_LANE=gpu", "SDQUEUE_LEASE_LANE=net"),
        ("SDQUEUE_LEASE_WHO=engine", "WHO"),
    ],
)
def test_what_we_did_not_write_there_is_no_lease(spoiled: tuple[str, str]) -> None:
    lease = Lease("1f", "gpu", "engine", pid=7)
    found = {name: value for name, _, value in lease_properties(lease, GPU, system=False)}
    lines = [line.replace(*spoiled) for line in found["Environment"]]  # type: ignore[attr-defined]
    assert lines != found["Environment"]
    assert lease_of_unit(lease.backing_unit, lines) is None


@pytest.mark.parametrize(
    "forged",
    [
        {"pid": 10**20},
        {"pid": -1},
        {"uid": 2**32},
        {"started": 2**63},
        {"pipe": 2**63},
        {"since_sec": math.nan},
        {"since_sec": math.inf},
        {"since_sec": -1.0},
        {"who": "x" * 129},
        {"why": "y" * 513},
        {"why": "\x1b[2J"},
        {"comm": "two\nlines"},
        {"unit": "\N{RIGHT-TO-LEFT OVERRIDE}"},
        {"adopted": "\t"},
    ],
)
def test_what_we_can_not_have_written_is_no_lease(forged: dict[str, Any]) -> None:
    lease = replace(Lease("1f", "gpu", "engine", pid=7), **forged)
    found = {name: value for name, _, value in lease_properties(lease, GPU, system=False)}
    assert lease_of_unit(lease.backing_unit, found["Environment"]) is None  # type: ignore[arg-type]


def test_its_description_is_one_line_of_its_units_file() -> None:
    lease = Lease("1f", "gpu", "engine\\")
    found = {name: value for name, _, value in lease_properties(lease, GPU, system=False)}
    assert found["Description"] == "[gpu] lease of engine"


def test_its_unit_is_in_the_lane_as_a_jobs_is() -> None:
    lease = Lease("1f", "gpu", "engine")
    found = {name: value for name, _, value in lease_properties(lease, GPU, system=False)}
    assert found["Type"] == "oneshot"
    assert found["Slice"] == names.slice_of_lane("gpu")
    assert found["Conflicts"] == [names.target_of_lane("net")]
    assert found["RemainAfterExit"] is False
