"""The box does not go to sleep under a job: logind's inhibitor lock, on a booted machine."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import container as containers
from tests.harness.container import Container
from tests.harness.tools import require
from tests.harness.waiting import LIMIT_SEC, eventually

POLICY = Path(__file__).parents[2] / "units/dbus-1/org.sdqueue1.conf"


@pytest.fixture(scope="module")
def machine() -> Iterator[Container]:
    """Give one machine, whose lanes are cpu as it is and net without a lock on sleep."""
    require(containers.missing("252"))
    with Container("252") as booted:
        config = booted.root / "etc/sdqueue"
        config.mkdir(parents=True, exist_ok=True)
        (config / "sdqueue.toml").write_text("[lane.net]\ninhibit_sleep = false\n")
        policy = booted.root / "etc/dbus-1/system.d/org.sdqueue1.conf"
        policy.write_bytes(POLICY.read_bytes())
        bus = ["org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus"]
        booted.run(["busctl", "call", *bus, "ReloadConfig"])
        yield booted


@pytest.fixture
def daemon(machine: Container) -> Iterator["subprocess.Popen[str]"]:
    """Run a controller."""
    with machine.popen(["sdqueue", "daemon"], stderr=subprocess.DEVNULL) as process:
        eventually(lambda: call(machine, "plan").returncode == 0, "the controller to answer")
        yield process
        process.terminate()
        process.wait(LIMIT_SEC)


def call(machine: Container, *words: str) -> "subprocess.CompletedProcess[str]":
    return machine.run(["sdqueue", *words], check=False)


def locks(machine: Container) -> list[tuple[str, str]]:
    """Return what sdqueue inhibits, and how, as logind has it."""
    logind = ["org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"]
    listed = machine.run(["busctl", "--json=short", "call", *logind, "ListInhibitors"])
    (found,) = json.loads(listed.stdout)["data"]
    return [(what, mode) for what, who, _why, mode, *_ in found if who == "sdqueue"]


@pytest.mark.usefixtures("daemon")
def test_the_lock_is_held_while_a_job_runs_and_gone_after(machine: Container) -> None:
    assert locks(machine) == []
    for name in ("a", "b"):
        assert call(machine, "submit", "--name", name, "--", "sleep", "1000").returncode == 0
        eventually(lambda: locks(machine) == [("sleep:idle", "block")], "the lock")
        assert call(machine, "cancel", name).returncode == 0
        eventually(lambda: locks(machine) == [], "it to be released")
    assert "notice" not in call(machine, "events", "--json=short").stdout


@pytest.mark.usefixtures("daemon")
def test_a_lane_that_does_not_ask_for_it_does_without(machine: Container) -> None:
    assert call(machine, "submit", "--name", "n", "--lane", "net", "--", "sleep", "1000")
    running = "sdqueue-job-n.service"
    eventually(lambda: machine.show(running, "ActiveState") == "activating", "the job")
    assert call(machine, "submit", "--name", "c", "--", "sleep", "1000").returncode == 0
    eventually(lambda: len(locks(machine)) == 1, "the lock for the other lane")
    call(machine, "cancel", "c")
    eventually(lambda: locks(machine) == [], "it to be released, though n runs")
    assert machine.show(running, "ActiveState") == "activating"
    call(machine, "cancel", "n")


def test_a_machine_without_logind_runs_jobs_and_says_it_once(machine: Container) -> None:
    machine.run(["systemctl", "mask", "--now", "systemd-logind.service"])
    machine.run(["systemctl", "daemon-reload"])
    with machine.popen(["sdqueue", "daemon"], stderr=subprocess.DEVNULL) as process:
        try:
            for name in ("x", "y"):
                assert call(machine, "run", "--name", name, "--", "true").returncode == 0
            events = call(machine, "events", "--json=short", "--event=notice").stdout
            assert events.count('"notice"') == 1
            assert "may go to sleep" in events
            assert "may go to sleep" in call(machine, "status").stdout
        finally:
            process.terminate()
            process.wait(LIMIT_SEC)
            machine.run(["systemctl", "unmask", "systemd-logind.service"])
