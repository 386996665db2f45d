"""Who goes first, who waits for whom, and what 100,000 waiting jobs cost."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from sdqueue.core import events as ev
from sdqueue.core.line import Line, Rank
from sdqueue.core.model import Code, JobState, Memory, Reason
from sdqueue.core.plan import lane_order, plan, reason
from sdqueue.core.spec import JobSpec, Lane
from tests.unit.core_queue import DONE, FAILED, STOPPED, Queue, job, lanes, started


def order(queue: Queue) -> list[str]:
    """Run everything that starts, one after another, and give the order."""
    ran: list[str] = []
    actions = queue.tell(ev.Halted(None))
    while names := started(actions):
        ran += names
        actions = [action for name in names for action in queue.run(name)]
    return ran


def halted(*specs: JobSpec) -> Queue:
    queue = Queue(starting=True)
    queue.add(*specs)
    return queue


def test_jobs_run_in_the_order_in_which_people_number_them() -> None:
    names = ["b", "10-a", "9-b", "a", "9-a", "100-c"]
    assert order(halted(*map(job, names))) == ["9-a", "9-b", "10-a", "100-c", "a", "b"]


def test_priority_goes_before_the_name() -> None:
    specs = (job("1"), job("2", priority=5), job("3", priority=-1), job("4", priority=5))
    assert order(halted(*specs)) == ["2", "4", "1", "3"]


def test_a_changed_priority_moves_a_job_in_the_line() -> None:
    queue = halted(job("1"), job("2"))
    queue.add(job("2", priority=1))
    assert order(queue) == ["2", "1"]


def test_a_job_may_change_its_lane() -> None:
    queue = halted(job("1", lane="net"), job("2", lane="gpu"))
    queue.add(job("1", lane="cpu"))
    assert sorted(started(queue.tell(ev.Halted(None)))) == ["1", "2"]


def test_net_goes_before_gpu_also_when_gpu_was_there_first() -> None:
    queue = Queue()
    queue.add(job("g1", lane="gpu"))
    queue.add(job("g2", lane="gpu"), job("n1", lane="net"), job("n2", lane="net"))
    assert started(queue.run("g1")) == ["n1"]
    assert started(queue.run("n1")) == ["n2"]
    assert started(queue.run("n2")) == ["g2"]


@pytest.mark.parametrize("stop", ["paused", "after", "gone"])
def test_a_net_job_that_can_not_run_does_not_hold_gpu_back(stop: str) -> None:
    queue = halted(job("n", lane="net", after=("x",) if stop == "after" else ()))
    queue.add(job("g", lane="gpu"))
    if stop == "paused":
        queue.tell(ev.LanePaused("net", True))
    if stop == "gone":
        queue.tell(ev.FileGone("n"))
    assert started(queue.tell(ev.Halted(None))) == ["g"]


def test_lanes_that_go_before_each_other_do_not_hang_the_plan() -> None:
    both = lanes(Lane(name="a", before=("b",)), Lane(name="b", before=("a",)))
    queue = Queue(both)
    assert sorted(lane_order(queue.state)) == ["a", "b"]
    assert sorted(started(queue.add(job("1", lane="a"), job("2", lane="b")))) == ["1", "2"]


def test_a_lane_starts_as_many_as_it_has_slots() -> None:
    queue = Queue(lanes(Lane(name="cpu", slots=3)))
    assert started(queue.add(*(job(f"{n}") for n in range(1, 6)))) == ["1", "2", "3"]
    assert started(queue.run("2")) == ["4"]


# AFTER


@pytest.mark.parametrize("end", [DONE, FAILED, STOPPED])
def test_after_accepts_only_done_and_after_any_any_end(end: Any) -> None:
    queue = Queue()
    queue.add(job("p", attempts_max=1))
    queue.add(job("a", lane="net", after=("p",)), job("b", lane="net", after_any=("p",)))
    assert {queue.code("a"), queue.code("b")} == {"after-not-done"}
    queue.run("p", end)
    assert queue.code("b") in ("", "lane-taken", "earlier-job")
    assert (queue.code("a") == "after-not-done") == (end is not DONE)


def test_after_any_is_not_met_by_a_retry() -> None:
    queue = Queue()
    queue.add(job("p"), job("a", lane="net", after_any=("p",)))
    queue.run("p", FAILED)
    assert queue.code("a") == "after-not-done"


def test_a_predecessor_that_is_queued_anew_counts_as_not_done_at_once() -> None:
    queue = Queue()
    queue.add(job("p"))
    queue.run("p")
    queue.tell(ev.LanePaused("net", True))
    queue.add(job("a", lane="net", after=("p",)))
    assert queue.code("a") == "paused"
    queue.tell(ev.FileEnded("p", None))
    queue.add(job("p"))
    assert queue.code("a") == "after-not-done"
    queue.run("p")
    assert queue.code("a") == "paused"


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.PARKED, None])
def test_a_predecessor_that_did_not_end_well_is_named_with_its_whereabouts(
    state: JobState | None,
) -> None:
    queue = Queue()
    queue.tell(ev.FileEnded("p", state))
    queue.add(job("a", after=("p",)))
    why = queue.why("a")
    assert why
    assert why.blocker == "p"
    assert (state or "not there") in why.detail
    assert started(queue.tell(ev.FileEnded("p", JobState.DONE))) == ["a"]


def test_jobs_that_come_after_each_other_wait_and_say_so() -> None:
    queue = Queue()
    queue.add(job("a", after=("b",)), job("b", after=("a",)), job("c", after=("c",)))
    assert {queue.code(name) for name in "abc"} == {"after-not-done"}


def test_a_job_that_no_longer_comes_after_another_goes() -> None:
    queue = Queue()
    queue.add(job("a", after=("p",)))
    assert started(queue.add(job("a"))) == ["a"]


def test_what_waits_for_a_predecessor_holds_no_lane() -> None:
    queue = Queue()
    assert started(queue.add(job("1", after=("x",)), job("2"))) == ["2"]


# Time


def test_not_before_and_retry_delay_end_by_themselves() -> None:
    queue = Queue()
    queue.add(job("a", not_before_sec=queue.now + 100, retry_delay_usec=50_000_000))
    why = queue.why("a")
    assert why
    assert why.until_sec == queue.now + 100
    assert plan(queue.state, queue.now).wake_sec == queue.now + 100
    assert not started(queue.wait(99))
    assert started(queue.wait(1)) == ["a"]
    queue.run("a", FAILED)
    assert queue.code("a") == "retry-delay"
    assert not started(queue.wait(49))
    assert started(queue.wait(1)) == ["a"]


def test_a_clock_set_back_by_hours_does_not_make_a_retry_wait_for_hours() -> None:
    queue = Queue()
    queue.add(job("a", retry_delay_usec=50_000_000))
    queue.run("a", FAILED)
    queue.wait(1)
    queue.wait(-7200)
    assert queue.code("a") == "retry-delay"
    assert started(queue.wait(50)) == ["a"]
    queue.add(job("b", lane="net", retry_delay_usec=50_000_000), memory=Memory(1, 0, 9e9))
    assert started(queue.wait(50)) == ["b"]


def test_a_time_that_is_set_for_a_job_that_is_gone_does_nothing() -> None:
    queue = Queue()
    queue.add(job("a", not_before_sec=queue.now + 100))
    queue.tell(ev.FileGone("a"))
    assert not queue.wait(200)
    assert plan(queue.state, queue.now).wake_sec == 0


def test_a_file_touched_again_and_again_sets_one_time() -> None:
    queue = Queue()
    for _ in range(50):
        queue.add(job("a", not_before_sec=queue.now + 100))
    assert len(queue.state.timers) == 1


def test_nothing_to_wait_for_means_never_to_wake() -> None:
    queue = Queue()
    queue.add(*(job(f"{n}") for n in range(9)))
    queue.begin("0")
    assert plan(queue.state, queue.now).wake_sec == 0


# A line


def test_a_line_keeps_each_name_once_and_sorted() -> None:
    line = Line()
    ranks: dict[str, Rank] = {"a": (0, "2"), "b": (0, "1"), "c": (-1, "9")}
    for name, rank in ranks.items():
        line.add(name, rank)
    line.add("a", (-2, "0"))
    assert list(line) == ["a", "c", "b"]
    line.discard("a")
    line.discard("nobody")
    assert (line.head(), len(line), "a" in line, "b" in line) == ("c", 2, False, True)
    line.extend([((-9, ""), "b"), ((5, ""), "d")])
    assert list(line) == ["b", "c", "d"]


# Scale, in calls of functions


def calls(work: Callable[[], object]) -> int:
    """Count the calls of Python and C functions while `work` works."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


