"""A job that calls sdqueue itself: it gets an answer, never a deadlock."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose controller runs."""
    with Queue(manager) as running:
        yield running


def calling(queue: Queue, words: str) -> str:
    """Write the body of a job that calls the program and keeps what came of it."""
    env = {**queue.manager.env, "PYTHONPATH": str(Path(__file__).parents[2])}
    names = ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "PYTHONPATH")
    set_env = " ".join(f"{name}='{env[name]}'" for name in names if name in env)
    call = f"env {set_env} {sys.executable} -m sdqueue --user {words}"
    return f'{call} >"$STATE_DIRECTORY/said" 2>&1; echo $? >"$STATE_DIRECTORY/status"'


def answer(queue: Queue, job: str) -> tuple[int, str]:
    """Return the status and the words that a job was given."""
    queue.wait(job, "done")
    work = queue.work(job)
    return int((work / "status").read_text()), (work / "said").read_text()


@pytest.mark.parametrize("lane", ["gpu", "net"])
def test_run_in_a_lane_that_the_job_holds_or_excludes_is_refused(queue: Queue, lane: str) -> None:
    queue.put("1-gpu-a", calling(queue, f"run --lane {lane} -- true"))
    status, said = answer(queue, "1-gpu-a")
    assert status == 1
    assert f"this job holds lane gpu, so one in lane {lane} can't start" in said
    assert list((queue.spool / "queue").iterdir()) == []


def test_run_in_another_lane_goes_through(queue: Queue) -> None:
    queue.put("1-gpu-a", calling(queue, "run --lane cpu -- echo from within"))
    status, said = answer(queue, "1-gpu-a")
    assert status == 0, said
    assert "from within" in said


@pytest.mark.parametrize("words", ["2-net-b", "--lane net", "--all", "1-gpu-a"])
def test_wait_for_what_can_not_start_before_the_job_ends_is_refused(
    queue: Queue, words: str
) -> None:
    queue.ask("PauseLane", "sb", "gpu", "true")
    queue.put("1-gpu-a", calling(queue, f"wait {words}"))
    queue.wait_reason("1-gpu-a", "paused")
    queue.put("2-net-b", "true", "AFTER_ANY: 1-gpu-a")
    queue.wait_reason("2-net-b", "after-not-done")
    queue.ask("PauseLane", "sb", "gpu", "false")
    status, said = answer(queue, "1-gpu-a")
    assert status == 1
    assert "for ever" in said
    queue.wait("2-net-b", "done")
