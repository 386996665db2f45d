"""A GPU user that the queue did not start: real processes, and a reader that knows only the log."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.gpu_reader import last_wait
from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually

# A name of this process's own: what tests beside it start is a stranger to this queue, too.
NAME = f"llama-{os.getpid()}"
CONFIG = f'[lane.gpu]\nforeign = ["{NAME}"]\n'


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue that waits for processes of that name, and such a program."""
    config = manager.home / ".config/sdqueue"
    config.mkdir(parents=True)
    (config / "sdqueue.toml").write_text(CONFIG)
    sleep = shutil.which("sleep")
    assert sleep
    shutil.copy(sleep, manager.home / NAME)
    with Queue(manager) as running:
        yield running


@contextmanager
def server(queue: Queue) -> Iterator["subprocess.Popen[str]"]:
    """Run a process of that name, which the queue did not start."""
    process = queue.manager.popen([str(queue.manager.home / NAME), "1000"])
    comm = Path(f"/proc/{process.pid}/comm")
    eventually(lambda: comm.read_text() == f"{NAME}\n", "its name")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wanted(queue: Queue) -> object:
    """Say which episode the reader of the log believes in."""
    found = last_wait(queue.spool / "events.jsonl")
    return found and found["episode"]


def waits(queue: Queue) -> list[tuple[str, str]]:
    return [(e["event"], e["job"]) for e in queue.events() if e["event"].startswith("gpu-wait")]


def test_a_job_waits_for_the_process_by_name_and_starts_when_it_ends(queue: Queue) -> None:
    with server(queue):
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        (wait,) = queue.events(event="gpu-wait")
        assert (wait["job"], wait["cmd"], wait["lane"]) == ("1-gpu-a", NAME, "gpu")
        assert wait["pid"] > 0
        assert wanted(queue) == wait["episode"]
        assert NAME in queue.events("1-gpu-a", event="wait")[-1]["detail"]
        (gpu,) = [row for row in queue.ask("ListLanes") if row["name"] == "gpu"]
        assert gpu["state"] == "foreign"
        assert queue.state("1-gpu-a") == "queue"
    queue.wait("1-gpu-a", "done")
    assert wanted(queue) is None
    assert waits(queue) == [("gpu-wait", "1-gpu-a")], "a start ends it without more words"


def test_other_lanes_do_not_mind_and_a_download_does_not_end_the_wait(queue: Queue) -> None:
    with server(queue):
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        episode = wanted(queue)
        queue.put("2-net-b", "sleep 1000")
        queue.wait_running("2-net-b")
        queue.wait_reason("1-gpu-a", "excluded-lane")
        assert wanted(queue) == episode
        queue.ask("CancelJob", "s", "2-net-b")
        queue.wait_reason("1-gpu-a", "foreign")
        assert wanted(queue) == episode
        assert len(waits(queue)) == 1
    queue.wait("1-gpu-a", "done")


def test_the_first_is_skipped_and_the_next_meets_the_same_process(queue: Queue) -> None:
    done = queue.manager.home / "it-is-done"
    config = queue.manager.home / ".config/sdqueue/sdqueue.toml"
    config.write_text(f'recheck = "1s"\n{CONFIG}')
    assert queue.process
    queue.process.send_signal(signal.SIGHUP)
    with server(queue):
        queue.put("1-gpu-a", "true", f"DONE_IF: test -e {done}")
        queue.put("2-gpu-b", "true")
        eventually(lambda: waits(queue), "the wait")
        episode = wanted(queue)
        done.touch()
        queue.wait("1-gpu-a", "done")
        queue.wait_reason("2-gpu-b", "foreign")
        assert wanted(queue) == episode
    queue.wait("2-gpu-b", "done")
    assert wanted(queue) is None


def test_a_wait_that_is_over_without_a_start_is_told_and_the_next_is_another(queue: Queue) -> None:
    with server(queue):
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        first = wanted(queue)
        queue.ask("CancelJob", "s", "1-gpu-a")
        eventually(lambda: queue.events(event="gpu-wait-end"), "its end")
        queue.put("2-gpu-b", "true")
        queue.wait_reason("2-gpu-b", "foreign")
        eventually(lambda: wanted(queue) not in (None, first), "the second wait")
    queue.wait("2-gpu-b", "done")
    words = [event for event, _ in waits(queue)]
    assert words == ["gpu-wait", "gpu-wait-end", "gpu-wait"]


def test_a_controller_that_is_killed_is_followed_by_one_that_tells_the_wait_anew(
    queue: Queue,
) -> None:
    with server(queue):
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        first = wanted(queue)
        queue.kill()
        queue.start()
        eventually(lambda: wanted(queue) not in (None, first), "the wait, told anew")
        assert queue.stop() == 0
        assert wanted(queue) is None
        queue.start()
        eventually(lambda: wanted(queue) is not None, "the wait, told a third time")
    queue.wait("1-gpu-a", "done")


def test_another_process_takes_over_and_is_another_episode(queue: Queue) -> None:
    with server(queue) as first:
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        episode = wanted(queue)
        with server(queue):
            first.kill()
            first.wait()
            eventually(lambda: wanted(queue) not in (None, episode), "the second process's wait")
            assert queue.reason("1-gpu-a") == "foreign"
    queue.wait("1-gpu-a", "done")


def test_a_process_of_that_name_that_a_job_started_is_the_jobs_own(queue: Queue) -> None:
    config = queue.manager.home / ".config/sdqueue/sdqueue.toml"
    config.write_text(f"{CONFIG}slots = 2\n")
    assert queue.process
    queue.process.send_signal(signal.SIGHUP)
    eventually(lambda: queue.ask("ListLanes")[1]["slots"] == 2, "two slots")
    queue.put("1-gpu-a", f"exec {queue.manager.home}/{NAME} 1000")
    queue.wait_running("1-gpu-a")
    queue.put("2-gpu-b", "true")
    queue.wait("2-gpu-b", "done")
    assert waits(queue) == []


def test_nobody_is_stopped_and_nothing_is_looked_at_where_nothing_waits(queue: Queue) -> None:
    with server(queue) as process:
        queue.put("1-cpu-a", "true")
        queue.wait("1-cpu-a", "done")
        assert waits(queue) == []
        queue.put("2-gpu-b", "true")
        queue.wait_reason("2-gpu-b", "foreign")
        assert process.poll() is None
