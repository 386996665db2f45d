"""Memory is given out once: what a running job asked for and does not use yet is not free."""

from collections.abc import Iterator

import psutil
import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose controller runs."""
    with Queue(manager) as running:
        yield running


def test_a_job_waits_for_memory_that_a_running_one_has_only_asked_for(queue: Queue) -> None:
    need = f"MEMORY: {psutil.virtual_memory().available * 6 // 10 >> 20}M"
    queue.put("1-cpu-a", f"until [ -e {queue.manager.home}/go ]; do sleep 0.05; done", need)
    queue.wait_running("1-cpu-a")
    queue.put("2-net-b", "true", need)
    queue.put("3-net-c", "true")
    queue.wait("3-net-c", "done")
    queue.wait_reason("2-net-b", "memory")
    (wait,) = queue.events("2-net-b", event="wait")
    assert "of which running jobs want" in wait["detail"]
    (queue.manager.home / "go").touch()
    queue.wait("2-net-b", "done")
