"""Checks, gates and refusals: when they are asked, whose answer counts, what ends a wait."""

from sdqueue.core import events as ev
from sdqueue.core.actions import Check, Measure, Skip
from sdqueue.core.model import Code, Memory, Phase, Reason
from sdqueue.core.results import RunEnd
from sdqueue.core.spec import Config, Lane, MemoryNeed
from sdqueue.words import names
from tests.unit.core_queue import FAILED, Queue, job, lanes, logged, only, started

NO = Reason(Code.REQUIRES_FALSE, "REQUIRES exited 1")
SHORT = Reason(Code.MEMORY, "needs 37 G, 5 G usable")
BLOCKED = Reason(Code.REFUSED, "n1.service runs", "n1.service")
NEED = MemoryNeed(bytes=1 << 30)
TWO_SLOTS = lanes(Lane(name="cpu", slots=2))


def checks(actions: object) -> list[tuple[str, ...]]:
    return [check.names for check in only(Check, actions)]  # type: ignore[arg-type]


def test_done_if_true_and_requires_false_is_done() -> None:
    """Q21: the verdict says done, whatever the gate would say."""
    queue = Queue()
    queue.add(job("a", done_if="true", requires="false"))
    assert only(Skip, queue.tell(ev.Checked("a", done=True))) == [Skip("a")]


def test_a_closed_gate_holds_no_lane() -> None:
    """Q8: three jobs that wait for themselves do not keep a fourth from starting."""
    queue = Queue()
    queue.add(job("1", retry_delay_usec=9_000_000))
    queue.run("1", FAILED)
    queue.add(job("2", requires="false"), job("3", requires="false"), job("4"))
    queue.tell(ev.Checked("2", gate=NO), ev.Checked("3", gate=NO))
    assert started(queue.tell(queue.checks_gone("cpu"))) == ["4"]
    assert [queue.code(name) for name in "123"] == [
        "retry-delay",
        "requires-false",
        "requires-false",
    ]


def test_a_lane_is_held_until_its_checks_have_answered_and_their_unit_is_gone() -> None:
    for first, second in ((0, 1), (1, 0)):
        queue = Queue()
        queue.add(job("a", lane="net", requires="true"), job("b", lane="net"))
        queue.add(job("g", lane="gpu"))
        facts = (ev.Checked("a"), queue.checks_gone("net"))
        assert not started(queue.tell(facts[first]))
        assert started(queue.tell(facts[second])) == ["a"]


def test_a_verdict_about_an_older_file_does_not_count() -> None:
    queue = Queue()
    queue.add(job("a", done_if="old"))
    queue.add(job("a", done_if="new"))
    assert queue.code("a") == "checking"
    answered = queue.tell(ev.Checked("a", done=True))
    assert not only(Skip, answered)
    assert checks(queue.tell(queue.checks_gone("cpu"))) == [("a",)]


def test_a_verdict_about_an_older_file_does_not_count_in_another_lane_either() -> None:
    queue = Queue()
    queue.add(job("a", done_if="old"))
    queue.tell(ev.FileGone("a"))
    queue.add(job("a", lane="net", done_if="new"))
    assert not only(Skip, queue.tell(ev.Checked("a", done=True)))
    assert queue.phase("a") is Phase.CHECKING
    assert only(Skip, queue.tell(ev.Checked("a", done=True))) == [Skip("a")]


def test_a_measure_of_an_older_file_does_not_count() -> None:
    queue = Queue()
    queue.add(job("a", memory=NEED))
    queue.add(job("a", memory=MemoryNeed(bytes=1 << 40)))
    assert only(Measure, queue.tell(ev.Measured("a"))) == [Measure("a")]


def test_a_file_seen_again_unchanged_keeps_its_verdict() -> None:
    queue = Queue()
    queue.add(job("a", done_if="x"))
    queue.add(job("a", done_if="x"))
    assert only(Skip, queue.tell(ev.Checked("a", done=True))) == [Skip("a")]