@pytest.fixture(scope="module")
def sizes() -> tuple[Queue, Queue]:
    """Give a queue of 100 jobs and one of 100,000, each behind a busy lane."""
    return _filled(100), _filled(100_000)


def _filled(count: int) -> Queue:
    queue = Queue()
    queue.add(*(job(f"{n}-cpu", done_if="x" if n % 2 else "") for n in range(count)))
    queue.begin("0-cpu")
    return queue


WORK: dict[str, Callable[[Queue], object]] = {
    "a tick": lambda queue: queue.tell(ev.Tick()),
    "asking for a plan": lambda queue: plan(queue.state, queue.now),
    "asking for a reason": lambda queue: reason(
        queue.state, queue["77-cpu"], plan(queue.state, queue.now)
    ),
    "a new job in another lane": lambda queue: queue.add(job("n", lane="net")),
    "a job taken away": lambda queue: queue.tell(ev.FileGone("50-cpu")),
    "a halt": lambda queue: queue.tell(ev.Halted(Reason(Code.TROUBLE, "x")), ev.Halted(None)),
    "the end of a run and the next start": lambda queue: queue.settle(queue.end("0-cpu")),
}


def test_what_a_step_costs_does_not_grow_with_the_jobs_that_wait(
    sizes: tuple[Queue, Queue],
) -> None:
    small, large = sizes
    for what, work in WORK.items():
        few, many = calls(lambda work=work: work(small)), calls(lambda work=work: work(large))  # type: ignore[misc]
        assert many <= few * 2 + 20, f"{what}: {few} calls at 100 jobs, {many} at 100,000"


def test_closed_gates_cost_nothing_until_they_are_asked_again() -> None:
    costs = []
    for count in (10, 200):
        queue = Queue()
        queue.add(*(job(f"{n}", requires="x") for n in range(count)))
        no = Reason(Code.REQUIRES_FALSE, "no")
        queue.tell(*(ev.Checked(f"{n}", gate=no) for n in range(count)), queue.checks_gone("cpu"))
        costs.append(calls(lambda queue=queue: queue.tell(ev.Tick())))  # type: ignore[misc]
    assert costs[0] == costs[1]
