"""The disk says no, files are torn, the clock is set: nothing is lost, and the queue goes on."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.bus.crash_scenario import Round, injected
from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.tools import needs
from tests.harness.waiting import eventually

CLOCK = Path(__file__).parents[1] / "harness/steppedclock"
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


def run_dir(queue: Queue, job: str, number: int = 1) -> Path:
    """Say where a run's files are."""
    return queue.spool / "runs" / job / str(number)


# Refused for a while


@needs("strace")
@pytest.mark.parametrize(
    ("call", "error", "times"),
    [
        ("fsync", "EIO", "31..32"),
        ("rename", "EROFS", "9..10"),
        ("write", "ENOSPC", "45..46"),
        ("mkdir", "ENOSPC", "12..13"),
        ("pipe2", "EMFILE", "3..4"),
    ],
)
def test_what_the_disk_refuses_for_a_while_is_said_and_done_later(
    shared_manager: PrivateManager, call: str, error: str, times: str
) -> None:
    played = Round(shared_manager)
    played.play(injected(call, f"error={error}:when={times}"))
    assert played.deaths == 0, played.queue.said()
    assert played.faults() == []
    assert played.queue.events(event="error")


def test_a_full_disk_halts_the_queue_with_that_reason_until_there_is_room(
    manager: PrivateManager,
) -> None:
    queue = Queue(manager)
    queue.spool.mkdir(parents=True)
    manager.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(queue.spool)])
    try:
        queue.spool = Path(f"/proc/{manager.pid}/root{queue.spool}")
        with queue:
            queue.put("1-cpu-a", f"{HELD} exit 3", "RETRIES: 1")
            queue.put("2-cpu-b", "true")
            queue.wait_running("1-cpu-a")
            full = queue.spool / "full"
            with full.open("wb", buffering=0) as file, suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            let_go(queue)
            queue.wait_reason("2-cpu-b", "trouble")
            assert "No space left" in queue.ask("Why", "s", "2-cpu-b")[0]["detail"]
            assert queue.state("1-cpu-a") == "running"
            full.unlink()
            queue.wait("1-cpu-a", "failed")
            queue.wait("2-cpu-b", "done")
            assert queue.record("1-cpu-a")["rc"] == 3
            assert any("No space" in event["what"] for event in queue.events(event="error"))
    finally:
        queue.spool = Path(manager.env["XDG_STATE_HOME"]) / "sdqueue"
        manager.run(["umount", str(queue.spool)])


# Files that are not what they were


def test_a_torn_event_log_is_mended_and_goes_on(queue: Queue) -> None:
    queue.put("1-cpu-a", "true")
    queue.wait("1-cpu-a", "done")
    queue.kill()
    log = queue.spool / "events.jsonl"
    os.truncate(log, log.stat().st_size - 20)
    queue.start()
    queue.put("2-cpu-b", "true")
    queue.wait("2-cpu-b", "done")
    assert any("cut off" in event["what"] for event in queue.events(event="error"))
    numbers = [event["seq"] for event in queue.events()]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("content", ["", '{"schema":1,"att', "[]", '{"schema":1,"attempts":-3}'])
def test_a_meta_file_that_cannot_be_read_costs_its_memory_and_no_job(
    queue: Queue, content: str
) -> None:
    queue.put("1-cpu-a", '[ -e "$HOME/go" ]', "RETRIES: 2", "RETRY_DELAY: 1000s")
    eventually(lambda: queue.words("1-cpu-a")[-1:] == ["retry"], "its first failure")
    queue.kill()
    (queue.spool / "meta/1-cpu-a.json").write_text(content)
    let_go(queue)
    queue.start()
    queue.wait("1-cpu-a", "done")


def _torn(directory: Path) -> None:
    (directory / "run.json").write_text('{"schema": 1, "job"')


def _huge(directory: Path) -> None:
    (directory / "run.json").write_text('{"schema": 1, "x": "' + "x" * (4 << 20) + '"}')


def _fifo(directory: Path) -> None:
    (directory / "run.json").unlink()
    os.mkfifo(directory / "run.json")


def _gone(directory: Path) -> None:
    for file in directory.iterdir():
        file.unlink()
    directory.rmdir()


@pytest.mark.parametrize("spoil", [_torn, _huge, _fifo, _gone])
def test_a_run_record_that_cannot_be_read_is_written_anew(queue: Queue, spoil) -> None:  # type: ignore[no-untyped-def]
    queue.put("1-cpu-a", f"{HELD} exit 3", "RETRIES: 1")
    queue.wait_running("1-cpu-a")
    queue.kill()
    spoil(run_dir(queue, "1-cpu-a"))
    queue.start()
    let_go(queue)
    queue.wait("1-cpu-a", "failed")
    if spoil is not _gone:  # with the run's number gone, its end is known from its unit only
        assert queue.record("1-cpu-a")["outcome"] == "failed"
    queue.put("2-cpu-b", "true")
    queue.wait("2-cpu-b", "done")


