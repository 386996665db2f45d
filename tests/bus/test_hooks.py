"""ON_SUCCESS and ON_FAILURE on a real manager: when units start, and what their failure changes."""

import json
import sys
from collections.abc import Iterator

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually

PROGRAM = [sys.executable, "-m", "sdqueue", "--user"]
TEMPLATE = """
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo "%I" >>{file}'
"""
FAILING = """
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'exit 3'
"""


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose manager has a hook that notes its instance, and one that fails."""
    units = manager.runtime_dir / "systemd/user"
    units.mkdir(parents=True, exist_ok=True)
    noted = manager.home / "noted"
    (units / "note@.service").write_text(TEMPLATE.format(file=noted))
    (units / "bad.service").write_text(FAILING)
    manager.reload()
    with Queue(manager) as running:
        yield running


def noted(queue: Queue) -> list[str]:
    file = queue.manager.home / "noted"
    return sorted(file.read_text().splitlines()) if file.exists() else []


def wait_noted(queue: Queue, *jobs: str) -> None:
    eventually(lambda: noted(queue) == sorted(jobs), f"the hooks of {jobs}")


def test_a_job_that_is_done_starts_its_hook_with_its_name_as_instance(queue: Queue) -> None:
    queue.put("1-cpu-a b%c", "true", "ON_SUCCESS: note@.service", "ON_FAILURE: bad.service")
    queue.wait("1-cpu-a b%c", "done")
    wait_noted(queue, "1-cpu-a b%c")
    assert queue.events(event="error") == []


def test_a_skipped_job_is_done_too_and_a_failed_attempt_is_not_the_end(queue: Queue) -> None:
    queue.put("1-cpu-skip", "true", "DONE_IF: true", "ON_SUCCESS: note@.service")
    queue.put("2-cpu-fail", "exit 1", "RETRIES: 3", "ON_FAILURE: note@.service")
    queue.wait("2-cpu-fail", "failed")
    wait_noted(queue, "1-cpu-skip", "2-cpu-fail")


def test_no_hook_is_started_for_a_job_that_was_set_aside(queue: Queue) -> None:
    headers = ("ON_SUCCESS: note@.service", "ON_FAILURE: note@.service")
    queue.put("1-cpu-long", "sleep 1000", *headers)
    queue.wait_running("1-cpu-long")
    queue.ask("CancelJob", "s", "1-cpu-long")
    queue.wait("1-cpu-long", "parked")
    queue.put("2-cpu-next", "true", *headers)
    wait_noted(queue, "2-cpu-next")


def test_a_lanes_hook_is_started_for_each_of_its_jobs(queue: Queue) -> None:
    queue.stop()
    config = queue.manager.home / ".config/sdqueue"
    config.mkdir(parents=True)
    (config / "sdqueue.toml").write_text('[lane.net]\non_success = ["note@.service"]\n')
    queue.start()
    queue.put("1-net-a", "true")
    queue.put("2-net-b", "true")
    queue.put("3-cpu-c", "true")
    queue.wait("3-cpu-c", "done")
    wait_noted(queue, "1-net-a", "2-net-b")


@pytest.mark.parametrize(
    ("hook", "words"),
    [("bad.service", "it failed"), ("nothing.service", "could not be started")],
)
def test_a_hook_that_fails_is_an_event_and_in_status_and_changes_nothing_for_the_job(
    queue: Queue, hook: str, words: str
) -> None:
    queue.put("1-cpu-a", "true", f"ON_SUCCESS: {hook}")
    (error,) = eventually(lambda: queue.events(event="error"), "the error")
    assert error["job"] == "1-cpu-a"
    assert error["unit"] == hook
    assert words in error["what"]
    assert queue.words("1-cpu-a") == ["start", "done", "error"]
    assert queue.state("1-cpu-a") == "done"
    queue.put("2-cpu-b", "true", f"ON_SUCCESS: {hook}")
    eventually(lambda: len(queue.events(event="error")) == 2, "the second error")
    status = json.loads(queue.manager.run([*PROGRAM, "status", "--json=short"]).stdout)
    notices = [text for text in status["controller"]["notices"] if "hook" in text]
    assert len(notices) == 1
    assert notices[0].startswith("2 hooks failed, the last one")
    assert "Notice: 2 hooks failed" in queue.manager.run([*PROGRAM, "status"]).stdout


def test_hooks_of_jobs_that_end_while_the_controller_is_away_are_started_by_the_next(
    queue: Queue,
) -> None:
    go = queue.manager.home / "go"
    body = f"until [ -e {go} ]; do sleep 0.05; done"
    queue.put("1-cpu-a", body, "ON_SUCCESS: note@.service")
    unit = queue.wait_running("1-cpu-a")
    queue.kill()
    go.touch()
    eventually(lambda: queue.manager.show(unit, "ActiveState") == "inactive", "its end")
    assert noted(queue) == []
    queue.start()
    wait_noted(queue, "1-cpu-a")