def test_a_job_cancelled_and_queued_anew_during_its_checks_is_checked_anew() -> None:
    queue = Queue()
    queue.add(job("a", done_if="x"))
    queue.settle(queue.tell(ev.CancelAsked("a", 0)))
    queue.add(job("a", done_if="y"))
    assert not only(Skip, queue.tell(ev.Checked("a", done=True)))
    assert checks(queue.tell(queue.checks_gone("cpu"))) == [("a",)]


def test_a_job_being_measured_is_not_overtaken() -> None:
    queue = Queue()
    queue.add(job("a", memory=NEED), job("b"))
    assert not started(queue.tell(ev.Tick()))
    assert started(queue.tell(ev.Measured("a"))) == ["a"]


def test_a_job_being_measured_keeps_excluded_lanes_from_starting() -> None:
    queue = Queue()
    actions = queue.add(job("n", lane="net", memory=NEED), job("g", lane="gpu"))
    assert not started(actions)
    assert started(queue.tell(ev.Measured("n"))) == ["n"]


def test_a_shortage_lets_the_others_go() -> None:
    queue = Queue()
    queue.add(job("n", lane="net", memory=NEED), job("g", lane="gpu"))
    assert started(queue.tell(ev.Measured("n", SHORT))) == ["g"]
    assert queue.code("n") == "memory"


def test_memory_is_measured_again_after_any_wait() -> None:
    queue = Queue()
    queue.add(job("a", memory=NEED))
    queue.tell(ev.Measured("a"))
    queue.tell(ev.Refused("a", BLOCKED))
    queue.now += 30
    again = queue.tell(ev.UnitGone("n1.service"))
    assert (started(again), only(Measure, again)) == ([], [Measure("a")])


def test_checks_are_asked_again_after_a_long_wait_and_not_after_a_short_one() -> None:
    for seconds, expected in ((3600, [("a",)]), (1, [])):
        queue = Queue()
        queue.add(job("a", requires="true"))
        queue.tell(ev.Checked("a"), queue.checks_gone("cpu"))
        queue.tell(ev.Refused("a", BLOCKED))
        queue.now += seconds
        again = queue.tell(ev.UnitGone("n1.service"))
        assert checks(again) == expected
        assert started(again) == ([] if expected else ["a"])


# Asked again, not in a loop


def test_gates_are_asked_again_when_a_job_ends_but_not_more_than_once_a_second() -> None:
    queue = Queue()
    queue.add(job("g", requires="x"), *(job(f"n{n}", lane="net") for n in range(9)))
    queue.tell(ev.Checked("g", gate=NO), queue.checks_gone("cpu"))
    asked = 0
    queue.now += 5
    for n in range(9):
        asked += len(checks(queue.run(f"n{n}")))
        if queue.phase("g") is Phase.CHECKING:
            queue.tell(ev.Checked("g", gate=NO), queue.checks_gone("cpu"))
    assert asked == 1
    assert checks(queue.wait(1.5)) == [("g",)]


def test_gates_are_asked_again_after_a_run_that_will_be_tried_again() -> None:
    queue = Queue()
    queue.add(job("m", memory=NEED), job("n", lane="net", retry_delay_usec=3_600_000_000))
    queue.tell(ev.Measured("m", SHORT))
    queue.now += 5
    assert only(Measure, queue.run("n", FAILED)) == [Measure("m")]


def test_a_unit_that_is_seen_keeps_the_name_of_its_job() -> None:
    queue = Queue()
    queue.add(job("a"))
    queue.begin("a")
    queue.tell(ev.UnitSeen("cpu", names.unit_of_job("a")))
    assert queue.state.lanes["cpu"].occupants == {names.unit_of_job("a"): "a"}


def test_the_skips_of_one_pass_do_not_have_the_gates_asked_for_each() -> None:
    queue = Queue()
    specs = [job(f"j{n:03}", done_if="x", requires="y") for n in range(223)]
    assert len(checks(queue.add(*specs))) == 1
    gated = {"j010", "j100", "j200"}
    answered = queue.tell(
        *(
            ev.Checked(s.name, gate=NO) if s.name in gated else ev.Checked(s.name, done=True)
            for s in specs
        ),
        queue.checks_gone("cpu"),
    )
    assert len(only(Skip, answered)) == 220
    asked = 0
    for skip in only(Skip, answered):
        told = checks(queue.tell(ev.Settled(skip.name, skip)))
        asked += len(told)
        for name in (name for names_ in told for name in names_):
            queue.tell(ev.Checked(name, gate=NO))
        queue.tell(queue.checks_gone("cpu"))
    assert asked <= 1
    assert {name for name in queue.state.jobs if queue.code(name) == "requires-false"} == gated