@pytest.mark.parametrize("spoil", [_torn, _huge, _fifo, _gone])
def test_a_job_that_spoils_its_own_run_harms_nobody_else(queue: Queue, spoil) -> None:  # type: ignore[no-untyped-def]
    queue.put("1-cpu-a", f"{HELD} true")
    queue.wait_running("1-cpu-a")
    spoil(run_dir(queue, "1-cpu-a"))
    let_go(queue)
    queue.put("2-cpu-b", "true")
    queue.wait("2-cpu-b", "done")
    queue.wait("1-cpu-a", "done")


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "torn"])
def test_a_witness_that_is_no_witness_means_run_again(queue: Queue, kind: str) -> None:
    queue.put("1-cpu-a", f'{HELD} echo ran >>"$HOME/ran"')
    unit = queue.wait_running("1-cpu-a")
    queue.kill()
    let_go(queue)
    eventually(lambda: queue.manager.show(unit, "ActiveState") == "inactive", "its end")
    witness = run_dir(queue, "1-cpu-a") / "exit"
    witness.unlink()
    if kind == "fifo":
        os.mkfifo(witness)
    elif kind == "link":
        witness.symlink_to("/etc/passwd")
    elif kind == "directory":
        witness.mkdir()
    else:
        witness.write_text("success exited")
    queue.start()
    queue.wait("1-cpu-a", "done")
    assert (queue.manager.home / "ran").read_text().split() == ["ran", "ran"]
    assert queue.words("1-cpu-a") == ["start", "recovered", "start", "done"]
    assert queue.record("1-cpu-a", 2)["attempt"] == 1


def test_a_running_job_whose_file_was_made_unreadable_is_collected_by_the_next_controller(
    queue: Queue,
) -> None:
    queue.put("1-cpu-a", f"{HELD} exit 3", "RETRIES: 1")
    queue.put("2-cpu-b", "true")
    queue.wait_running("1-cpu-a")
    queue.kill()
    (queue.spool / "running/1-cpu-a.job").write_text("#!/bin/bash\n# LANE: nowhere\n# RETRIES: x\n")
    queue.start()
    eventually(lambda: queue.words("1-cpu-a")[-1:] == ["reattached"], "the reattachment")
    queue.wait_reason("2-cpu-b", "lane-taken")
    let_go(queue)
    queue.wait("1-cpu-a", "failed")
    queue.wait("2-cpu-b", "done")


def test_directories_of_the_spool_that_are_removed_are_made_again(queue: Queue) -> None:
    queue.put("1-cpu-a", "true")
    queue.wait("1-cpu-a", "done")
    queue.manager.run(["rm", "-rf", *(str(queue.spool / each) for each in ("runs", "meta", "tmp"))])
    queue.put("2-cpu-b", "exit 1", "RETRIES: 2")
    queue.wait("2-cpu-b", "failed")


# A cancel that was answered


@pytest.mark.parametrize("moment", ["before it stops", "after it stopped"])
def test_a_cancel_that_was_answered_outlives_the_controller(queue: Queue, moment: str) -> None:
    trap = "trap 'until [ -e \"$HOME/go\" ]; do sleep 0.05; done; exit 0' TERM\n"
    queue.put("1-cpu-a", f'{trap} touch "$HOME/deaf"; sleep 1000 & wait')
    unit = queue.wait_running("1-cpu-a")
    eventually((queue.manager.home / "deaf").exists, "its trap")
    assert queue.ask("CancelJob", "s", "1-cpu-a") == "stopping"
    if moment == "after it stopped":  # killed before, the controller may not have stopped it yet
        stops = "deactivating"
        eventually(lambda: queue.manager.show(unit, "ActiveState") == stops, "it to stop")
    queue.kill()
    let_go(queue)
    if moment == "after it stopped":
        eventually(lambda: queue.manager.show(unit, "ActiveState") == "inactive", "its end")
    queue.start()
    queue.wait("1-cpu-a", "parked")


# Clocks


def test_a_clock_set_back_does_not_make_a_retry_wait_for_it(manager: PrivateManager) -> None:
    clock = manager.home / "clock"
    clock.write_text("0")
    queue = Queue(manager, wrapper=("env", f"PYTHONPATH={CLOCK}", f"SDQUEUE_CLOCK={clock}"))
    with queue:
        queue.put("1-cpu-a", '[ "$SDQUEUE_ATTEMPT" = 2 ]', "RETRY_DELAY: 3s")
        eventually(lambda: queue.words("1-cpu-a")[-1:] == ["retry"], "its first failure")
        clock.write_text("-86400")
        queue.wait("1-cpu-a", "done")


def test_a_clock_set_forward_lets_a_job_start_whose_time_has_come(manager: PrivateManager) -> None:
    clock = manager.home / "clock"
    clock.write_text("0")
    queue = Queue(manager, wrapper=("env", f"PYTHONPATH={CLOCK}", f"SDQUEUE_CLOCK={clock}"))
    later = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() + 86000))
    with queue:
        queue.put("1-cpu-a", "true", f"NOT_BEFORE: {later}")
        queue.wait_reason("1-cpu-a", "not-before")
        clock.write_text("86400")
        queue.wait("1-cpu-a", "done")


def test_records_are_json_whatever_happened(queue: Queue) -> None:
    queue.put("1-cpu-a", "exit 1", "RETRIES: 2")
    queue.wait("1-cpu-a", "failed")
    for number in (1, 2):
        record = json.loads((run_dir(queue, "1-cpu-a", number) / "run.json").read_text())
        assert (record["attempt"], record["rc"]) == (number, 1)
