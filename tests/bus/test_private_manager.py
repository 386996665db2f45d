"""The harness itself: what a private user manager promises to its tests."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.harness import manager as managers
from tests.harness.manager import PrivateManager
from tests.harness.tools import require
from tests.harness.waiting import eventually, wait_exit

SLEEPER = ["systemd-run", "--user", "--unit=sleeper", "sleep", "infinity"]


def owner_of_the_name(manager: PrivateManager) -> str:
    ask = ["busctl", "--user", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus"]
    ask += ["GetConnectionUnixProcessID", "s", "org.freedesktop.systemd1"]
    return manager.run(ask).stdout.split()[1]


def test_it_is_up_when_it_is_given(shared_manager: PrivateManager) -> None:
    state = shared_manager.run(["systemctl", "--user", "is-system-running"]).stdout
    assert state.strip() == "running"
    assert owner_of_the_name(shared_manager) == str(shared_manager.pid)


def test_units_have_an_empty_home_and_no_variable_of_ours(shared_manager: PrivateManager) -> None:
    os.environ["OURS_ALONE"] = "1"
    command = ["systemd-run", "--user", "--pipe", "--wait", "--quiet", "env"]
    seen = dict(line.split("=", 1) for line in shared_manager.run(command).stdout.splitlines())
    assert seen["HOME"] == str(shared_manager.home)
    assert "OURS_ALONE" not in seen
    assert "NOTIFY_SOCKET" not in seen


def test_a_unit_sits_where_logind_would_have_put_it(shared_manager: PrivateManager) -> None:
    uid = os.geteuid()
    command = ["systemd-run", "--user", "--pipe", "--wait", "--quiet", "--unit=where"]
    lines = shared_manager.run([*command, "cat", "/proc/self/cgroup"]).stdout.splitlines()
    expected = f"0::/user.slice/user-{uid}.slice/user@{uid}.service/app.slice/where.service"
    assert expected in lines


def test_the_journal_knows_unit_and_invocation(shared_manager: PrivateManager) -> None:
    # it runs on: journald looks the invocation up when it reads the line, else perhaps too late
    talk = ["sh", "-c", "echo $INVOCATION_ID; exec sleep infinity"]
    shared_manager.run(["systemd-run", "--user", "--unit=talker", *talk])
    own = "_SYSTEMD_USER_UNIT=talker.service"
    said = [entry["MESSAGE"] for entry in eventually(lambda: shared_manager.journal(own))]
    by_invocation = shared_manager.journal(f"_SYSTEMD_INVOCATION_ID={said[0]}")
    assert [entry["MESSAGE"] for entry in by_invocation] == said
    assert len(shared_manager.journal("--user-unit", "talker.service")) > len(said)
    shared_manager.run(["systemctl", "--user", "stop", "talker.service"])


def test_popen_gives_the_true_pid(shared_manager: PrivateManager) -> None:
    with shared_manager.popen(["sh", "-c", "echo $$"], stdout=subprocess.PIPE) as process:
        assert process.communicate()[0] == f"{process.pid}\n"


def test_the_bus_can_be_reached_from_outside(shared_manager: PrivateManager) -> None:
    path = shared_manager.bus_address.removeprefix("unix:path=")
    with socket.socket(socket.AF_UNIX) as outside:
        outside.connect(path)
        outside.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\n")
        answer = b""
        while b"OK " not in answer:
            answer += outside.recv(100) or b"OK closed"
    assert b"OK closed" not in answer


def test_units_outlive_the_bus(manager: PrivateManager) -> None:
    manager.run(SLEEPER)
    pid = manager.show("sleeper.service", "MainPID")
    manager.kill_bus()
    gone = manager.run(["busctl", "--user", "list"], check=False)
    assert gone.returncode != 0
    manager.start_bus()
    assert owner_of_the_name(manager) == str(manager.pid)
    assert manager.show("sleeper.service", "MainPID") == pid


def test_units_outlive_reexecution_but_not_a_restart(manager: PrivateManager) -> None:
    manager.run(SLEEPER)
    pid = manager.show("sleeper.service", "MainPID")
    manager.reexec()
    assert manager.show("sleeper.service", "MainPID") == pid
    before = manager.pid
    manager.restart()
    assert manager.pid != before
    assert manager.show("sleeper.service", "ActiveState") == "inactive"
    assert not Path(f"/proc/{pid}").exists()


def test_two_at_once_do_not_meet(manager: PrivateManager) -> None:
    with PrivateManager() as other:
        for one in (manager, other):
            one.run(SLEEPER)
        other.run(["systemctl", "--user", "stop", "sleeper.service"])
        assert manager.show("sleeper.service", "ActiveState") == "active"


def traces_of(directory: str) -> list[str]:
    """Return what a sandbox of that directory can leave: files, cgroups, mounts, processes."""
    found = [directory] if Path(directory).exists() else []
    name = Path(directory).name
    # Not rglob(): it fails on a directory that goes while it looks, and other tests end theirs.
    found += [f"{at}/{name}" for at, inside, _ in os.walk("/sys/fs/cgroup") if name in inside]
    found += [
        line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line
    ]
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            if name.encode() in process.read_bytes():
                found.append(str(process))
        except OSError:
            continue
    return found


def test_nothing_is_left_of_it(manager: PrivateManager) -> None:
    manager.run(SLEEPER)
    manager.popen(["setsid", "--fork", "sleep", "infinity"]).wait()
    assert traces_of(str(manager.directory))
    manager.close()
    assert traces_of(str(manager.directory)) == []


def test_nothing_is_left_when_its_owner_is_killed(shared_manager: PrivateManager) -> None:
    assert shared_manager.pid, "a private manager can run here"
    code = (
        "import sys, signal\n"
        "from tests.harness.manager import PrivateManager\n"
        "with PrivateManager() as m:\n"
        f"    m.run({SLEEPER})\n"
        "    print(m.directory, m.pid, m._box._keeper.pid, flush=True)\n"
        "    signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    ) as owner:
        try:
            assert owner.stdout is not None
            directory, *pids = owner.stdout.readline().split()
            assert traces_of(directory)
        finally:
            owner.send_signal(signal.SIGKILL)
    for pid in pids:
        wait_exit(int(pid))
    assert traces_of(directory) == []


def test_a_root_that_may_not_mount_is_told_so() -> None:
    require(managers.missing())
    code = "from tests.harness.manager import PrivateManager\nwith PrivateManager(): pass\n"
    less = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    done = subprocess.run([*less, sys.executable, "-c", code], capture_output=True, text=True)
    words = "ManagerError: the sandbox could not be made: .*unshare: Operation not permitted"
    assert re.search(words, done.stderr)
