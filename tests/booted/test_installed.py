"""Installed on a booted machine and rebooted under load: up each time, and nothing is lost."""

import json
from typing import NamedTuple

import pytest

from tests.harness.container import Container
from tests.harness.waiting import eventually

JOB = """\
#!/bin/bash
# LANE: gpu
# DONE_IF: test -e ~/out
# REQUIRES: test -e ~/model
# MEMORY: size(/home/anna/model)+10%
# DISK: 1M /tmp
id -un >~/out
test -w "$STATE_DIRECTORY"
"""
TELEMETRY = """\
[Unit]
After=multi-user.target
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
JOBS = TELEMETRY.replace("After=multi-user.target", "After=a9-telemetry.service")


def states(container: Container) -> dict[str, str]:
    rows = json.loads(container.run(["sdqueue", "list", "--json=short"]).stdout)
    return {row["name"]: row["state"] for row in rows}


def count(container: Container, job: str, event: str) -> int:
    lines = container.run(["sdqueue", "events", "-n", "all", "--json=short", job]).stdout
    return [each["event"] for each in json.loads(lines)].count(event)


def journal(container: Container) -> str:
    """Return what the controller said last, for the message of a failed test."""
    ask = ["journalctl", "-b", "-u", "sdqueue.service", "-n", "60"]
    return container.run(ask, check=False).stdout


def install(container: Container) -> None:
    done = container.run(["sdqueue", "install"], check=False)
    assert done.returncode == 0, done.stdout + done.stderr + journal(container)


def submit(container: Container, name: str, *command: str) -> None:
    container.run(["sdqueue", "submit", f"--name={name}", "--", *command])


def problems(container: Container) -> list[str]:
    """Return what doctor finds; that these machines have their disk in memory is left out."""
    found = json.loads(container.run(["sdqueue", "doctor", "--json=short"], check=False).stdout)
    bad = (each for each in found if each["level"] == "problem")
    return [
        f"{each['check']}: {each['text']}" for each in bad if " is on tmpfs" not in each["text"]
    ]


def assert_up(container: Container) -> None:
    """Hold that all that boot should start was started, and that the queue answers."""
    assert container.run(["systemctl", "is-system-running"], check=False).stdout == "running\n"
    assert container.show("sdqueue.service", "ActiveState") == "active"
    assert container.show("sdqueue.service", "NRestarts") == "0"
    for lane in ("cpu", "gpu", "net"):
        source = container.show(f"sdqueue-lane-{lane}.target", "FragmentPath")
        assert source == f"/run/systemd/generator/sdqueue-lane-{lane}.target"
    if int(container.version) >= 258:
        assert container.show("sdqueue-gpu.slice", "ConcurrencyHardMax") == "1"
    container.run(["busctl", "status", "org.sdqueue1"])
    planned = container.run(["sdqueue", "plan"], check=False)
    assert planned.returncode == 0, planned.stderr + journal(container)
    assert problems(container) == []


def assert_nothing_was_dropped(container: Container) -> None:
    """Hold that PID 1 started all that was asked for: a dropped start job leaves nothing failed."""
    lines = container.run(["journalctl", "-b", "_PID=1", "-o", "cat"]).stdout
    assert "Startup finished" in lines
    assert "ordering cycle" not in lines


class Rebooted(NamedTuple):
    """What came of some reboots under load, in numbers."""

    reboots: int
    power_cuts: int
    recovered: int
    starts: int
    done: int


def reboot_under_load(container: Container, reboots: int) -> Rebooted:
    """Install, then reboot with one job running and others waiting; hold what must be each time.

    Every other reboot is a power cut. At the end the jobs are let go, and all are done, once.
    """
    jobs_dir = container.root / "etc/sdqueue/jobs.d"
    jobs_dir.mkdir(parents=True)
    (jobs_dir.parent / "sdqueue.toml").write_text("interrupted_max = 1000\n")
    (jobs_dir / "yearly.job").write_text("# LANE: cpu\n# ON_CALENDAR: *-01-01\ntouch /srv/yearly\n")
    install(container)
    assert_up(container)
    submit(container, "1-gpu-long", "sh", "-c", "until test -e /srv/go; do sleep 0.2; done")
    submit(container, "2-gpu-next", "touch", "/srv/next")
    submit(container, "3-net-next", "touch", "/srv/net")
    eventually(lambda: states(container)["1-gpu-long"] == "running", "the job runs")
    for reboot in range(1, reboots + 1):
        if reboot % 2:
            container.power_cut()
        else:
            container.reboot()
        assert_up(container)
        assert_nothing_was_dropped(container)
        eventually(lambda: states(container)["1-gpu-long"] == "running", "the job runs again")
        assert count(container, "1-gpu-long", "recovered") == reboot
        assert states(container)["2-gpu-next"] in ("queued", "done")
        assert container.show("sdqueue-submit-yearly.timer", "ActiveState") == "active"
    (container.root / "srv/go").touch()
    container.run(["systemctl", "start", "sdqueue-submit-yearly.service"])
    container.run(["sdqueue", "wait", "--all"])
    assert set(states(container).values()) == {"done"}
    assert count(container, "1-gpu-long", "done") == 1
    assert (container.root / "srv/yearly").exists()
    return Rebooted(
        reboots,
        (reboots + 1) // 2,
        count(container, "1-gpu-long", "recovered"),
        count(container, "1-gpu-long", "start"),
        len(states(container)),
    )


def test_the_queue_is_up_after_each_reboot_and_recovers_its_jobs(container: Container) -> None:
    rebooted = reboot_under_load(container, 2)
    assert rebooted == Rebooted(reboots=2, power_cuts=1, recovered=2, starts=3, done=4)


def test_beside_the_classic_loop_install_refuses_and_writes_nothing(container: Container) -> None:
    units = container.root / "etc/systemd/system"
    (units / "a9-telemetry.service").write_text(TELEMETRY)
    (units / "a9-jobs.service").write_text(JOBS)
    container.run(["systemctl", "daemon-reload"])
    container.run(["systemctl", "enable", "a9-telemetry.service", "a9-jobs.service"])
    done = container.run(["sdqueue", "install"], check=False)
    assert done.returncode == 1
    assert "error[ordering-cycle]" in done.stderr
    assert "a9-telemetry.service:2" in done.stderr
    assert container.show("sdqueue.service", "LoadState") == "not-found"
    assert [each for each in problems(container) if each.startswith("boot: a9-")]


@pytest.mark.parametrize("container", [("257", "unified")], indirect=True, ids=["257"])
def test_everybody_may_look_and_root_alone_may_change(container: Container) -> None:
    install(container)
    container.add_user("anna")
    submit(container, "1-cpu-long", "sleep", "infinity")
    eventually(lambda: states(container)["1-cpu-long"] == "running", "the job runs")
    call = ["busctl", "--system", "call", "org.sdqueue1", "/org/sdqueue1", "org.sdqueue1.Manager"]
    looked = container.run([*call, "Why", "s", "1-cpu-long"], user="anna")
    assert "it runs" in looked.stdout
    for request in (("CancelJob", "s", "1-cpu-long"), ("PauseLane", "sb", "cpu", "true")):
        done = container.run([*call, *request], user="anna", check=False)
        assert done.returncode != 0
        assert "may not" in done.stderr
    pid = container.show("sdqueue.service", "MainPID")
    container.run(["systemctl", "reload", "sdqueue.service"])
    container.run(["sdqueue", "plan"])
    assert container.show("sdqueue.service", "MainPID") == pid
    container.run(["sdqueue", "upgrade"])
    assert container.show("sdqueue.service", "MainPID") != pid
    container.run(["sdqueue", "uninstall"])
    assert container.show("sdqueue-job-1-cpu-long.service", "ActiveState") == "activating"
    assert container.show("sdqueue.service", "LoadState") == "not-found"
    assert (container.root / "var/lib/sdqueue/running/1-cpu-long.job").exists()


@pytest.mark.parametrize(
    "container", [("252", "unified"), ("262", "unified")], indirect=True, ids=["252", "262"]
)
def test_the_hardened_controller_can_do_all_its_work(container: Container) -> None:
    install(container)
    container.add_user("anna")
    (container.root / "home/anna/model").write_bytes(b"weights")
    (container.root / "srv/1-gpu-a.job").write_text(JOB)
    # Aside first: in queue/ it would be root's job until install(1) has changed its owner.
    aside = "/var/lib/sdqueue/1-gpu-a.aside"
    container.run(["install", "--owner=anna", "--mode=600", "/srv/1-gpu-a.job", aside])
    container.run(["mv", aside, "/var/lib/sdqueue/queue/1-gpu-a.job"])
    done = container.run(["sdqueue", "wait", "1-gpu-a"], check=False)
    assert done.returncode == 0, done.stderr + journal(container)
    assert (container.root / "home/anna/out").read_text() == "anna\n"
    generator = container.root / "usr/local/lib/systemd/system-generators/sdqueue-generator"
    generator.unlink()
    container.run(["systemctl", "daemon-reload"])
    container.run(["systemctl", "restart", "sdqueue.service"])
    source = container.show("sdqueue-lane-gpu.target", "FragmentPath")
    assert source == "/run/systemd/system/sdqueue-lane-gpu.target", journal(container)


@pytest.mark.parametrize("container", [("262", "unified")], indirect=True, ids=["262"])
def test_a_user_who_lingers_has_a_queue_after_a_reboot_without_a_login(
    container: Container,
) -> None:
    container.add_user("anna", linger=True)
    done = container.run(["sdqueue", "install"], user="anna", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    container.run(["sdqueue", "submit", "--name=1-cpu-a", "--", "sleep", "infinity"], user="anna")
    container.reboot()
    running = ["systemctl", "--user", "is-active", "sdqueue-job-1-cpu-a.service"]
    eventually(
        lambda: container.run(running, user="anna", check=False).stdout == "activating\n",
        "the job of the user runs again",
    )