def test_gates_are_asked_again_after_the_recheck_interval_and_at_a_new_file() -> None:
    queue = Queue()
    queue.add(job("a", requires="x"))
    queue.tell(ev.Checked("a", gate=NO), queue.checks_gone("cpu"))
    assert not checks(queue.wait(59))
    assert checks(queue.wait(2)) == [("a",)]
    queue.tell(ev.Checked("a", gate=NO), queue.checks_gone("cpu"))
    queue.now += 10
    assert checks(queue.add(job("b", lane="net"))) == [("a",)]


def test_a_clock_set_back_by_hours_does_not_put_off_the_next_question() -> None:
    queue = Queue()
    queue.add(job("a", requires="x"))
    queue.tell(ev.Checked("a", gate=NO), queue.checks_gone("cpu"))
    queue.wait(-7200)
    assert checks(queue.wait(61)) == [("a",)]


def test_a_gate_says_since_when_it_is_closed_and_a_new_requires_begins_anew() -> None:
    queue = Queue()
    queue.add(job("a", requires="x"))
    first = queue.now
    for _ in range(3):
        queue.tell(ev.Checked("a", gate=NO), queue.checks_gone("cpu"))
        why = queue.why("a")
        assert why
        assert why.since_sec == first
        queue.wait(61)
    queue.tell(ev.Checked("a", gate=NO), queue.checks_gone("cpu"))
    queue.add(job("a", requires="y"))
    queue.tell(ev.Checked("a", gate=NO), queue.checks_gone("cpu"))
    why = queue.why("a")
    assert why
    assert why.since_sec == queue.now


def test_checks_that_never_answer_do_not_go_round_for_ever() -> None:
    queue = Queue()
    queue.add(job("a", requires="x"), job("b"))
    for _ in range(9):
        told = queue.tell(ev.NotChecked("a"), queue.checks_gone("cpu"))
        if started(told):
            break
    assert started(told) == ["b"]
    assert queue.code("a") == "check-failed"


def test_a_gate_closed_while_a_predecessor_was_queued_anew_waits_for_that() -> None:
    queue = Queue()
    queue.tell(ev.LanePaused("net", True))
    queue.add(job("p"))
    queue.run("p")
    queue.add(job("a", requires="x", after=("p",)))
    queue.add(job("p", lane="net"))
    queue.tell(ev.Checked("a", gate=NO), queue.checks_gone("cpu"))
    assert queue.code("a") == "after-not-done"
    assert not checks(queue.wait(120))


# Refusals


def test_a_refusal_stands_until_its_blocker_is_gone() -> None:
    queue = Queue()
    queue.add(job("a"))
    queue.tell(ev.Refused("a", BLOCKED))
    assert queue.code("a") == "refused"
    assert not started(queue.wait(20))
    assert started(queue.tell(ev.UnitGone("n1.service"))) == ["a"]


def test_a_refusal_whose_blocker_was_gone_before_it_was_told_ends_by_time() -> None:
    queue = Queue()
    queue.add(job("a"))
    queue.tell(ev.UnitGone("n1.service"), ev.Refused("a", BLOCKED))
    assert started(queue.wait(queue.state.config.recheck_usec / 1e6)) == ["a"]


def test_refusals_without_a_blocker_are_tried_again_at_growing_intervals() -> None:
    queue = Queue()
    queue.add(job("a"))
    pauses = []
    for _ in range(8):
        queue.tell(ev.Refused("a", Reason(Code.REFUSED, "no")))
        paused = 0
        while not started(queue.wait(1)):
            paused += 1
            assert paused < 100
        pauses.append(paused + 1)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    queue.run("a")
    queue.add(job("a"))
    queue.tell(ev.Refused("a", Reason(Code.REFUSED, "no")))
    assert started(queue.wait(1)) == ["a"]


