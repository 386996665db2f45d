"""Where a job goes when its run is over: budget, cancel, re-seeding, what is told of it."""

from dataclasses import replace
from typing import Any

import pytest

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.actions import Settle, StopUnit
from sdqueue.core.model import FORGET, Code, JobState, Memory, Phase, Reason
from sdqueue.core.reconcile import reconcile, witness_end
from sdqueue.core.results import RunEnd, Verdict, judge
from sdqueue.words import names
from tests.unit.core_queue import DONE, FAILED, STOPPED, Queue, job, logged, only, started

UNIT = names.unit_of_job("a")


def running(spec_keys: dict[str, Any] | None = None, memory: Memory = FORGET) -> Queue:
    """Have a job `a` run."""
    queue = Queue()
    queue.add(job("a", **(spec_keys or {})), memory=memory)
    queue.begin("a")
    return queue


def settled(actions: list[act.Action]) -> Settle:
    (settle,) = only(Settle, actions)
    return settle


def test_attempts_are_spent_by_failures_until_the_budget_is_gone() -> None:
    queue = running({"attempts_max": 3})
    for attempt in (1, 2):
        settle = settled(queue.end("a", FAILED))
        assert (settle.to, settle.word, settle.attempt) == (JobState.QUEUED, "retry", attempt)
        assert settle.memory == Memory(attempts=attempt)
        queue.settle([settle])
        assert queue["a"].attempt == attempt + 1
        queue.begin("a")
    settle = settled(queue.end("a", FAILED))
    assert (settle.to, settle.word, settle.attempt) == (JobState.FAILED, "failed", 3)
    assert settle.memory == Memory()
    queue.settle([settle])
    assert queue.state.ended == {"a": JobState.FAILED}
    assert not queue.state.jobs


def test_a_unit_that_can_not_be_built_fails_once_frees_its_lane_and_the_next_starts() -> None:
    queue = Queue()
    assert started(queue.add(job("a"), job("b"))) == ["a"]
    ended = queue.tell(ev.Ended("a", RunEnd(job_result="unbuildable", service_result="bad")))
    assert (settled(ended).to, settled(ended).word) == (JobState.FAILED, "failed")
    assert started(ended) == ["b"]
    assert len(logged("failed", queue.settle(ended))) == 1


def test_a_stop_by_an_operator_parks_the_job_and_spends_nothing() -> None:
    settle = settled(running().end("a", STOPPED))
    assert (settle.to, settle.word, settle.memory) == (JobState.PARKED, "parked", Memory())


def test_a_shutdown_leaves_the_job_in_running_and_its_lane_taken() -> None:
    queue = running()
    queue.add(job("b"))
    actions = queue.tell(ev.Ended("a", replace(STOPPED, stopping=True)), queue.gone("a"))
    assert not only(Settle, actions)
    assert queue["a"].state is JobState.RUNNING
    assert not started(actions)
    assert queue.code("b") == "lane-taken"


def test_a_cancel_is_kept_when_the_box_goes_down_before_the_run_does() -> None:
    queue = running()
    queue.tell(ev.CancelAsked("a", 1000))
    settle = settled(queue.tell(ev.Ended("a", replace(STOPPED, stopping=True))))
    assert (settle.to, settle.word, settle.by) == (JobState.PARKED, "canceled", 1000)


def test_interruptions_spend_nothing_and_the_last_of_many_in_a_row_parks() -> None:
    queue = Queue(starting=True)
    queue.tell(ev.FileRunning("a", job("a"), 1, Memory(1, 1)))
    settle = settled(queue.tell(ev.Lost("a", "power cut", True)))
    assert (settle.to, settle.word) == (JobState.QUEUED, "recovered")
    assert settle.memory == Memory(1, 2)
    queue = Queue(starting=True)
    queue.tell(ev.FileRunning("a", job("a"), 1, Memory(1, 2)))
    settle = settled(queue.tell(ev.Lost("a", "power cut", True)))
    assert (settle.to, settle.word) == (JobState.PARKED, "parked")
    assert "3 times" in settle.note


