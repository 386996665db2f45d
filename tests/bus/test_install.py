"""install, upgrade and uninstall for a user, with the manager and jobs that run meanwhile."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.waiting import eventually

LOOP = """\
[Unit]
After=default.target
Before=sdqueue.service
[Service]
ExecStart=/bin/true
[Install]
WantedBy=default.target
"""


def sdqueue(
    manager: PrivateManager, *words: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    return manager.run(["sdqueue", "--user", *words], check=check)


def jobs(manager: PrivateManager) -> dict[str, str]:
    rows = json.loads(sdqueue(manager, "list", "--json=short").stdout)
    return {row["name"]: row["state"] for row in rows}


def installed(manager: PrivateManager) -> list[str]:
    home = Path(manager.env["XDG_DATA_HOME"])
    return sorted(str(file.relative_to(home)) for file in home.rglob("*sdqueue*") if file.is_file())


def controller(manager: PrivateManager) -> str:
    return manager.show("sdqueue.service", "MainPID")


def test_installed_upgraded_under_a_running_job_and_taken_away(manager: PrivateManager) -> None:
    said = sdqueue(manager, "install")
    assert "check that sdqueue.service runs and answers on the bus\n" in said.stdout
    assert "loginctl enable-linger" in said.stderr
    assert manager.show("sdqueue.service", "ActiveState") == "active"
    assert manager.show("sdqueue.service", "UnitFileState") == "enabled"
    assert "systemd/user/sdqueue.service" in installed(manager)

    go = manager.home / "go"
    sdqueue(manager, "submit", "--name=1-cpu-long", "--", "sh", "-c", f"read x <{go}")
    subprocess.run(["mkfifo", go], check=True)
    eventually(lambda: jobs(manager)["1-cpu-long"] == "running", "the job runs")
    unit = "sdqueue-job-1-cpu-long.service"
    before = manager.show(unit, "InvocationID"), controller(manager)
    sdqueue(manager, "upgrade")
    assert manager.show(unit, "InvocationID") == before[0]
    assert controller(manager) != before[1]
    assert jobs(manager)["1-cpu-long"] == "running"
    go.write_text("\n")
    sdqueue(manager, "wait", "1-cpu-long")
    events = sdqueue(manager, "events", "--json=short", "1-cpu-long").stdout
    assert [each["event"] for each in json.loads(events)].count("done") == 1

    said = sdqueue(manager, "uninstall")
    assert "were left" in said.stderr
    assert installed(manager) == []
    assert manager.show("sdqueue.service", "LoadState") == "not-found"
    assert jobs(manager) == {"1-cpu-long": "done"}


def test_what_is_there_already_is_not_written_again(manager: PrivateManager) -> None:
    sdqueue(manager, "install")
    pid = controller(manager)
    assert not [
        line
        for line in sdqueue(manager, "install").stdout.splitlines()
        if line.startswith(("write", "replace"))
    ]
    assert controller(manager) == pid


def test_a_dry_run_and_a_boot_with_a_cycle_change_nothing(manager: PrivateManager) -> None:
    said = sdqueue(manager, "install", "--dry-run").stdout
    assert all(line.startswith("would ") for line in said.splitlines())
    assert installed(manager) == []

    config = Path(manager.env["XDG_CONFIG_HOME"]) / "systemd" / "user"
    config.mkdir(parents=True)
    (config / "late.service").write_text(LOOP)
    manager.run(["systemctl", "--user", "enable", "late.service"])
    done = sdqueue(manager, "install", check=False)
    assert done.returncode == 1
    assert "error[ordering-cycle]" in done.stderr or "error[fatal-cycle]" in done.stderr
    assert "late.service:2" in done.stderr
    assert "nothing was installed" in done.stderr
    assert installed(manager) == []


def test_a_controller_that_does_not_come_up_is_no_success(manager: PrivateManager) -> None:
    spool = Path(manager.env["XDG_STATE_HOME"]) / "sdqueue"
    spool.mkdir(parents=True)
    (spool / "schema").write_text("999\n")
    done = sdqueue(manager, "install", check=False)
    assert done.returncode == 1
    assert "sdqueue.service" in done.stderr


@pytest.mark.parametrize("words", [("--prefix=/opt",), ("--prefix=/usr",)], ids=str)
def test_a_prefix_that_nobody_looks_at(words: tuple[str, ...], manager: PrivateManager) -> None:
    assert sdqueue(manager, "install", *words, check=False).returncode == 2
