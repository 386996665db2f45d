"""Lanes that exclude each other never overlap, whoever starts what: from the kernel's view."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.population import Population, pids_in
from tests.harness.queue import Queue
from tests.harness.tools import rounds
from tests.harness.waiting import eventually

INTRUDER = Path(__file__).with_name("intruder.py")
STAMP = 'echo "begin $EPOCHREALTIME" >>"$HOME/gpu"; {}; echo "end $EPOCHREALTIME" >>"$HOME/gpu"'


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    """Give a queue whose controller runs, and whose runs are killed 2 s after they are asked."""
    dropin = manager.home / ".config/systemd/user/sdqueue-job-.service.d/soon.conf"
    dropin.parent.mkdir(parents=True)
    dropin.write_text("[Service]\nTimeoutStopSec=2\n")
    manager.reload()
    with Queue(manager) as running:
        yield running


def spans(file: Path) -> list[tuple[float, float]]:
    """Read from when to when each run of a lane was there, by what it wrote itself."""
    lines = file.read_text().split("\n") if file.exists() else []
    begins = [float(line.split()[1]) for line in lines if line.startswith("begin")]
    ends = [float(line.split()[1]) for line in lines if line.startswith("end")]
    return list(zip(sorted(begins), sorted(ends), strict=True))


def test_a_client_that_ignores_the_controller_overlaps_and_stops_no_run(queue: Queue) -> None:
    manager = queue.manager
    assert isinstance(manager, PrivateManager)
    jobs = [f"{number}-gpu-x" for number in range(rounds(10, 150))]
    for job in jobs:
        queue.put(job, STAMP.format("sleep 0.3"), "RETRIES: 1")
    queue.wait_running(jobs[0])
    theirs = manager.home / "net"
    count = rounds(300, 5000)
    with Population(manager, "gpu", "net") as seen:
        command = [sys.executable, str(INTRUDER), str(count), str(theirs)]
        said = manager.run(command, env={"PYTHONPATH": str(INTRUDER.parents[2])}, limit_sec=600)
        answers = json.loads(said.stdout)
        for job in jobs:
            queue.wait(job, "done", limit_sec=300)
        eventually(lambda: not pids_in(seen.other), "the end of the intruders")
    assert sum(answers.values()) == count
    assert answers.get("TransactionIsDestructive", 0) > 0, answers
    assert seen.counts["gpu"] > 0
    assert seen.overlaps == []
    for begin, end in spans(manager.home / "gpu"):
        assert not any(begin < other[1] and other[0] < end for other in spans(theirs))
    assert [queue.words(job) for job in jobs] == [["start", "done"]] * len(jobs)


SLOW_TO_DIE = 'trap "sleep 1.5; exit 1" TERM; sleep 1000 & wait'
DEAF = 'trap "" TERM; while :; do sleep 0.1; done'
LEAVES_CHILD = "setsid bash -c 'trap \"\" TERM; while :; do sleep 0.1; done' & sleep 0.3; wait"
LEFT_BEHIND = "setsid bash -c 'trap \"\" TERM; while :; do sleep 0.1; done' & sleep 0.3; exit 0"


@pytest.mark.parametrize(
    ("body", "headers", "how", "state"),
    [
        pytest.param(SLOW_TO_DIE, (), "cancel", "parked", id="cancelled, slow to die"),
        pytest.param(SLOW_TO_DIE, (), "stop", "parked", id="stopped by hand, slow to die"),
        pytest.param(LEAVES_CHILD, (), "cancel", "parked", id="cancelled, with a deaf child"),
        pytest.param(DEAF, ("TIMEOUT: 1s", "RETRIES: 1"), "", "failed", id="deaf, out of time"),
        pytest.param(LEFT_BEHIND, (), "", "done", id="ended, with a deaf child left behind"),
    ],
)
def test_the_excluded_lane_starts_only_when_the_cgroup_is_empty(
    queue: Queue, body: str, headers: tuple[str, ...], how: str, state: str
) -> None:
    manager = queue.manager
    assert isinstance(manager, PrivateManager)
    with Population(manager, "net", "gpu") as seen:
        queue.put("1-net-a", body, *headers)
        eventually(lambda: "start" in queue.words("1-net-a"), "its start")
        queue.put("2-gpu-b", "sleep 0.3")
        unit = "sdqueue-job-1-net-a.service"
        if how == "cancel":
            queue.ask("CancelJob", "s", "1-net-a")
        elif how == "stop":
            manager.run(["systemctl", "--user", "stop", "--no-block", unit])
        queue.wait("1-net-a", state)
        queue.wait("2-gpu-b", "done")
    assert seen.counts["net"] > 0
    assert seen.counts["gpu"] > 0
    assert seen.overlaps == []


def test_the_watcher_sees_an_overlap_where_there_is_one(queue: Queue) -> None:
    manager = queue.manager
    assert isinstance(manager, PrivateManager)
    with Population(manager, "net", "gpu") as seen:
        for lane in ("net", "gpu"):
            run = [
                "systemd-run",
                "--user",
                "--quiet",
                f"--slice=sdqueue-{lane}.slice",
                "sleep",
                "2",
            ]
            manager.run(run)
        eventually(lambda: seen.overlaps, "the overlap")


def test_nobody_starts_a_lane_by_hand(queue: Queue) -> None:
    queue.put("1-gpu-a", 'until [ -e "$HOME/go" ]; do sleep 0.05; done')
    unit = queue.wait_running("1-gpu-a")
    start = ["systemctl", "--user", "start", "sdqueue-lane-net.target"]
    refused = queue.manager.run(start, check=False)
    assert refused.returncode != 0
    assert "may be requested by dependency only" in refused.stderr
    assert queue.manager.show(unit, "ActiveState") == "activating"
    (queue.manager.home / "go").touch()
    queue.wait("1-gpu-a", "done")
