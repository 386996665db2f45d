"""What a run's end means, against the table of the design as literal expectations."""

from itertools import product
from typing import Any

import pytest

from sdqueue.core.events import Ended, Lost, Reattached
from sdqueue.core.reconcile import UnitView, reconcile, witness_end
from sdqueue.core.results import (
    ASK_DONE_IF,
    EXEC_STATUS,
    SPENDS,
    SUCCESSES,
    TABLE,
    WORDS,
    RunEnd,
    Verdict,
    after_done_if,
    judge,
)

JOB_RESULTS = (
    *("", "done", "failed", "canceled", "timeout", "dependency", "skipped", "invalid", "assert"),
    *("unsupported", "collected", "once", "frozen", "concurrency", "unbuildable"),
)
SERVICE_RESULTS = (
    *("", "success", "resources", "protocol", "timeout", "exit-code", "signal", "core-dump"),
    *("watchdog", "start-limit-hit", "oom-kill", "exec-condition"),
)
MAINS = (("", 0), ("exited", 0), ("exited", 7), ("exited", 203), ("killed", 15), ("dumped", 6))
ALL_ENDS = [
    RunEnd(
        job_result=job_result,
        service_result=service_result,
        main_code=main_code,
        main_status=main_status,
        post_status=post_status,
        has_done_if=has_done_if,
        stopping=stopping,
    )
    for job_result, service_result, (
        main_code,
        main_status,
    ), post_status, has_done_if, stopping in (
        product(JOB_RESULTS, SERVICE_RESULTS, MAINS, (None, 0, 1), (False, True), (False, True))
    )
]


def end(job: str, service: str, main: str = "", status: int = 0, **keys: Any) -> RunEnd:
    return RunEnd(
        job_result=job, service_result=service, main_code=main, main_status=status, **keys
    )


DESIGN = [
    (end("done", "success", "exited"), Verdict.DONE, 0, None, False),
    (end("done", "success", "exited", has_done_if=True, post_status=0), Verdict.DONE, 0, True, 0),
    (end("failed", "timeout", "exited"), Verdict.LEFT_CHILDREN, 0, None, False),
    (
        end("failed", "timeout", "exited", has_done_if=True, post_status=0),
        Verdict.LEFT_CHILDREN,
        0,
        True,
        False,
    ),
    (end("failed", "exit-code", "exited", 7), Verdict.FAILED, 7, None, True),
    (
        end("failed", "exit-code", "exited", has_done_if=True, post_status=1),
        Verdict.UNVERIFIED,
        0,
        False,
        True,
    ),
    (end("failed", "timeout", "killed", 15), Verdict.TIMEOUT, 143, None, True),
    (end("timeout", "timeout", "killed", 9), Verdict.TIMEOUT, 137, None, True),
    (
        end("failed", "timeout", "exited", has_done_if=True),
        Verdict.TIMEOUT,
        0,
        None,
        True,
    ),
    (end("failed", "signal", "killed", 9), Verdict.KILLED, 137, None, True),
    (end("failed", "core-dump", "dumped", 6), Verdict.KILLED, 134, None, True),
    (end("failed", "oom-kill", "killed", 9), Verdict.KILLED, 137, None, True),
    (end("failed", "watchdog", "killed", 6), Verdict.KILLED, 134, None, True),
    (end("failed", "resources"), Verdict.NOT_RUN, None, None, True),
    (end("failed", "exit-code", "exited", 203), Verdict.NOT_RUN, 203, None, True),
    (end("failed", "exit-code", "exited", 217), Verdict.NOT_RUN, 217, None, True),
    (end("canceled", "signal", "killed", 15), Verdict.STOPPED, 143, None, False),
    (end("canceled", "signal", "killed", 15, stopping=True), Verdict.SHUTDOWN, 143, None, False),
    (end("dependency", "success"), Verdict.ENVIRONMENT, None, None, False),
    (end("assert", "success"), Verdict.ENVIRONMENT, None, None, False),
    (end("concurrency", ""), Verdict.ENVIRONMENT, None, None, False),
    (end("unbuildable", "Invalid argument"), Verdict.UNBUILDABLE, None, None, True),
]


@pytest.mark.parametrize(("ran", "verdict", "rc", "verified", "spent"), DESIGN)
def test_the_table_of_results_is_the_designs(
    ran: RunEnd, verdict: Verdict, rc: int | None, verified: bool | None, spent: bool
) -> None:
    outcome = judge(ran)
    assert (outcome.verdict, outcome.rc, outcome.verified) == (verdict, rc, verified)
    assert (outcome.verdict in SPENDS) == bool(spent)


def test_every_end_has_exactly_one_outcome_with_words() -> None:
    for ran in ALL_ENDS:
        outcome = judge(ran)
        assert outcome.verdict in Verdict
        assert outcome.words
        assert "{" not in outcome.words


def test_every_row_of_the_table_decides_something() -> None:
    deciding = {next(i for i, row in enumerate(TABLE) if row.matches(ran)) for ran in ALL_ENDS}
    assert deciding == set(range(len(TABLE)))


