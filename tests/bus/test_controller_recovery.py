"""The controller dies, the bus dies, the manager reloads: no job notices, and no result is lost."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually

HELD = 'until [ -e "$HOME/go" ]; do sleep 0.05; done; '
"""A job that runs until the test lets it go."""


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose controller runs."""
    with Queue(manager) as running:
        yield running


def let_go(queue: Queue) -> None:
    """Have held jobs come to their end."""
    (queue.manager.home / "go").touch()


def has_started(queue: Queue, job: str, times: int) -> bool:
    """Say whether the log has that many starts of the job."""
    return queue.words(job).count("start") == times


def wait_unit_gone(queue: Queue, unit: str) -> None:
    """Wait until the manager has forgotten the unit, or holds it as failed."""
    ended = ("inactive", "failed")
    eventually(lambda: queue.manager.show(unit, "ActiveState") in ended, f"the end of {unit}")


def test_a_run_that_outlives_the_controller_is_collected_by_the_next(queue: Queue) -> None:
    queue.put("1-cpu-a", f"{HELD} exit 3", "RETRIES: 1")
    queue.wait_running("1-cpu-a")
    queue.kill()
    queue.start()
    eventually(lambda: queue.words("1-cpu-a") == ["start", "reattached"], "the reattachment")
    let_go(queue)
    queue.wait("1-cpu-a", "failed")
    assert queue.words("1-cpu-a") == ["start", "reattached", "failed"]
    assert queue.record("1-cpu-a")["rc"] == 3


@pytest.mark.parametrize(("status", "state"), [(0, "done"), (3, "failed")])
def test_a_run_that_ends_while_nobody_looks_keeps_its_result(
    queue: Queue, status: int, state: str
) -> None:
    queue.put("1-cpu-a", f"{HELD} exit {status}", "RETRIES: 1")
    unit = queue.wait_running("1-cpu-a")
    queue.kill()
    let_go(queue)
    wait_unit_gone(queue, unit)
    queue.start()
    queue.wait("1-cpu-a", state)
    assert queue.words("1-cpu-a") == ["start", state]
    record = queue.record("1-cpu-a")
    assert (record["rc"], record["attempt"]) == (status, 1)


def test_done_if_is_asked_once_for_a_run_that_ends_while_nobody_looks(queue: Queue) -> None:
    ask = 'DONE_IF: echo asked >>"$HOME/asked"; test -e "$HOME/whole"'
    queue.put("1-cpu-a", f'{HELD} touch "$HOME/whole"', ask)
    unit = queue.wait_running("1-cpu-a")
    queue.kill()
    asked = queue.manager.home / "asked"
    asked.unlink()  # the one before the start
    let_go(queue)
    wait_unit_gone(queue, unit)
    queue.start()
    queue.wait("1-cpu-a", "done")
    assert asked.read_text().split() == ["asked"]
    assert queue.record("1-cpu-a")["verified"] is True


def test_what_systemd_was_made_to_forget_is_known_from_the_witness(queue: Queue) -> None:
    queue.put("1-cpu-a", f"{HELD} exit 3", "RETRIES: 1")
    unit = queue.wait_running("1-cpu-a")
    queue.kill()
    let_go(queue)
    eventually(lambda: queue.manager.show(unit, "ActiveState") == "failed", "its failure")
    queue.manager.run(["systemctl", "--user", "reset-failed", unit])
    queue.start()
    queue.wait("1-cpu-a", "failed")
    assert queue.record("1-cpu-a")["rc"] == 3


def test_a_manager_that_is_started_anew_costs_no_attempt(queue: Queue) -> None:
    queue.put("1-cpu-a", f"{HELD} true", "RETRIES: 1")
    queue.wait_running("1-cpu-a")
    queue.kill()
    queue.manager.restart()  # type: ignore[attr-defined]
    let_go(queue)
    queue.start()
    queue.wait("1-cpu-a", "done")
    assert queue.words("1-cpu-a") == ["start", "recovered", "start", "done"]
    assert queue.record("1-cpu-a", 2)["attempt"] == 1


def test_a_job_that_takes_the_manager_down_again_and_again_is_parked(queue: Queue) -> None:
    queue.put("1-cpu-bad", f"{HELD} true")
    for started in (1, 2, 3):
        eventually(partial(has_started, queue, "1-cpu-bad", started), "its start")
        queue.kill()
        queue.manager.restart()  # type: ignore[attr-defined]
        queue.start()
    queue.put("2-cpu-good", "true")
    queue.wait("1-cpu-bad", "parked")
    queue.wait("2-cpu-good", "done")
    (parked,) = queue.events("1-cpu-bad", event="parked")
    assert "interrupted 3 times" in parked["note"]


def test_the_bus_dies_and_comes_back_and_no_job_notices(queue: Queue) -> None:
    queue.put("1-cpu-a", f"{HELD} exit 0")
    queue.put("2-cpu-b", "true")
    queue.wait_running("1-cpu-a")
    queue.manager.kill_bus()  # type: ignore[attr-defined]
    let_go(queue)
    queue.manager.start_bus()  # type: ignore[attr-defined]
    queue.wait("1-cpu-a", "done")
    queue.wait("2-cpu-b", "done")
    assert queue.record("1-cpu-a")["rc"] == 0
    assert [each["event"] for each in queue.events("2-cpu-b") if each["event"] != "wait"] == [
        "start",
        "done",
    ]