def test_a_failure_ends_a_row_of_interruptions() -> None:
    settle = settled(running(memory=Memory(0, 2)).end("a", FAILED))
    assert settle.memory == Memory(1, 0)


def test_a_run_lost_without_a_reboot_is_no_interruption() -> None:
    settle = settled(running(memory=Memory(1, 2)).tell(ev.Lost("a", "no unit", False)))
    assert (settle.to, settle.memory) == (JobState.QUEUED, Memory(1, 2))


# DONE_IF after a failure


def test_after_a_failure_done_if_is_asked_and_decides() -> None:
    for holds, to in ((True, JobState.DONE), (False, JobState.QUEUED), (None, JobState.QUEUED)):
        queue = running_checked()
        asked = queue.end("a", FAILED)
        assert only(act.Verify, asked) == [act.Verify("a")]
        assert not only(Settle, asked)
        settle = settled(queue.tell(ev.Verified("a", holds)))
        assert settle.to is to
        assert settle.outcome
        assert settle.outcome.verified is holds
        assert settle.outcome.rc == 7


def running_checked() -> Queue:
    """Have a job `a` with a DONE_IF run."""
    queue = Queue()
    queue.add(job("a", done_if="false"))
    queue.tell(ev.Checked("a"), queue.checks_gone("cpu"))
    queue.begin("a")
    return queue


def test_the_lane_is_held_while_done_if_is_asked_after_a_failure() -> None:
    queue = running_checked()
    queue.add(job("b"))
    queue.end("a", FAILED)
    assert queue.code("b") == "lane-taken"
    assert started(queue.tell(ev.Verified("a", False))) == ["b"]


def test_no_done_if_no_question() -> None:
    assert not only(act.Verify, running().end("a", FAILED))


# Cancel, in each phase


def test_cancel_of_a_run_stops_its_unit_and_parks_what_did_not_succeed() -> None:
    queue = running()
    assert only(StopUnit, queue.tell(ev.CancelAsked("a", 1000))) == [StopUnit(UNIT)]
    settle = settled(queue.end("a", STOPPED))
    assert (settle.to, settle.word, settle.by) == (JobState.PARKED, "canceled", 1000)


def test_cancel_during_the_start_stops_the_unit_once_it_is_there() -> None:
    queue = Queue()
    queue.add(job("a"))
    assert not only(StopUnit, queue.tell(ev.CancelAsked("a", 1000)))
    assert only(StopUnit, queue.begin("a")) == [StopUnit(UNIT)]


@pytest.mark.parametrize("detail", ["refused", "not claimed"])
def test_cancel_during_a_start_that_comes_to_nothing_parks(detail: str) -> None:
    queue = Queue()
    queue.add(job("a"))
    queue.tell(ev.CancelAsked("a", 1000))
    refused = ev.Refused("a", Reason(Code.REFUSED, "refused", "x.service"))
    actions = queue.tell(refused if detail == "refused" else ev.NotClaimed("a"))
    assert only(act.Park, actions) == [act.Park("a", 1000)]
    assert not started(actions)


def test_a_stop_that_the_bus_lost_is_asked_for_again_when_the_unit_is_found() -> None:
    queue = running()
    queue.tell(ev.CancelAsked("a", 1000))
    assert only(StopUnit, queue.tell(ev.Reattached("a", 7))) == [StopUnit(UNIT)]


def test_cancel_while_a_retry_is_written_down_parks_the_job_then() -> None:
    queue = running()
    ended = queue.end("a", FAILED)
    queue.tell(ev.CancelAsked("a", 1000))
    actions = queue.settle(ended)
    assert only(act.Park, actions) == [act.Park("a", 1000)]
    assert not started(actions)


def test_cancel_while_done_if_is_asked_after_a_failure() -> None:
    queue = running_checked()
    queue.end("a", FAILED)
    queue.tell(ev.CancelAsked("a", 1000))
    assert settled(queue.tell(ev.Verified("a", False))).to is JobState.PARKED


