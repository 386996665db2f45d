"""What follows the end of a job besides its end: hooks, and whether the box may go to sleep."""

from typing import Any

import pytest

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.lane import Lane
from sdqueue.core.model import JobState
from sdqueue.core.results import RunEnd
from tests.unit.core_queue import DONE, FAILED, STOPPED, Queue, job, lanes, logged, only

HOOKS: dict[str, Any] = {
    "on_success": ("note@.service", "all.service"),
    "on_failure": ("alarm@.service",),
}


@pytest.mark.parametrize(
    ("end", "attempts", "units"),
    [
        (DONE, 1, ["note@1\\x20a.service", "all.service"]),
        (FAILED, 1, ["alarm@1\\x20a.service"]),
        (FAILED, 2, []),
        (STOPPED, 1, []),
    ],
)
def test_hooks_are_started_at_the_end_of_the_job_and_never_before(
    end: RunEnd, attempts: int, units: list[str]
) -> None:
    queue = Queue()
    queue.add(job("1 a", attempts_max=attempts, retry_delay_usec=10**9, **HOOKS))
    queue.begin("1 a")
    actions = queue.end("1 a", end)
    assert only(act.Hook, actions) == [], "not before the end is on disk"
    assert [hook.unit for hook in only(act.Hook, queue.settle(actions))] == units


def test_a_skipped_job_is_done_and_starts_its_hooks() -> None:
    queue = Queue()
    queue.add(job("a", done_if="x", **HOOKS))
    actions = queue.settle(queue.tell(ev.Checked("a", done=True)))
    assert [hook.unit for hook in only(act.Hook, actions)] == ["note@a.service", "all.service"]


def test_another_users_job_has_only_the_hooks_of_its_lane() -> None:
    queue = Queue(lanes(Lane(name="cpu", on_success=("all.service",))))
    queue.add(job("a", uid=1000, on_success=("all.service", "poweroff.target")))
    actions = queue.run("a")
    assert [hook.unit for hook in only(act.Hook, actions)] == ["all.service"]
    (error,) = logged("error", actions)
    assert "poweroff.target" in str(error.fields["what"])


def test_a_notice_is_told_once_and_stays_until_it_is_taken_back() -> None:
    queue = Queue()
    assert logged("notice", queue.tell(ev.Noticed("inhibitor", "no")))
    assert queue.tell(ev.Noticed("inhibitor", "no")) == []
    assert list(queue.state.notices.values()) == ["no"]
    assert queue.tell(ev.Noticed("inhibitor", None)) == []
    assert queue.state.notices == {}
    assert logged("error", queue.tell(ev.Noticed("configuration", "x:1", is_error=True)))


def test_the_box_is_kept_awake_while_something_runs_in_a_lane_that_asks_for_it() -> None:
    queue = Queue(lanes(Lane(name="cpu", slots=2), Lane(name="net", inhibit_sleep=False)))
    assert only(act.KeepAwake, queue.add(job("n", lane="net"))) == []
    queue.begin("n")
    assert only(act.KeepAwake, queue.add(job("a"))) == [act.KeepAwake(True)]
    assert only(act.KeepAwake, queue.add(job("b"))) == []
    assert only(act.KeepAwake, queue.run("a")) == []
    assert only(act.KeepAwake, queue.run("b")) == [act.KeepAwake(False)]


# What people do to files


def test_files_that_move_at_rest_are_somebodys_doing_and_our_own_moves_are_not() -> None:
    queue = Queue()
    queue.state.uid = 7
    queue.tell(ev.LanePaused("cpu", True))
    queue.add(job("a"), job("b"))
    away: list[ev.Event] = [ev.FileEnded("a", JobState.PARKED), ev.FileGone("a")]
    (parked,) = logged("parked", queue.tell(*away))
    assert parked.fields["by"] == 7
    assert logged("parked", queue.tell(*away)) == []
    (released,) = logged("released", queue.add(job("a")))
    assert released.fields["from"] == "parked"
    (moved,) = logged("moved", queue.add(job("a", priority=3)))
    assert moved.fields["priority"] == 3
    actions = queue.tell(ev.CancelAsked("b", 9))
    ours = queue.tell(ev.FileEnded("b", JobState.PARKED), ev.FileGone("b"))
    ours += queue.settle(actions)
    ours += queue.tell(ev.FileEnded("b", JobState.PARKED), ev.FileGone("b"))
    assert [log.event for log in only(act.Log, ours)] == ["canceled"]
    (removed,) = logged("removed", queue.tell(ev.FileEnded("b", None), ev.FileGone("b")))
    assert removed.fields["by"] == 7


@pytest.mark.parametrize("seen_first", [True, False])
def test_somebody_who_was_faster_than_the_start_is_told_too(seen_first: bool) -> None:
    queue = Queue()
    queue.add(job("a"))
    away: list[ev.Event] = [ev.FileEnded("a", JobState.PARKED), ev.FileGone("a")]
    gone: list[ev.Event] = [ev.NotClaimed("a", gone=True)]
    actions = queue.tell(*(away + gone if seen_first else gone + away))
    assert len(logged("parked", actions)) == 1


def test_files_that_were_there_at_the_start_are_nobodys_doing() -> None:
    queue = Queue()
    away: list[ev.Event] = [ev.FileEnded("a", JobState.PARKED), ev.FileGone("a")]
    assert queue.tell(*away) == []