@pytest.mark.parametrize("how", ["reload", "reexec"])
def test_reload_and_reexec_during_a_run_change_nothing(queue: Queue, how: str) -> None:
    queue.put("1-cpu-a", f"{HELD} exit 0")
    queue.put("2-cpu-b", "true")
    queue.wait_running("1-cpu-a")
    for _ in range(3):
        getattr(queue.manager, how)()
    assert queue.state("2-cpu-b") == "queue"
    let_go(queue)
    queue.wait("1-cpu-a", "done")
    queue.wait("2-cpu-b", "done")
    assert queue.words("1-cpu-a") == ["start", "done"]


@pytest.mark.parametrize("how", ["reload", "reexec"])
def test_a_run_under_a_reload_keeps_its_done_if_its_environment_and_its_witness(
    queue: Queue, how: str
) -> None:
    ask = "DONE_IF: [ $A = '$5;x' ] && [ \"$(cat $STATE_DIRECTORY/ran)\" = $SDQUEUE_JOB ]"
    body = f'{HELD} echo "$SDQUEUE_JOB" >"$STATE_DIRECTORY/ran"'
    queue.put("1-cpu-a", body, ask, "ENV: A=$5;x", "RETRIES: 1")
    unit = queue.wait_running("1-cpu-a")
    getattr(queue.manager, how)()
    let_go(queue)
    queue.wait("1-cpu-a", "done")
    assert queue.record("1-cpu-a")["verified"] is True
    run = queue.spool / "runs/1-cpu-a/1"
    assert (run / "exit").read_text().startswith("success exited 0 ")
    assert (run / "whole").exists()
    assert queue.manager.show(unit, "LoadState") == "not-found"


def test_a_storm_of_reloads_loses_and_doubles_nothing(queue: Queue) -> None:
    names = [f"{number}-cpu-x" for number in range(30)]
    for name in names:
        queue.put(name, 'echo ran >>"$STATE_DIRECTORY/ran"')
    while any(queue.state(name) != "done" for name in names):
        queue.manager.reload()
    for name in names:
        assert (queue.work(name) / "ran").read_text().split() == ["ran"]
        assert queue.words(name) == ["start", "done"]


def test_a_running_job_whose_file_somebody_removes_runs_to_its_end(queue: Queue) -> None:
    queue.put("1-cpu-a", f'{HELD} touch "$HOME/whole"')
    queue.wait_running("1-cpu-a")
    (queue.spool / "running" / "1-cpu-a.job").unlink()
    let_go(queue)
    eventually(lambda: "done" in queue.words("1-cpu-a"), "its end")
    assert (queue.manager.home / "whole").exists()
    queue.put("2-cpu-b", "true")
    queue.wait("2-cpu-b", "done")


@pytest.mark.parametrize("how", ["it fails", "it is stopped"])
def test_a_run_whose_file_went_while_no_controller_lived_holds_its_lane_to_its_end_and_no_longer(
    queue: Queue, how: str
) -> None:
    queue.put("1-cpu-a", f"{HELD} exit 3")
    queue.wait_running("1-cpu-a")
    queue.kill()
    (queue.spool / "running" / "1-cpu-a.job").unlink()
    queue.put("2-cpu-b", "true")
    queue.start()
    queue.wait_reason("2-cpu-b", "lane-taken")
    if how == "it fails":
        let_go(queue)
    else:
        queue.manager.run(["systemctl", "--user", "stop", "sdqueue-job-1-cpu-a.service"])
    queue.wait("2-cpu-b", "done")


def test_a_job_that_is_queued_anew_while_it_runs_runs_again(queue: Queue) -> None:
    queue.put("1-cpu-a", f'{HELD} echo ran >>"$HOME/ran"')
    queue.wait_running("1-cpu-a")
    queue.put("1-cpu-a", 'echo again >>"$HOME/ran"')
    let_go(queue)
    ran = queue.manager.home / "ran"
    eventually(lambda: ran.exists() and ran.read_text().split() == ["ran", "again"], "both runs")
    queue.wait("1-cpu-a", "done")


def test_editing_a_running_job_does_not_shift_the_ground_under_it(queue: Queue) -> None:
    queue.put("1-cpu-a", f'{HELD}\necho old >>"$HOME/said"')
    queue.wait_running("1-cpu-a")
    file = queue.spool / "running" / "1-cpu-a.job"
    file.write_text('#!/bin/bash\n\n\n\n\necho new >>"$HOME/said"; exit 1\n')
    let_go(queue)
    queue.wait("1-cpu-a", "done")
    assert (queue.manager.home / "said").read_text().split() == ["old"]


@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_a_paused_lane_is_paused_for_the_next_controller_too(queue: Queue, ending: str) -> None:
    queue.ask("PauseLane", "sb", "cpu", "true")
    getattr(queue, ending)()
    queue.put("1-cpu-a", "true")
    queue.start()
    queue.wait_reason("1-cpu-a", "paused")
    assert [each["lane"] for each in queue.events(event="paused")] == ["cpu", "cpu"]
    queue.ask("PauseLane", "sb", "cpu", "false")
    queue.wait("1-cpu-a", "done")
    getattr(queue, ending)()
    queue.start()
    queue.put("2-cpu-b", "true")
    queue.wait("2-cpu-b", "done")


def test_an_end_that_is_on_its_way_to_the_disk_is_told_before_a_stop(queue: Queue) -> None:
    for number in range(12):
        name = f"{number:02}-cpu-a"
        queue.put(name, "true")
        done = queue.spool / "done" / f"{name}.job"
        while not done.exists():
            pass  # to be there before the controller has told it
        queue.stop()
        queue.start()
        queue.wait(name, "done")
