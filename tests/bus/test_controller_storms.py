"""The manager is executed anew, its bus dies, it ends: again and again, in the middle of the work.

Whatever an answer that never came may have meant, each job runs once and is settled once.
"""

from collections.abc import Iterator

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.tools import rounds
from tests.harness.waiting import eventually

RAN = 'echo ran >>"$STATE_DIRECTORY/ran"; '


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose controller runs."""
    with Queue(manager) as running:
        yield running


def put_some(queue: Queue, count: int) -> list[str]:
    """Queue short jobs of every lane, some of them with checks, and return their names."""
    lanes = ("cpu", "net", "gpu")
    names = [f"{number}-{lanes[number % 3]}-x" for number in range(count)]
    for number, name in enumerate(names):
        checks = ('DONE_IF: [ -e "$STATE_DIRECTORY/ran" ]',) if number % 2 else ()
        queue.put(name, f"{RAN} sleep 0.05", *checks)
    return names


def wait_progress(queue: Queue, names: list[str]) -> None:
    """Wait until one more job has left the queue, or none is left."""

    def left() -> int:
        return sum(queue.state(name) in ("queue", "running") for name in names)

    before = left()
    eventually(lambda: left() < before or not before, "another job to end")


def check_all(queue: Queue, names: list[str]) -> None:
    """See that each job ran once and was settled once."""
    for name in names:
        queue.wait(name, "done")
        assert (queue.work(name) / "ran").read_text().split() == ["ran"], queue.events(name)
        assert queue.words(name).count("done") == 1
        assert queue.words(name).count("retry") == 0
    eventually(
        lambda: not any(lane["occupants"] for lane in queue.ask("ListLanes")),
        "every slot to be free",
    )


def test_a_storm_of_reexecutions_loses_doubles_and_spends_nothing(queue: Queue) -> None:
    names = put_some(queue, rounds(18, 200))
    for _ in range(rounds(8, 100)):
        wait_progress(queue, names)
        queue.manager.reexec()
    check_all(queue, names)


def test_a_bus_that_dies_again_and_again_loses_doubles_and_spends_nothing(queue: Queue) -> None:
    assert isinstance(queue.manager, PrivateManager)
    names = put_some(queue, rounds(12, 100))
    for _ in range(rounds(3, 30)):
        wait_progress(queue, names)
        queue.manager.kill_bus()
        queue.manager.start_bus()
    check_all(queue, names)


def test_a_manager_that_ends_under_a_living_controller_costs_no_attempt(queue: Queue) -> None:
    assert isinstance(queue.manager, PrivateManager)
    queue.put(
        "1-cpu-a", 'echo "$SDQUEUE_ATTEMPT" >>"$HOME/began"; until [ -e "$HOME/go" ]; do :; done'
    )
    queue.put("2-cpu-b", "true")
    queue.wait_running("1-cpu-a")
    queue.manager.restart()
    eventually(lambda: queue.words("1-cpu-a")[-2:] == ["recovered", "start"], "its second start")
    (queue.manager.home / "go").touch()
    queue.wait("1-cpu-a", "done")
    queue.wait("2-cpu-b", "done")
    assert (queue.manager.home / "began").read_text().split() == ["1", "1"]