def test_every_verdict_is_reached_and_has_words() -> None:
    assert {judge(ran).verdict for ran in ALL_ENDS} == set(Verdict) == set(WORDS)


def test_a_success_spends_nothing_and_is_not_asked_about_again() -> None:
    assert not SUCCESSES & SPENDS
    assert not SUCCESSES & ASK_DONE_IF
    assert ASK_DONE_IF <= SPENDS


def test_done_if_decides_where_the_unit_ran_it() -> None:
    for ran in ALL_ENDS:
        outcome = judge(ran)
        if outcome.success and ran.service_result != "success":
            assert not ran.has_done_if or ran.post_status == 0
        if outcome.verified is not None:
            assert ran.has_done_if
            assert outcome.verified == outcome.success


def test_unverified_is_only_said_of_jobs_that_have_a_done_if() -> None:
    for ran in ALL_ENDS:
        if judge(ran).verdict is Verdict.UNVERIFIED:
            assert ran.has_done_if
            assert ran.post_status != 0


def test_a_child_killed_for_memory_is_reported_as_that_although_the_job_exited_0() -> None:
    outcome = judge(end("failed", "oom-kill", "exited"))
    assert outcome.verdict is Verdict.KILLED
    assert "oom-kill" in outcome.words


def test_a_witness_that_could_not_be_written_does_not_undo_a_good_run() -> None:
    ran = end("failed", "exit-code", "exited", has_done_if=True, post_status=0)
    assert judge(ran).success


@pytest.mark.parametrize("status", sorted(EXEC_STATUS))
def test_each_exec_status_is_said_in_words(status: int) -> None:
    outcome = judge(end("failed", "exit-code", "exited", status))
    assert outcome.verdict is Verdict.NOT_RUN
    assert f"{status}/{EXEC_STATUS[status].split(':')[0]}" in outcome.words


def test_done_if_after_a_failure_makes_it_done_and_keeps_the_rc() -> None:
    failed = judge(end("failed", "exit-code", "exited", 7, has_done_if=True))
    assert failed.verified is None
    done = after_done_if(failed, holds=True)
    assert (done.verdict, done.rc, done.verified) == (Verdict.DONE, 7, True)
    assert "exit status 7" in done.words
    for holds in (False, None):
        again = after_done_if(failed, holds=holds)
        assert (again.verdict, again.verified) == (Verdict.FAILED, holds)


# Reconciliation

KILLED = end("", "signal", "killed", 15)
RECONCILE = [
    (UnitView("activating", 7, "i"), None, True, Reattached("j", 7, "i")),
    (UnitView("deactivating", 7, "i"), KILLED, True, Reattached("j", 7, "i")),
    (UnitView("activating", 7, "i"), KILLED, False, Reattached("j", 7, "i")),
    (UnitView("failed", 0, "i", KILLED), None, True, Ended("j", KILLED)),
    (UnitView("inactive"), KILLED, True, Ended("j", KILLED)),
    (None, KILLED, True, Ended("j", KILLED)),
    (None, end("", "exit-code", "exited", 3), False, Ended("j", end("", "exit-code", "exited", 3))),
]


@pytest.mark.parametrize(("unit", "witness", "same", "expected"), RECONCILE)
def test_reconciliation_row_by_row(
    unit: UnitView | None, witness: RunEnd | None, same: bool, expected: object
) -> None:
    assert reconcile("j", unit, witness, same_manager=same) == expected


@pytest.mark.parametrize(
    ("unit", "witness", "same", "reboot"),
    [
        (None, None, True, False),
        (None, None, False, True),
        (UnitView("inactive"), None, True, False),
        (None, KILLED, False, True),
        (None, end("", "signal", "killed", 9), False, True),
        (None, end("", "timeout", "killed", 9), False, True),
    ],
)
def test_what_left_no_result_or_died_with_its_manager_is_lost(
    unit: UnitView | None, witness: RunEnd | None, same: bool, reboot: bool
) -> None:
    lost = reconcile("j", unit, witness, same_manager=same)
    assert isinstance(lost, Lost)
    assert lost.reboot is reboot
    assert lost.note


@pytest.mark.parametrize(
    ("line", "verdict", "rc"),
    [
        ("success exited 0", Verdict.DONE, 0),
        ("exit-code exited 7", Verdict.FAILED, 7),
        ("exit-code exited 0", Verdict.UNVERIFIED, 0),
        ("timeout killed TERM", Verdict.TIMEOUT, 143),
        ("signal killed KILL", Verdict.KILLED, 137),
        ("core-dump dumped ABRT", Verdict.KILLED, 134),
        ("oom-kill killed KILL", Verdict.KILLED, 137),
        ("exit-code exited 203", Verdict.NOT_RUN, 203),
    ],
)
def test_a_witness_is_judged_like_the_unit_itself(line: str, verdict: Verdict, rc: int) -> None:
    outcome = judge(witness_end(*line.split(), has_done_if=True))
    assert (outcome.verdict, outcome.rc) == (verdict, rc)


def test_a_witness_with_a_signal_nobody_knows_is_still_a_kill() -> None:
    assert judge(witness_end("signal", "killed", "RTMIN+3", has_done_if=False)).verdict is (
        Verdict.KILLED
    )