@pytest.mark.parametrize("keys", [{}, {"requires": "true"}, {"not_before_sec": 2e9}])
def test_cancel_of_a_waiting_job_parks_it(keys: dict[str, Any]) -> None:
    queue = Queue()
    queue.tell(ev.LanePaused("cpu", not keys))
    queue.add(job("a", **keys))
    actions = queue.tell(ev.CancelAsked("a", 1000))
    assert only(act.Park, actions) == [act.Park("a", 1000)]
    assert len(logged("canceled", queue.settle(actions))) == 1
    assert queue.state.ended == {"a": JobState.PARKED}


def test_a_cancel_that_outlived_a_restart_is_carried_out() -> None:
    queue = Queue(starting=True)
    queue.tell(ev.FileRunning("a", job("a"), 1, cancel_uid=1000))
    assert only(StopUnit, queue.tell(ev.Reattached("a", 7))) == [StopUnit(UNIT)]
    queue = Queue(starting=True)
    queue.tell(ev.FileRunning("a", job("a"), 1, cancel_uid=1000))
    killed = RunEnd(service_result="signal", main_code="killed", main_status=15)
    assert settled(queue.tell(ev.Ended("a", killed))).to is JobState.PARKED


# Files that come and go meanwhile


def test_a_job_re_seeded_while_it_runs_runs_again_with_a_fresh_budget() -> None:
    queue = running({"attempts_max": 3}, Memory(2))
    queue.add(job("a", description="new"), memory=Memory(2))
    ended = queue.end("a", FAILED)
    assert settled(ended).to is JobState.FAILED
    actions = queue.settle(ended)
    assert started(actions) == ["a"]
    assert queue["a"].spec == job("a", description="new")
    assert queue["a"].attempt == 1


def test_a_job_re_seeded_while_it_runs_and_taken_away_again_does_not_run_again() -> None:
    queue = running()
    queue.add(job("a"))
    queue.tell(ev.FileGone("a"))
    assert not started(queue.settle(queue.end("a")))
    assert queue.state.ended == {"a": JobState.DONE}


def test_a_file_seen_on_its_way_to_running_is_not_taken_for_a_new_one() -> None:
    queue = Queue()
    queue.add(job("a"))
    queue.add(job("a", description="seen just before the claim"))
    assert not started(queue.run("a"))
    assert not queue.state.jobs


def test_a_retry_superseded_by_a_new_file_is_neither_queued_twice_nor_ended_as_queued() -> None:
    queue = running()
    (settle,) = only(Settle, queue.end("a", FAILED))
    queue.tell(ev.Settled("a", settle, superseded=True))
    assert not queue.state.jobs
    assert JobState.QUEUED not in queue.state.ended.values()
    assert started(queue.add(job("a"))) == ["a"]
    assert queue["a"].attempt == 1


def test_the_end_of_a_job_whose_move_was_seen_first_is_told_all_the_same() -> None:
    queue = Queue()
    queue.add(job("a", done_if="true"))
    skip = queue.tell(ev.Checked("a", done=True))
    queue.tell(ev.FileGone("a"), ev.FileEnded("a", JobState.DONE))
    assert len(logged("skipped", queue.settle(skip))) == 1
    assert not queue.state.jobs
    assert queue.state.ended == {"a": JobState.DONE}


def test_a_job_queued_anew_before_its_skip_is_told_stays_in_the_queue() -> None:
    queue = Queue()
    queue.add(job("a", done_if="true"))
    skip = queue.tell(ev.Checked("a", done=True))
    queue.tell(ev.FileGone("a"), ev.LanePaused("cpu", True))
    queue.add(job("a"))
    assert len(logged("skipped", queue.settle(skip))) == 1
    assert queue.phase("a") is Phase.IN_LINE


def test_a_skip_whose_file_had_vanished_is_no_end() -> None:
    queue = Queue()
    queue.add(job("a", done_if="true"))
    (skip,) = only(act.Skip, queue.tell(ev.Checked("a", done=True)))
    assert not logged("skipped", queue.tell(ev.Settled("a", skip, vanished=True)))
    assert not queue.state.jobs
    assert not queue.state.ended


# What is told


