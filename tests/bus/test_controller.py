"""The controller, whole, on a real user manager: what a job's way through the queue is."""

import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import DAEMON, Queue
from tests.harness.waiting import eventually

STAMP = 'date +%s.%N >>"$STATE_DIRECTORY/begin"; {} ; date +%s.%N >>"$STATE_DIRECTORY/end"'


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose controller runs."""
    with Queue(manager) as running:
        yield running


def span(queue: Queue, job: str) -> tuple[float, float]:
    """Say from when to when a job ran, by its own word."""
    begin = (queue.work(job) / "begin").read_text().split()[0]
    end = (queue.work(job) / "end").read_text().split()[-1]
    return float(begin), float(end)


def test_lanes_that_exclude_each_other_never_overlap_and_cpu_runs_beside(queue: Queue) -> None:
    for name in ("1-net-a", "2-gpu-b", "3-net-c", "4-gpu-d"):
        queue.put(name, STAMP.format("sleep 0.2"))
    queue.put("5-cpu-e", STAMP.format("sleep 1.5"))
    for name in ("1-net-a", "2-gpu-b", "3-net-c", "4-gpu-d", "5-cpu-e"):
        queue.wait(name, "done")
    spans = {name: span(queue, name) for name in ("1-net-a", "2-gpu-b", "3-net-c", "4-gpu-d")}
    for net in ("1-net-a", "3-net-c"):
        for gpu in ("2-gpu-b", "4-gpu-d"):
            assert spans[net][1] <= spans[gpu][0] or spans[gpu][1] <= spans[net][0]
    beside = span(queue, "5-cpu-e")
    assert any(begin < beside[1] and beside[0] < end for begin, end in spans.values())


def test_runnable_net_jobs_go_before_gpu_jobs(queue: Queue) -> None:
    queue.put("0-net-first", "sleep 0.3")
    queue.wait_running("0-net-first")
    queue.put("1-gpu-a", "true")
    queue.put("2-net-b", "true")
    queue.wait("1-gpu-a", "done")
    started = [event["job"] for event in queue.events(event="start")]
    assert started == ["0-net-first", "2-net-b", "1-gpu-a"]


def test_done_if_decides_not_the_exit_code(queue: Queue) -> None:
    body = 'if [ -e "$STATE_DIRECTORY/once" ]; then touch "$STATE_DIRECTORY/ok"; fi\n'
    body += 'touch "$STATE_DIRECTORY/once"; exit 0'
    queue.put("1-cpu-twice", body, 'DONE_IF: test -e "$STATE_DIRECTORY/ok"')
    queue.wait("1-cpu-twice", "done")
    assert queue.words("1-cpu-twice") == ["start", "retry", "start", "done"]
    first, second = queue.record("1-cpu-twice", 1), queue.record("1-cpu-twice", 2)
    assert (first["rc"], first["verified"], first["attempt"]) == (0, False, 1)
    assert (second["rc"], second["verified"], second["attempt"]) == (0, True, 2)


def test_a_failing_job_whose_done_if_holds_is_done_and_says_so(queue: Queue) -> None:
    queue.put(
        "1-cpu-a", 'touch "$STATE_DIRECTORY/ok"; exit 7', 'DONE_IF: test -e "$STATE_DIRECTORY/ok"'
    )
    queue.wait("1-cpu-a", "done")
    (done,) = queue.events("1-cpu-a", event="done")
    assert (done["rc"], done["verified"]) == (7, True)
    assert "although exit status 7" in done["note"]


def test_a_job_that_fails_for_good_spends_its_budget_and_not_more(queue: Queue) -> None:
    queue.put("1-cpu-bad", "exit 7", "RETRIES: 2")
    queue.wait("1-cpu-bad", "failed")
    assert queue.words("1-cpu-bad") == ["start", "retry", "start", "failed"]
    (failed,) = queue.events("1-cpu-bad", event="failed")
    assert (failed["rc"], failed["attempt"], failed["verified"]) == (7, 2, None)


def test_a_reseeded_job_that_is_done_is_skipped_without_running(queue: Queue) -> None:
    queue.put("1-cpu-done", 'touch "$STATE_DIRECTORY/ran"', "DONE_IF: true")
    queue.wait("1-cpu-done", "done")
    assert queue.words("1-cpu-done") == ["skipped"]
    assert not (queue.work("1-cpu-done") / "ran").exists()


def test_done_if_is_asked_before_requires(queue: Queue) -> None:
    queue.put("1-cpu-a", "exit 1", "DONE_IF: true", "REQUIRES: false")
    queue.wait("1-cpu-a", "done")


def test_a_closed_gate_waits_with_its_reason_and_holds_nothing(queue: Queue) -> None:
    queue.put("1-cpu-gate", "true", 'REQUIRES: test -e "$HOME/open"')
    queue.put("2-cpu-free", "true")
    queue.wait("2-cpu-free", "done")
    queue.wait_reason("1-cpu-gate", "requires-false")
    (queue.manager.home / "open").touch()
    queue.put("3-cpu-news", "true")
    queue.wait("1-cpu-gate", "done")
    waits = [event["reason"] for event in queue.events("1-cpu-gate", event="wait")]
    assert waits.count("requires-false") == 1, "asking again is not a change"


def test_a_missing_interpreter_is_said_in_words(queue: Queue) -> None:
    queue.put("1-cpu-a", "true", "RETRIES: 1", shebang="#!/no/such/interpreter")
    queue.wait("1-cpu-a", "failed")
    (failed,) = queue.events("1-cpu-a", event="failed")
    assert "203/EXEC" in failed["note"]
    assert "interpreter does not exist" in failed["note"]


def test_a_wall_clock_that_passes_is_a_timeout(queue: Queue) -> None:
    queue.put("1-cpu-slow", "sleep 1000", "TIMEOUT: 1s", "RETRIES: 1")
    queue.wait("1-cpu-slow", "failed")
    (failed,) = queue.events("1-cpu-slow", event="failed")
    assert failed["result"] == "timeout"


DEAF_CHILD = """
setsid bash -c 'trap "" TERM; echo $$ >"$STATE_DIRECTORY/pid"; while :; do sleep 1; done' &
wait
"""


def test_the_lane_of_a_cancelled_run_is_free_when_its_last_process_is_gone(queue: Queue) -> None:
    queue.put("1-cpu-long", DEAF_CHILD)
    unit = queue.wait_running("1-cpu-long")
    child = queue.work("1-cpu-long") / "pid"
    eventually(lambda: child.exists() and child.read_text().strip(), "the child")
    queue.put(
        "2-cpu-next",
        f"kill -0 {child.read_text().strip()} 2>/dev/null && exit 1; exit 0",
        "RETRIES: 1",
    )
    assert queue.ask("CancelJob", "s", "1-cpu-long") == "stopping"
    eventually(lambda: queue.manager.show(unit, "ActiveState") == "deactivating", "it to stop")
    assert queue.state("2-cpu-next") == "queue"
    queue.manager.run(["systemctl", "--user", "kill", "--signal=KILL", unit])
    queue.wait("2-cpu-next", "done")
    queue.wait("1-cpu-long", "parked")
    assert queue.words("1-cpu-long") == ["start", "canceled"]


def test_a_queued_job_that_is_cancelled_is_parked(queue: Queue) -> None:
    queue.put("1-cpu-a", "sleep 1000")
    queue.wait_running("1-cpu-a")
    queue.put("2-cpu-b", "true")
    queue.wait_reason("2-cpu-b", "lane-taken")
    assert queue.ask("CancelJob", "s", "2-cpu-b") == "parked"
    queue.wait("2-cpu-b", "parked")


def test_systemctl_stop_parks_the_job_and_spends_nothing(queue: Queue) -> None:
    queue.put("1-cpu-a", "sleep 1000")
    unit = queue.wait_running("1-cpu-a")
    queue.manager.run(["systemctl", "--user", "stop", unit])
    queue.wait("1-cpu-a", "parked")
    assert queue.words("1-cpu-a") == ["start", "parked"]


def test_what_pid_1_refuses_waits_and_names_who_is_in_the_way(queue: Queue) -> None:
    queue.put("0-gpu-first", "true")
    queue.wait("0-gpu-first", "done")  # so that the lanes' targets are there
    stranger = ["systemd-run", "--user", "--no-block", "--unit=stranger", "--property=Type=oneshot"]
    stranger += ["--property=Requires=sdqueue-lane-gpu.target"]
    stranger += ["--property=After=sdqueue-lane-gpu.target", "sleep", "1000"]
    queue.manager.run(stranger)
    eventually(lambda: queue.manager.show("stranger.service", "ActiveState") == "activating")
    queue.put("1-net-a", "true")
    queue.wait_reason("1-net-a", "refused")
    *_, wait = queue.events("1-net-a", event="wait")
    assert "stranger.service" in wait["detail"]
    assert queue.manager.show("stranger.service", "ActiveState") == "activating"
    queue.manager.run(["systemctl", "--user", "stop", "stranger.service"])
    queue.wait("1-net-a", "done")
    assert queue.words("1-net-a") == ["start", "done"]


def test_a_queue_directory_that_is_removed_is_made_again(queue: Queue) -> None:
    (queue.spool / "queue").rmdir()
    eventually(lambda: (queue.spool / "queue").is_dir(), "queue/ again")
    queue.put("1-cpu-a", "true")
    queue.wait("1-cpu-a", "done")


def test_a_file_that_is_still_being_written_does_not_run(queue: Queue) -> None:
    with (queue.spool / "queue" / "1-cpu-half.job").open("w") as half:
        half.write('#!/bin/bash\ntouch "$HOME/half"\n')
        half.flush()
        queue.put("2-cpu-whole", "true")
        queue.wait("2-cpu-whole", "done")
        assert queue.words("1-cpu-half") == []
        half.write('touch "$HOME/whole"\n')
    queue.wait("1-cpu-half", "done")
    assert (queue.manager.home / "whole").exists()


def test_a_job_of_a_lane_that_is_not_there_waits_and_says_so(queue: Queue) -> None:
    queue.put("1-cpu-a", "true", "LANE: tpu")
    queue.wait_reason("1-cpu-a", "bad-file")
    queue.put("1-cpu-a", "true", "LANE: cpu")
    queue.wait("1-cpu-a", "done")


def test_one_spool_has_one_controller(queue: Queue) -> None:
    second = queue.manager.run(DAEMON, check=False)
    assert second.returncode == 1
    assert "another controller" in second.stderr


def test_one_bus_has_one_queue(queue: Queue) -> None:
    elsewhere = {"XDG_STATE_HOME": str(queue.manager.home / "elsewhere")}
    second = queue.manager.run(DAEMON, check=False, env=elsewhere)
    assert second.returncode == 1
    assert "org.sdqueue1" in second.stderr


def test_the_controller_ends_when_asked_and_the_job_runs_on(queue: Queue) -> None:
    queue.put("1-cpu-a", 'sleep 1; touch "$STATE_DIRECTORY/whole"')
    queue.wait_running("1-cpu-a")
    assert queue.stop() == 0
    queue.start()
    queue.wait("1-cpu-a", "done")
    assert queue.words("1-cpu-a") in (
        ["start", "stopped", "reattached", "done"],
        ["start", "stopped", "done"],
    )
    assert (queue.work("1-cpu-a") / "whole").exists()


def test_no_bus_is_said_and_the_controller_waits_for_it(manager: PrivateManager) -> None:
    manager.kill_bus()
    queue = Queue(manager)
    queue.put("1-cpu-a", "true")
    queue.process = queue.launch()
    try:
        eventually(lambda: "no connection to the service manager" in queue.said(), "a word")
        assert queue.process.poll() is None
        manager.start_bus()
        queue.wait("1-cpu-a", "done")
    finally:
        queue.process.send_signal(signal.SIGTERM)
        queue.process.wait(60)
        assert isinstance(queue.process, subprocess.Popen)


def test_223_files_of_which_220_are_finished_runs_put_back_are_sorted_in_one_pass(
    manager: PrivateManager,
) -> None:
    queue = Queue(manager)
    finished = [f"{number:03}-cpu-finished" for number in range(220)]
    closed = [f"{number:03}-cpu-closed" for number in (50, 100, 200)]
    for name in finished:
        queue.put(name, "exit 1", "DONE_IF: true")
    for name in closed:
        queue.put(name, "exit 1", "DONE_IF: false", "REQUIRES: false")
    with queue:
        for name in finished:
            queue.wait(name, "done")
        for name in closed:
            queue.wait_reason(name, "requires-false")
        assert not queue.events(event="start")
        assert list((queue.spool / "runs").iterdir()) == [], "nothing went through running/"
