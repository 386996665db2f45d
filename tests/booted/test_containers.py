"""The harness itself: what a container promises to its tests."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.harness.container import Container, ContainerError
from tests.harness.waiting import eventually

# it runs on: journald looks the invocation up when it reads the line, perhaps too late otherwise
TALK = "echo $INVOCATION_ID; exec sleep infinity"


def test_it_is_up_when_it_is_given(container: Container) -> None:
    assert container.run(["systemctl", "is-system-running"]).stdout.strip() == "running"
    assert container.run(["systemctl", "list-jobs", "--no-legend"]).stdout.strip() in (
        "",
        "No jobs running.",
    )


def test_pid_1_is_that_systemd_in_that_layout(
    container: Container, request: pytest.FixtureRequest
) -> None:
    version, layout = request.node.callspec.params["container"]
    assert container.version == version
    kind = container.run(["stat", "--file-system", "--format=%T", "/sys/fs/cgroup"]).stdout.strip()
    assert kind == {"unified": "cgroup2fs", "hybrid": "tmpfs"}[layout]


def test_files_outlast_a_reboot_and_a_power_cut_but_processes_do_not(container: Container) -> None:
    boots = set()
    (container.root / "var/lib/kept").write_text("kept")
    for again in (container.reboot, container.power_cut, lambda: None):
        boots.add(container.run(["journalctl", "--boot", "--lines=1", "-o", "json"]).stdout)
        container.run(["systemd-run", "--unit=sleeper", "sleep", "infinity"])
        again()
        assert (container.root / "var/lib/kept").read_text() == "kept"
    assert container.show("sleeper.service", "ActiveState") == "active"
    assert len(boots) == 3


def test_a_user_with_linger_has_a_manager_also_after_a_reboot(container: Container) -> None:
    container.add_user("anna", linger=True)
    hello = ["systemd-run", "--user", "--wait", "--pipe", "--quiet", "id", "--user", "--name"]
    assert container.run(hello, user="anna").stdout == "anna\n"
    container.reboot()
    assert container.run(hello, user="anna").stdout == "anna\n"


def test_the_journal_names_unit_and_invocation(container: Container) -> None:
    container.run(["systemd-run", "--unit=talker", "sh", "-c", TALK])
    said = eventually(lambda: container.journal("_SYSTEMD_UNIT=talker.service"), "its words")
    assert said[0]["MESSAGE"] == said[0]["_SYSTEMD_INVOCATION_ID"]


def test_the_checkout_and_its_dependencies_can_be_imported(container: Container) -> None:
    code = "import sys; sys.path[:0] = ['/sdqueue', '/opt/sdqueue-dependencies']; "
    code += "import sdqueue, asyncinotify, dbus_next, jinja2, psutil; print(sdqueue.__file__)"
    assert container.run(["python3", "-c", code]).stdout == "/sdqueue/sdqueue/__init__.py\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_what_popen_gave_reaches_the_program(
    container: Container, how: signal.Signals
) -> None:
    program = ["sh", "-c", "echo $$; exec sleep infinity"]
    with container.popen(program, stdout=subprocess.PIPE) as it:
        assert it.stdout is not None
        inside = container.root / "proc" / it.stdout.readline().strip()
        assert inside.exists()
        it.send_signal(how)
        assert it.wait() == -how
    assert not inside.exists()


def test_two_at_once_do_not_meet(container: Container) -> None:
    with Container("252") as other:
        for machine in (container, other):
            machine.run(["systemd-run", "--unit=same", "sleep", "infinity"])
        other.run(["systemctl", "stop", "same.service"])
        assert container.show("same.service", "ActiveState") == "active"


def test_nothing_is_left_of_it(container: Container) -> None:
    container.run(["systemd-run", "--unit=sleeper", "sleep", "infinity"])
    box = container._box
    pids = box.pids()
    container.close()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert not box.directory.exists()
    name = box.directory.name
    assert not [at for at, inside, _ in os.walk("/sys/fs/cgroup") if name in inside]


def test_a_version_that_can_not_be_says_why() -> None:
    with pytest.raises(ContainerError, match="hybrid"):
        Container("262", layout="hybrid")


MANAGER = f"""
from tests.harness.manager import user_manager
from tests.harness.waiting import eventually
with user_manager() as m:
    m.run(["systemd-run", "--user", "--unit=talker", "sh", "-c", {TALK!r}])
    said = eventually(lambda: m.journal("_SYSTEMD_USER_UNIT=talker.service"))[0]
    print(type(m).__name__, said["MESSAGE"] == said["_SYSTEMD_INVOCATION_ID"])
"""


def test_a_user_with_a_manager_is_given_his_own(container: Container) -> None:
    container.add_user("anna", linger=True)
    run = ["python3", "-c", MANAGER]
    said = container.run(run, user="anna", env={"PYTHONPATH": "/sdqueue"}).stdout
    assert said == "OwnManager True\n"


def test_root_on_a_booted_machine_can_have_a_private_manager(container: Container) -> None:
    said = container.run(["python3", "-c", MANAGER], env={"PYTHONPATH": "/sdqueue"}).stdout
    assert said == "PrivateManager True\n"
    assert container.run(["systemctl", "is-system-running"]).stdout == "running\n"
    assert not list((container.root / "tmp").glob("sdq-*"))


def test_a_user_without_either_is_told_what_is_missing(container: Container) -> None:
    container.add_user("berta")
    run = ["python3", "-c", MANAGER]
    said = container.run(run, user="berta", env={"PYTHONPATH": "/sdqueue"}, check=False).stderr
    last = said.splitlines()[-1]
    assert "no user manager of your own" in last
    assert "not root" in last
