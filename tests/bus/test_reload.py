"""The configuration, read anew at SIGHUP by a controller at work."""

import signal
from collections.abc import Iterator

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually

TPU = '[lane.tpu]\nexcludes = ["net"]\n'


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose controller runs."""
    with Queue(manager) as running:
        yield running


def configure(queue: Queue, text: str) -> None:
    """Write a configuration, and have the controller read it."""
    config = queue.manager.home / ".config/sdqueue"
    config.mkdir(parents=True, exist_ok=True)
    (config / "sdqueue.toml").write_text(text)
    assert queue.process
    queue.process.send_signal(signal.SIGHUP)


def until_go(queue: Queue) -> str:
    return f"until [ -e {queue.manager.home}/go ]; do sleep 0.05; done"


def lanes(queue: Queue) -> dict[str, int]:
    """Return the lanes' slots, as the controller has them."""
    return {row["name"]: row["slots"] for row in queue.ask("ListLanes")}


def test_a_new_lane_takes_jobs_that_waited_for_it_and_excludes_what_it_says(queue: Queue) -> None:
    queue.put("1-tpu-a", "sleep 1000")
    queue.wait_reason("1-tpu-a", "bad-file")
    configure(queue, TPU)
    unit = queue.wait_running("1-tpu-a")
    assert "sdqueue-lane-net.target" in queue.manager.show(unit, "Conflicts")
    queue.put("2-net-b", "true")
    queue.wait_reason("2-net-b", "excluded-lane")
    assert queue.events(event="error") == []


def test_a_jobs_defaults_change_while_it_waits_and_a_run_goes_on_as_it_began(queue: Queue) -> None:
    queue.put("1-cpu-a", until_go(queue))
    queue.wait_running("1-cpu-a")
    queue.put("2-cpu-b", 'test "$SEEN" = yes', "RETRIES: 1")
    queue.wait_reason("2-cpu-b", "lane-taken")
    configure(queue, '[lane.cpu.job]\nENV = "SEEN=yes"\n[lane.gpu]\nslots = 3\n')
    eventually(lambda: lanes(queue)["gpu"] == 3, "the new slots")
    (queue.manager.home / "go").touch()
    queue.wait("2-cpu-b", "done")
    assert queue.words("1-cpu-a") == ["start", "done"]


def test_an_error_is_an_event_with_its_place_and_the_last_good_configuration_stays(
    queue: Queue,
) -> None:
    configure(queue, TPU)
    eventually(lambda: "tpu" in lanes(queue), "the lane")
    configure(queue, TPU + "slots = 0\n")
    (error,) = eventually(lambda: queue.events(event="error"), "the error")
    assert "sdqueue.toml:3: " in error["what"]
    assert "stays in force" in error["what"]
    assert lanes(queue)["tpu"] == 1
    configure(queue, TPU + "slots = 2\n")
    eventually(lambda: lanes(queue)["tpu"] == 2, "the mended one")
    assert len(queue.events(event="error")) == 1


def test_a_lane_that_is_taken_out_stays_until_its_run_has_ended(queue: Queue) -> None:
    configure(queue, TPU)
    queue.put("1-tpu-a", until_go(queue))
    queue.wait_running("1-tpu-a")
    configure(queue, "[lane.gpu]\nslots = 2\n")
    eventually(lambda: lanes(queue)["gpu"] == 2, "the new configuration")
    queue.put("2-net-b", "true")
    queue.wait_reason("2-net-b", "excluded-lane")
    (queue.manager.home / "go").touch()
    queue.wait("1-tpu-a", "done")
    queue.wait("2-net-b", "done")
    assert "tpu" not in lanes(queue)


def test_a_run_is_collected_by_a_controller_that_knows_its_lane_no_more(queue: Queue) -> None:
    configure(queue, TPU)
    queue.put("1-tpu-a", f"{until_go(queue)}; exit 3", "DONE_IF: false", "RETRIES: 2")
    queue.wait_running("1-tpu-a")
    queue.kill()
    (queue.manager.home / ".config/sdqueue/sdqueue.toml").write_text("")
    queue.start()
    eventually(lambda: queue.words("1-tpu-a")[-1:] == ["reattached"], "the reattachment")
    (queue.manager.home / "go").touch()
    queue.wait_reason("1-tpu-a", "bad-file")
    assert "retry" in queue.words("1-tpu-a")
    assert queue.state("1-tpu-a") == "queue"


def test_an_error_at_the_start_is_an_event_too(queue: Queue) -> None:
    queue.stop()
    config = queue.manager.home / ".config/sdqueue"
    config.mkdir(parents=True)
    (config / "sdqueue.toml").write_text("default_lane = 7\n")
    queue.start()
    (error,) = eventually(lambda: queue.events(event="error"), "the error")
    assert "sdqueue.toml:1: " in error["what"]
    assert "default lanes are in force" in error["what"]
