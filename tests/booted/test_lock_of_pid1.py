"""What the lanes rest on: PID 1 refuses an overlap, stops nothing for it, and forgets the refused.

No product code: systemd alone is asked, on every version.
"""

import pytest

from tests.harness.container import Container
from tests.harness.waiting import eventually

LANE_TARGET = "[Unit]\nDescription=lane {lane}\nRefuseManualStart=yes\nIgnoreOnIsolate=yes\n"
BUSY = "while [ -e /run/busy ]; do read -t 0.05 <>/run/never; done; true"


@pytest.fixture
def lanes(container: Container) -> Container:
    """Give a machine with two lane targets, `net` and `gpu`, that nothing has started yet."""
    for lane in ("net", "gpu"):
        file = container.root / f"etc/systemd/system/lane-{lane}.target"
        file.write_text(LANE_TARGET.format(lane=lane))
    container.run(["systemctl", "daemon-reload"])
    container.run(["mkfifo", "/run/never"])
    container.run(["touch", "/run/busy"])
    return container


def start(machine: Container, name: str, own: str, excluded: str, command: str) -> str:
    """Ask for a oneshot of lane `own`, mode fail; return PID 1's error, "" when it agreed."""
    exec_start = ["a(sasb)", "1", "/bin/bash", "3", "/bin/bash", "-c", command, "false"]
    properties: list[list[str]] = [
        ["Type", "s", "oneshot"],
        ["Requires", "as", "1", f"lane-{own}.target"],
        ["After", "as", "2", f"lane-{own}.target", f"lane-{excluded}.target"],
        ["Conflicts", "as", "1", f"lane-{excluded}.target"],
        ["IgnoreOnIsolate", "b", "true"],
        ["ExecStart", *exec_start],
    ]
    flat = [word for one in properties for word in one]
    manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1"]
    call = ["org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))"]
    words = [name, "fail", str(len(properties)), *flat, "0"]
    done = machine.run(["busctl", "call", "--", *manager, *call, *words], check=False)
    return done.stderr.strip()


def running(machine: Container, unit: str) -> bool:
    """Return whether the unit's start job is in hand and its process there."""
    pid = machine.show(unit, "MainPID")
    return machine.show(unit, "ActiveState") == "activating" and pid != "0"


def test_an_overlap_is_refused_and_nothing_is_stopped(lanes: Container) -> None:
    assert start(lanes, "n1.service", "net", "gpu", BUSY) == ""
    pid = lanes.show("n1.service", "MainPID")
    refusal = start(lanes, "g1.service", "gpu", "net", "true")
    assert "destructive" in refusal
    assert "n1.service" in refusal
    assert running(lanes, "n1.service")
    assert lanes.show("n1.service", "MainPID") == pid
    assert lanes.show("lane-gpu.target", "ActiveState") == "inactive"


def test_the_refused_unit_is_forgotten_at_once(lanes: Container) -> None:
    start(lanes, "n1.service", "net", "gpu", BUSY)
    for _ in range(3):
        assert "destructive" in start(lanes, "g1.service", "gpu", "net", "true")
        assert lanes.show("g1.service", "LoadState") == "not-found"


def test_the_excluded_lane_starts_when_the_run_has_ended(lanes: Container) -> None:
    start(lanes, "n1.service", "net", "gpu", BUSY)
    assert "destructive" in start(lanes, "g1.service", "gpu", "net", BUSY)
    (lanes.root / "run/busy").unlink()
    eventually(lambda: lanes.show("n1.service", "LoadState") == "not-found", "the end of n1")
    assert start(lanes, "g1.service", "gpu", "net", "touch /run/gpu-ran") == ""
    eventually((lanes.root / "run/gpu-ran").exists, "the run of g1")


def test_a_lane_of_its_own_may_run_beside(lanes: Container) -> None:
    start(lanes, "n1.service", "net", "gpu", BUSY)
    assert start(lanes, "n2.service", "net", "gpu", BUSY) == ""
    assert running(lanes, "n1.service")
    assert running(lanes, "n2.service")


@pytest.mark.parametrize("again", ["daemon-reload", "daemon-reexec"])
def test_the_start_job_outlives(lanes: Container, again: str) -> None:
    start(lanes, "n1.service", "net", "gpu", BUSY)
    job, pid = lanes.show("n1.service", "Job"), lanes.show("n1.service", "MainPID")
    lanes.run(["systemctl", again])
    assert lanes.show("n1.service", "Job") == job
    assert lanes.show("n1.service", "MainPID") == pid
    assert "destructive" in start(lanes, "g1.service", "gpu", "net", "true")


def test_a_person_can_not_start_a_lane_by_hand(lanes: Container) -> None:
    start(lanes, "n1.service", "net", "gpu", BUSY)
    assert lanes.run(["systemctl", "start", "lane-gpu.target"], check=False).returncode != 0
    assert running(lanes, "n1.service")


def test_isolate_leaves_the_run_alone(lanes: Container) -> None:
    start(lanes, "n1.service", "net", "gpu", BUSY)
    pid = lanes.show("n1.service", "MainPID")
    lanes.run(["systemd-run", "--unit=bystander", "sleep", "infinity"])
    lanes.run(["systemctl", "isolate", "multi-user.target"])
    assert lanes.show("bystander.service", "ActiveState") == "inactive"
    assert running(lanes, "n1.service")
    assert lanes.show("n1.service", "MainPID") == pid
