"""What people reported of other queues, tried on this one. Each test is named after its claim."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.population import Population
from tests.harness.queue import Queue
from tests.harness.tools import rounds
from tests.harness.waiting import eventually

ROOT = Path(__file__).parents[2]
HELD = 'until [ -e "$HOME/go" ]; do sleep 0.05; done; '
"""A job that runs until the test lets it go."""


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose controller runs."""
    with Queue(manager) as running:
        yield running


def sdqueue(queue: Queue, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the program as a user would."""
    command = [sys.executable, "-m", "sdqueue", "--user", *words]
    return queue.manager.run(command, check=False, env={"PYTHONPATH": str(ROOT)})


def let_go(queue: Queue) -> None:
    """Have held jobs come to their end."""
    (queue.manager.home / "go").touch()


def test_a_download_that_exits_0_with_parts_left_is_not_done_and_is_tried_again(
    queue: Queue,
) -> None:
    blobs = '"$STATE_DIRECTORY/blobs"'
    body = f"mkdir -p {blobs}; cd {blobs}\n"
    body += "if [ -e a.incomplete ]; then mv a.incomplete a; else : >a.incomplete; fi; exit 0"
    done_if = f"DONE_IF: [ -d {blobs} ] && ! find {blobs} -name '*.incomplete' | grep -q ."
    queue.put("1-net-model", body, done_if)
    queue.wait("1-net-model", "done")
    assert queue.words("1-net-model") == ["start", "retry", "start", "done"]
    (retry,) = queue.events("1-net-model", event="retry")
    assert (retry["rc"], retry["verified"], retry["attempt"]) == (0, False, 1)
    assert "DONE_IF" in retry["note"]


def test_a_file_of_the_right_size_and_the_wrong_sum_costs_one_attempt_and_both_logs_stay(
    queue: Queue,
) -> None:
    whole = subprocess.run(["sha256sum"], input=b"right\n", capture_output=True, check=True)
    digest = whole.stdout.decode().split()[0]
    body = 'cd "$STATE_DIRECTORY"; [ "$SDQUEUE_ATTEMPT" = 1 ] && echo wrong >w || echo right >w\n'
    body += 'echo "attempt $SDQUEUE_ATTEMPT"'
    done_if = f'DONE_IF: echo "{digest}  $STATE_DIRECTORY/w" | sha256sum --check --status'
    queue.put("1-net-weights", body, done_if)
    queue.wait("1-net-weights", "done")
    assert queue.record("1-net-weights", 1)["verified"] is False
    assert queue.record("1-net-weights", 2)["verified"] is True
    queue.manager.run(["journalctl", "--sync"])
    said = sdqueue(queue, "logs", "1-net-weights").stdout
    assert "attempt 1" in said
    assert "attempt 2" in said


def is_in(queue: Queue, name: str, state: str) -> bool:
    """Say whether the job's file lies in the directory of that state."""
    return queue.state(name) == state


def test_what_submit_answered_is_there_although_the_controller_is_killed_at_once(
    queue: Queue,
) -> None:
    names: list[str] = []
    for _ in range(rounds(5, 100)):
        answered = sdqueue(queue, "submit", "--lane", "cpu", "--", "true")
        queue.kill()
        assert answered.returncode == 0, answered.stderr
        names.append(answered.stdout.strip())
        queue.start()
    for name in names:
        # The file, not the event: killed between the two, the file has moved and the line is lost.
        eventually(partial(is_in, queue, name, "done"), f"{name} to be done")
        starts = [word for word in queue.words(name) if word == "start"]
        assert len(starts) <= 1, "its event may be lost with the controller, never doubled"


def test_a_queue_whose_box_went_down_goes_on_unattended_and_nothing_is_paused(
    queue: Queue,
) -> None:
    names = ["1-cpu-a", "2-cpu-b", "3-cpu-c", "4-cpu-d"]
    queue.put(names[0], f'echo "$SDQUEUE_ATTEMPT" >>"$STATE_DIRECTORY/began"; {HELD}')
    for name in names[1:]:
        queue.put(name, "true")
    queue.wait_running(names[0])
    queue.kill()
    assert isinstance(queue.manager, PrivateManager)
    queue.manager.restart()
    (queue.spool / "lock").write_text("1\n")
    queue.start()
    eventually(lambda: queue.words(names[0])[-2:] == ["recovered", "start"], "its second start")
    let_go(queue)
    for name in names:
        queue.wait(name, "done")
    assert (queue.work(names[0]) / "began").read_text().split() == ["1", "1"]
    assert all(lane["state"] != "paused" for lane in queue.ask("ListLanes"))


def test_a_job_whose_unit_cannot_be_built_fails_once_and_the_next_one_starts(queue: Queue) -> None:
    queue.put("1-cpu-bad", "true", shebang="#!bash")
    queue.put("2-cpu-good", "true")
    queue.wait("2-cpu-good", "done")
    if queue.state("1-cpu-bad") == "queue":  # refused by its header already
        assert queue.reason("1-cpu-bad") == "bad-file"
    else:
        queue.wait("1-cpu-bad", "failed")
        assert len(queue.events("1-cpu-bad", event="failed")) == 1


def test_jobs_that_wait_for_themselves_hold_nobody_up(queue: Queue) -> None:
    queue.put("1-gpu-gate", "true", "REQUIRES: false")
    queue.put("2-gpu-delay", "exit 1", "RETRY_DELAY: 1h")
    queue.put("3-gpu-later", "true", "NOT_BEFORE: 2099-01-01")
    queue.put("4-gpu-after", "true", "AFTER: 2-gpu-delay")
    queue.wait_reason("2-gpu-delay", "retry-delay")
    queue.wait_reason("1-gpu-gate", "requires-false")
    for name in ("5-gpu-ready", "6-cpu-ready", "7-net-ready"):
        queue.put(name, "true")
    for name in ("5-gpu-ready", "6-cpu-ready", "7-net-ready"):
        queue.wait(name, "done")
    assert queue.reason("3-gpu-later") == "not-before"
    assert queue.reason("4-gpu-after") == "after-not-done"


def test_a_unit_that_a_third_one_pulls_in_never_runs_beside_and_no_job_is_lost(
    queue: Queue,
) -> None:
    manager = queue.manager
    assert isinstance(manager, PrivateManager)
    units = manager.home / ".config/systemd/user"
    units.mkdir(parents=True)
    (units / "pulled.service").write_text(
        "[Unit]\nRequires=sdqueue-lane-net.target\nAfter=sdqueue-lane-net.target\n"
        "Conflicts=sdqueue-lane-gpu.target\nAfter=sdqueue-lane-gpu.target\n"
        "[Service]\nType=oneshot\nSlice=sdqueue-net.slice\nExecStart=sleep 0.5\n"
    )
    (units / "third.service").write_text(
        "[Unit]\nRequires=pulled.service\n[Service]\nType=oneshot\nExecStart=true\n"
    )
    manager.reload()
    queue.put("1-gpu-a", 'trap "sleep 0.5; exit 1" TERM; sleep 1000 & wait')
    queue.wait_running("1-gpu-a")
    with Population(manager, "gpu", "net") as seen:
        manager.run(["systemctl", "--user", "start", "third.service"])
        queue.wait("1-gpu-a", "parked")
    assert seen.counts["net"] > 0
    assert seen.overlaps == []


def test_waiting_jobs_cost_no_process_and_the_queue_answers(queue: Queue) -> None:
    manager = queue.manager
    assert isinstance(manager, PrivateManager)
    queue.put("0-cpu-held", HELD)
    queue.wait_running("0-cpu-held")

    def processes() -> int:
        return len(manager.pids())

    before, count = processes(), rounds(1000, 5000)
    for number in range(1, count + 1):
        queue.put(f"{number}-cpu-x", "true")
    eventually(lambda: len(queue.ask("ListJobs", "as", "0")) == count + 1, "all of them")
    assert processes() <= before + 2
    listed = json.loads(sdqueue(queue, "list", "--json=short").stdout)
    assert len(listed) == count + 1


def test_json_is_json_wait_tells_a_failure_and_cancel_takes_queued_and_running(
    queue: Queue,
) -> None:
    queue.put("1-cpu-bad", "exit 4", "LNAE: cpu", "RETRIES: 1")
    queue.wait("1-cpu-bad", "failed")
    assert sdqueue(queue, "wait", "1-cpu-bad").returncode not in (0, 2)
    queue.put("2-cpu-held", HELD)
    queue.wait_running("2-cpu-held")
    queue.put("3-cpu-next", "true", "LNAE: cpu")
    queue.wait_reason("3-cpu-next", "lane-taken")
    rows = json.loads(sdqueue(queue, "list", "--json=short").stdout)
    assert {"2-cpu-held", "3-cpu-next"} <= {row["name"] for row in rows}
    assert sdqueue(queue, "cancel", "2-cpu-held", "3-cpu-next").returncode == 0
    queue.wait("2-cpu-held", "parked")
    queue.wait("3-cpu-next", "parked")
    queue.put("4-cpu-good", "true")
    assert sdqueue(queue, "wait", "--all", "--timeout", "60s").returncode == 0
    assert queue.state("4-cpu-good") == "done"


def test_a_job_that_prints_without_end_keeps_its_last_lines(queue: Queue) -> None:
    body = 'for i in $(seq 50000); do printf "\\r%d%%" $i; done; echo; echo "the last line"'
    queue.put("1-cpu-loud", body)
    queue.wait("1-cpu-loud", "done")
    queue.manager.run(["journalctl", "--sync"])
    assert "the last line" in sdqueue(queue, "logs", "1-cpu-loud").stdout


def test_a_spool_of_a_newer_version_is_refused_in_words_and_left_alone(queue: Queue) -> None:
    queue.put("1-cpu-a", "true", "NOT_BEFORE: 2099-01-01")
    queue.wait_reason("1-cpu-a", "not-before")
    queue.stop()
    (queue.spool / "schema").write_text("99\n")
    refused = sdqueue(queue, "daemon")
    assert refused.returncode != 0
    assert "newer sdqueue" in refused.stderr
    assert queue.state("1-cpu-a") == "queue"
    (queue.spool / "schema").write_text("1\n")
    queue.start()
    queue.wait_reason("1-cpu-a", "not-before")
