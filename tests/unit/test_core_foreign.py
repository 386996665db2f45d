"""Waits for a lane's user that the queue did not start, and their episodes in the log."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.lane import Config, Lane
from sdqueue.core.model import Code, Reason
from sdqueue.core.owner import Owner, Use
from tests.unit.core_queue import Queue, job, lanes, logged, only, started

GPU = Lane(name="gpu", excludes=frozenset({"net"}), foreign=("llama-server",))
NET = Lane(name="net", excludes=frozenset({"gpu"}), before=("gpu",))
ONE = Owner(100, 1, "llama-server", "llama.service", started=5)
OTHER = Owner(100, 1, "llama-server", "llama.service", started=9)


def gpu_queue() -> Queue:
    return Queue(lanes(GPU, NET))


def seen(*owners: Owner) -> ev.OwnersSeen:
    return ev.OwnersSeen("gpu", owners)


def waits(actions: Iterable[act.Action]) -> list[tuple[str, object]]:
    """Say which episodes began and ended, by job and pid."""
    return [
        (log.event, log.job if log.event == "gpu-wait" else log.fields["why"])
        for log in only(act.Log, actions)
        if log.event.startswith("gpu-wait")
    ]


def waiting(*names: str) -> Queue:
    """Give a queue in which these jobs wait for ONE."""
    queue = gpu_queue()
    queue.add(*(job(name, lane="gpu") for name in names))
    queue.tell(seen(ONE))
    return queue


def test_nothing_starts_in_such_a_lane_before_somebody_has_looked() -> None:
    queue = gpu_queue()
    queue.add(job("1", lane="gpu"), job("2", lane="gpu"))
    assert only(act.Look, queue.actions) == [act.Look("gpu")]
    assert started(queue.actions) == []
    assert queue.code("1") == "checking"
    assert started(queue.tell(seen())) == ["1"]


def test_a_lane_without_names_is_not_looked_at() -> None:
    queue = gpu_queue()
    assert started(queue.add(job("1", lane="net"))) == ["1"]


def test_a_look_that_found_nobody_holds_for_a_moment_only() -> None:
    queue = gpu_queue()
    queue.add(job("1", lane="gpu"))
    assert started(queue.tell(seen())) == ["1"]
    queue.tell(ev.Refused("1", Reason(Code.REFUSED, "x", "", queue.now + 1)))
    actions = queue.wait(2)
    assert only(act.Look, actions) == [act.Look("gpu")]
    assert started(actions) == []


def test_who_is_seen_is_named_and_waited_for_and_the_wait_ends_with_a_start() -> None:
    queue = gpu_queue()
    queue.add(job("1", lane="gpu"))
    actions = queue.tell(seen(ONE))
    (wait,) = logged("gpu-wait", actions)
    assert wait.job == "1"
    assert wait.fields["pid"] == 100
    assert wait.fields["cmd"] == "llama-server"
    assert wait.fields["unit"] == "llama.service"
    why = queue.why("1")
    assert why
    assert (why.code, why.blocker) == ("foreign", "llama.service")
    assert [log.fields["reason"] for log in logged("wait", actions)] == ["foreign"]
    actions = queue.tell(seen())
    assert started(actions) == ["1"]
    actions += queue.begin("1")
    assert waits(actions) == []


def test_checks_come_before_the_look_so_who_is_not_to_run_waits_for_nobody() -> None:
    queue = gpu_queue()
    actions = queue.add(job("1", lane="gpu", requires="x"))
    assert only(act.Look, actions) == []
    assert [check.names for check in only(act.Check, actions)] == [("1",)]


def test_the_next_job_that_meets_the_same_user_is_in_the_same_episode() -> None:
    queue = waiting("1", "2")
    actions = queue.tell(ev.FileGone("1"))
    assert waits(actions) == []
    assert queue.code("2") == "foreign"


def test_a_skipped_job_does_not_end_the_episode_of_the_next() -> None:
    queue = gpu_queue()
    queue.add(job("1", lane="gpu", done_if="x"), job("2", lane="gpu"))
    queue.tell(ev.Checked("1"), queue.checks_gone("gpu"))
    queue.tell(seen(ONE))
    queue.wait(61)
    actions = queue.tell(ev.Checked("1", done=True), queue.checks_gone("gpu"))
    actions += queue.settle(actions)
    actions += queue.tell(seen(ONE))
    assert logged("skipped", actions)
    assert waits(actions) == []
    assert queue.code("2") == "foreign"


def test_it_ends_when_nobody_waits_any_more_and_begins_again_with_the_next_job() -> None:
    queue = waiting("1")
    first = queue.state.lanes["gpu"].episode
    assert waits(queue.tell(ev.FileGone("1"))) == [
        ("gpu-wait-end", "no job waits for the lane any more")
    ]
    actions = queue.add(job("2", lane="gpu"))
    if only(act.Look, actions):
        actions += queue.tell(seen(ONE))
    assert waits(actions) == [("gpu-wait", "2")]
    again = queue.state.lanes["gpu"].episode
    assert first
    assert again
    assert first.id != again.id


def test_it_begins_again_after_a_start_also_with_the_same_process() -> None:
    queue = waiting("1", "2")
    queue.tell(seen())
    actions = queue.run("1")
    assert started(actions) == [], "each start needs a look of its own"
    actions = queue.tell(seen(ONE))
    assert waits(actions) == [("gpu-wait", "2")]


def test_a_download_that_starts_meanwhile_does_not_end_it() -> None:
    queue = waiting("1")
    actions = queue.add(job("n", lane="net"))
    assert started(actions) == ["n"]
    actions += queue.begin("n")
    assert queue.code("1") == "excluded-lane"
    actions += queue.end("n")
    actions += queue.settle(actions)
    actions += queue.tell(ev.Tick())
    assert queue.code("1") == "foreign"
    assert waits(actions) == []


def test_a_user_that_goes_while_a_download_runs_ends_it_without_a_start() -> None:
    queue = waiting("1")
    queue.add(job("n", lane="net"))
    queue.begin("n")
    assert waits(queue.tell(seen())) == [("gpu-wait-end", "it is gone")]


def test_the_same_pid_of_another_process_is_another_episode() -> None:
    queue = waiting("1")
    queue.wait(1)
    assert waits(queue.tell(seen(OTHER))) == [
        ("gpu-wait-end", "another one uses it now"),
        ("gpu-wait", "1"),
    ]


def test_a_pause_ends_it_and_a_halt_does_not() -> None:
    queue = waiting("1")
    assert waits(queue.tell(ev.Halted(Reason(Code.TROUBLE, "no space")))) == []
    assert waits(queue.tell(ev.Halted(None))) == []
    assert waits(queue.tell(ev.LanePaused("gpu", True))) == [("gpu-wait-end", "the lane is paused")]
    assert waits(queue.tell(ev.LanePaused("gpu", False)))[0][0] == "gpu-wait"


def test_a_lane_in_use_is_looked_at_again_after_the_interval_and_never_in_a_loop() -> None:
    queue = waiting("1")
    assert only(act.Look, queue.tell(ev.Tick())) == []
    actions = queue.wait(queue.state.config.recheck_usec / 1e6 + 1)
    assert only(act.Look, actions) == [act.Look("gpu")]
    assert only(act.Look, queue.tell(ev.Tick())) == []
    assert queue.code("1") == "foreign"


def test_a_configuration_without_names_frees_the_lane() -> None:
    queue = waiting("1")
    config = Config(lanes={"gpu": GPU._replace(foreign=()), "net": NET})
    assert started(queue.tell(ev.ConfigRead(config))) == ["1"]


def test_a_lane_whose_configuration_changes_under_a_look_is_looked_at_as_it_is_then() -> None:
    queue = gpu_queue()
    assert queue.state.lanes["gpu"].is_looking
    changed = GPU._replace(foreign=("other",))
    assert only(act.Look, queue.tell(ev.ConfigRead(lanes(changed)))) == [act.Look("gpu")]


def test_one_that_only_holds_a_device_keeps_nobody_from_starting() -> None:
    queue = gpu_queue()
    queue.add(job("1", lane="gpu"))
    assert started(queue.tell(seen(replace(ONE, use=Use.HOLDER)))) == ["1"]


def test_one_that_works_is_named_before_one_that_only_has_memory_or_can_not_be_read() -> None:
    queue = gpu_queue()
    queue.add(job("1", lane="gpu"))
    resident = replace(ONE, pid=50, use=Use.RESIDENT)
    active = replace(ONE, pid=60, use=Use.ACTIVE)
    actions = queue.tell(seen(replace(ONE, use=Use.UNKNOWN), resident, active))
    assert logged("gpu-wait", actions)[0].fields["pid"] == 60
    assert waits(queue.tell(seen(resident)))[-1] == ("gpu-wait", "1")


def test_what_changes_of_the_same_process_is_the_same_episode() -> None:
    queue = waiting("1")
    assert waits(queue.tell(seen(replace(ONE, memory_bytes=1 << 30, use=Use.RESIDENT)))) == []


def test_a_device_that_gives_its_memory_back_is_waited_for_after_its_user() -> None:
    queue = waiting("1")
    assert started(queue.tell(ev.OwnersSeen("gpu", (), settling=True))) == []
    assert queue.code("1") == "foreign"
    assert started(queue.tell(seen())) == ["1"]


@pytest.mark.parametrize(("pid", "word"), [(0, "unknown"), (100, "foreign")])
def test_what_a_look_could_not_tell_is_unknown_and_somebody_who_is_there_is_not(
    pid: int, word: str
) -> None:
    queue = gpu_queue()
    queue.tell(seen(replace(ONE, pid=pid, use=Use.UNKNOWN)))
    assert queue.state.lanes["gpu"].verdict.word == word