def test_seconds_are_those_of_the_run_or_none_where_its_start_is_not_known() -> None:
    queue = running()
    queue.now += 5
    (done,) = logged("done", queue.settle(queue.end("a")))
    assert done.fields["seconds"] == 5
    queue = Queue(starting=True)
    queue.tell(ev.FileRunning("a", job("a"), 1))
    (done,) = logged("done", queue.settle(queue.end("a")))
    assert done.fields["seconds"] is None
    queue = Queue(starting=True)
    queue.tell(ev.FileRunning("a", job("a"), 1, started_sec=queue.now - 60))
    (done,) = logged("done", queue.settle(queue.end("a")))
    assert done.fields["seconds"] == 60


def test_a_run_that_is_over_before_its_start_was_answered_is_told_start_first() -> None:
    queue = Queue()
    queue.add(job("a"))
    actions = queue.tell(ev.Claimed("a", 1), ev.Ended("a", DONE), queue.gone("a"))
    actions += queue.settle(actions)
    actions += queue.tell(ev.Started("a", 7))
    told = [action.event for action in only(act.Log, actions)]
    assert told == ["start", "done"]
    assert started(queue.add(job("b"))) == ["b"]


def test_a_start_whose_answer_was_lost_is_told_as_a_start() -> None:
    queue = Queue()
    queue.add(job("a"))
    told = queue.tell(ev.Claimed("a", 1), ev.Reattached("a", 7, "i"))
    assert [action.event for action in only(act.Log, told)] == ["start"]


def test_successors_of_a_job_that_ended_are_forgotten_with_it() -> None:
    queue = Queue()
    queue.add(job("a"))
    queue.run("a")
    queue.add(job("b", after=("a",)))
    queue.run("b")
    assert not queue.state.successors
    queue.add(job("a"))
    queue.run("a")
    assert queue.state.ended == {"a": JobState.DONE, "b": JobState.DONE}


def test_a_cut_short_run_that_exited_0_is_no_success() -> None:
    end = witness_end("success", "exited", "0", has_done_if=False, is_whole=False)
    assert judge(end).verdict is Verdict.STOPPED
    assert isinstance(reconcile("a", None, end, same_manager=True), ev.Ended)
    assert reconcile("a", None, end, same_manager=False) == ev.Lost(
        "a", "the box or its service manager went down during the run", True
    )


def test_a_trouble_that_comes_and_goes_is_told_once_until_a_claim_succeeds() -> None:
    queue = Queue()
    trouble = ev.Halted(Reason(Code.TROUBLE, "the disk is full"))

    def told() -> int:
        return sum(isinstance(each, act.Log) and each.event == "error" for each in queue.actions)

    for _ in range(3):
        queue.tell(trouble)
        queue.tell(ev.Halted(None))
    assert told() == 1
    queue.add(job("a"))
    queue.begin("a")
    queue.tell(trouble)
    assert told() == 2


def test_a_name_put_back_while_its_file_is_claimed_is_looked_at_again() -> None:
    queue = Queue()
    queue.add(job("a"))
    queue.tell(ev.FileQueued("a", job("a", description="again")))
    assert only(act.Relook, queue.tell(ev.Claimed("a", 1))) == [act.Relook("a")]


def test_a_clock_set_back_between_two_events_is_noticed_at_the_second() -> None:
    queue = Queue()
    queue.add(job("a", retry_delay_usec=3_000_000), memory=Memory(1, 0, queue.now + 3))
    queue.wait(-86_400)
    queue.wait(3.1)
    assert queue.state.jobs["a"].phase is Phase.CLAIMING


@pytest.mark.parametrize(
    "event",
    [ev.NotClaimed("a", gone=True), ev.NotClaimed("a"), ev.Refused("a", Reason(Code.REFUSED))],
    ids=["gone", "not moved", "refused"],
)
def test_a_file_that_came_while_its_job_was_to_start_is_looked_at_when_it_did_not(
    event: ev.Event,
) -> None:
    queue = Queue()
    assert started(queue.add(job("a"))) == ["a"]
    queue.add(job("a", priority=5))
    actions = queue.tell(event)
    assert only(act.Relook, actions) == [act.Relook("a")]
    queue.add(job("a", priority=5))
    assert queue["a"].spec == job("a", priority=5)
    assert queue["a"].reseeded is None