def test_a_run_that_the_environment_did_not_let_start_waits_with_that_reason() -> None:
    queue = Queue()
    queue.add(job("a"), memory=Memory(1))
    queue.begin("a")
    end = RunEnd(job_result="dependency", service_result="success")
    actions = queue.settle(queue.end("a", end))
    assert not started(actions)
    why = queue.why("a")
    assert why
    assert why.code is Code.REFUSED
    assert "dependency" in why.detail
    assert queue["a"].attempt == 2
    assert started(queue.wait(1)) == ["a"]


def test_refused_checks_free_the_lane_and_their_jobs_are_asked_after_the_refusal() -> None:
    queue = Queue()
    queue.add(job("n", lane="net", requires="x"), job("g", lane="gpu"))
    assert started(queue.tell(ev.ChecksRefused("net", BLOCKED))) == ["g"]
    assert queue.code("n") in ("refused", "excluded-lane")
    queue.run("g")
    assert checks(queue.tell(ev.UnitGone("n1.service"))) == [("n",)]


def test_refused_checks_of_a_lane_that_is_configured_no_more_do_no_harm() -> None:
    queue = Queue()
    queue.add(job("n", lane="net", requires="x"))
    queue.tell(ev.ConfigRead(lanes(Lane(name="cpu"))))
    queue.tell(ev.NotChecked("n"), queue.checks_gone("net"))
    queue.tell(ev.ChecksRefused("net", BLOCKED))
    assert queue.code("n") == "bad-file"


def test_a_gate_that_closes_in_a_lane_that_is_configured_no_more_is_a_bad_file() -> None:
    queue = Queue()
    queue.add(job("n", lane="net", requires="x"))
    queue.tell(ev.ConfigRead(lanes(Lane(name="cpu"))))
    queue.tell(ev.Checked("n", gate=NO), queue.checks_gone("net"))
    assert queue.code("n") == "bad-file"
    assert "net" not in queue.state.lanes


# The name of a unit


def test_a_job_waits_until_the_unit_of_its_last_run_is_gone() -> None:
    queue = Queue(TWO_SLOTS)
    queue.add(job("a"))
    queue.begin("a")
    ended = queue.tell(ev.Ended("a", FAILED))
    assert not started(queue.settle(ended))
    assert queue.code("a") == "lane-taken"
    assert started(queue.tell(queue.gone("a"))) == ["a"]


def test_the_late_end_of_an_old_unit_does_not_free_the_slot_of_a_new_start() -> None:
    queue = Queue()
    queue.add(job("a"), job("b"))
    queue.tell(ev.Refused("a", BLOCKED))
    queue.tell(ev.UnitGone("n1.service"))
    assert queue.phase("a") is Phase.CLAIMING
    assert not started(queue.tell(queue.gone("a")))
    queue.begin("a")
    assert list(queue.state.lanes["cpu"].occupants) == [names.unit_of_job("a")]


def test_a_run_without_a_unit_to_wait_for_frees_its_slot_at_its_end() -> None:
    queue = Queue(starting=True)
    queue.tell(ev.FileRunning("a", job("a"), 1), queue.gone("a"), ev.Halted(None))
    queue.add(job("b"))
    assert queue.code("b") == "lane-taken"
    assert started(queue.tell(ev.Ended("a", FAILED))) == ["b"]


def test_a_removed_lane_still_excludes_what_its_units_excluded() -> None:
    queue = Queue()
    queue.add(job("n", lane="net"))
    queue.begin("n")
    queue.tell(ev.ConfigRead(Config(lanes={"gpu": Lane(name="gpu")}, default_lane="gpu")))
    queue.add(job("g", lane="gpu"))
    assert queue.code("g") == "excluded-lane"
    assert started(queue.end("n")) == ["g"]
    assert list(queue.state.lanes) == ["gpu"]


def test_that_jobs_stand_behind_the_head_is_told_again_after_the_line_was_empty() -> None:
    queue = Queue()
    for _ in range(2):
        told = queue.add(job("a"), job("b"), job("c"))
        assert [log.job for log in logged("wait", told)] == ["b", "-"]
        for name in "abc":
            queue.run(name)
