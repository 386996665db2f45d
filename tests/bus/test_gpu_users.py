"""Users of a lane that are no jobs of it: real processes, with real devices that stand for a GPU.

The device is a pseudo-terminal's: who has it open can be told, what he does with it can not. The
configuration asks for a recheck in an hour, so whatever is noticed was told by the kernel.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.terminal import lone_terminal
from tests.harness.waiting import LIMIT_SEC, eventually

HOLD = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
print(os.getpid(), flush=True)
for line in sys.stdin:
    if line == "close\\n":
        os.close(fd)
    elif line == "open\\n":
        fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
"""
ROUTER = """
import os, subprocess, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
child = subprocess.Popen(["sleep", "1000"], pass_fds=[fd])
os.close(fd)
print(child.pid, flush=True)
for line in sys.stdin:
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
    print("open", flush=True)
"""


class Gpu:
    """A device that stands for a GPU, and the queue whose lane it is of."""

    def __init__(self, queue: Queue, device: str) -> None:
        self.queue = queue
        self.device = device

    @contextmanager
    def run(self, program: str, *before: str) -> Iterator["subprocess.Popen[str]"]:
        """Run a Python program on the device, which the queue did not start."""
        argv = [*before, sys.executable, "-c", program, self.device]
        pipe = subprocess.PIPE
        process = self.queue.manager.popen(argv, stdin=pipe, stdout=pipe)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stdin
            assert process.stdout
            process.stdin.close()
            process.stdout.close()

    @contextmanager
    def user(self, *before: str) -> Iterator["subprocess.Popen[str]"]:
        """Run a process that has the device open."""
        with self.run(HOLD, *before) as process:
            assert hear(process) == str(process.pid)
            eventually(lambda: self.lane()["state"] != "free", "the user to be seen")
            yield process

    def lane(self) -> dict[str, Any]:
        (row,) = [row for row in self.queue.ask("ListLanes") if row["name"] == "gpu"]
        assert isinstance(row, dict)
        return row


def hear(process: "subprocess.Popen[str]") -> str:
    """Wait for a line that a program says."""
    assert process.stdout
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]", line: str) -> None:
    """Say a line to a program."""
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def configure(manager: PrivateManager, *settings: str, recheck: str = "1h") -> None:
    config = manager.home / ".config/sdqueue/sdqueue.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("\n".join([f'recheck = "{recheck}"', "[lane.gpu]", *settings, ""]))


@pytest.fixture
def device() -> Iterator[str]:
    """Give a device that nobody has open."""
    with lone_terminal() as name:
        yield name


@pytest.fixture
def gpu(manager: PrivateManager, device: str) -> Iterator[Gpu]:
    """Give a queue whose lane gpu is for that device."""
    configure(manager, f'devices = ["{device}"]', "slots = 2")
    with Queue(manager) as queue:
        yield Gpu(queue, device)


def waits_for(queue: Queue) -> list[int]:
    """List the pids that readers of the log are told of, in order."""
    return [each["pid"] for each in queue.events(event="gpu-wait")]


def test_a_job_waits_for_whoever_has_the_device_open_and_starts_when_he_ends(gpu: Gpu) -> None:
    queue = gpu.queue
    with gpu.user() as process:
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        assert waits_for(queue) == [process.pid]
        (wait,) = queue.events("1-gpu-a", event="wait")[-1:]
        assert f"pid {process.pid}" in wait["detail"]
        assert gpu.lane()["state"] != "free"
        assert process.poll() is None
    queue.wait("1-gpu-a", "done")
    assert process.returncode == -signal.SIGKILL


def test_who_closes_the_device_and_lives_on_is_waited_for_no_more(gpu: Gpu) -> None:
    with gpu.user() as process:
        gpu.queue.put("1-gpu-a", "true")
        gpu.queue.wait_reason("1-gpu-a", "foreign")
        tell(process, "close")
        gpu.queue.wait("1-gpu-a", "done")
        assert process.poll() is None


def test_who_opens_the_device_while_nothing_waits_is_noticed(gpu: Gpu) -> None:
    def is_free() -> bool:
        return bool(gpu.lane()["state"] == "free")

    eventually(is_free, "the lane to be looked at")
    with gpu.user() as process:
        eventually(lambda: not is_free(), "the user to be seen")
        tell(process, "close")
        eventually(is_free, "the device to be free")
        tell(process, "open")
        eventually(lambda: not is_free(), "the user to be seen again")
    eventually(is_free, "the device to be free again")


def test_when_a_routers_child_ends_the_wait_goes_on_and_names_the_router(gpu: Gpu) -> None:
    queue = gpu.queue
    with gpu.run(ROUTER) as router:
        child = int(hear(router))
        eventually(lambda: gpu.lane()["state"] != "free", "the child to be seen")
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        assert waits_for(queue) == [child]
        tell(router, "open")
        assert hear(router) == "open"
        os.kill(child, signal.SIGKILL)
        eventually(lambda: waits_for(queue)[-1] == router.pid, "the router to be named")
        assert queue.reason("1-gpu-a") == "foreign"
        assert waits_for(queue) == [child, router.pid]
    queue.wait("1-gpu-a", "done")


def test_a_child_that_outlives_its_router_is_waited_for_yet(gpu: Gpu) -> None:
    queue = gpu.queue
    with gpu.run(ROUTER) as router:
        child = int(hear(router))
        try:
            router.kill()
            router.wait()
            eventually(lambda: gpu.lane()["state"] != "free", "the child to be seen")
            queue.put("1-gpu-a", "true")
            queue.wait_reason("1-gpu-a", "foreign")
            assert waits_for(queue) == [child]
        finally:
            os.kill(child, signal.SIGKILL)
    queue.wait("1-gpu-a", "done")


def test_an_owner_that_is_replaced_by_another_is_another_wait(gpu: Gpu) -> None:
    queue = gpu.queue
    with gpu.user() as first:
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        with gpu.user() as second:
            first.kill()
            eventually(lambda: waits_for(queue)[-1] == second.pid, "the second one's wait")
            assert queue.reason("1-gpu-a") == "foreign"
            assert waits_for(queue) == [first.pid, second.pid]
    queue.wait("1-gpu-a", "done")


def test_a_job_that_has_the_device_open_is_no_stranger(gpu: Gpu) -> None:
    queue = gpu.queue
    queue.put("1-gpu-a", f"exec sleep 1000 <>{gpu.device}")
    queue.wait_running("1-gpu-a")
    queue.put("2-gpu-b", "true")
    queue.wait("2-gpu-b", "done")
    assert waits_for(queue) == []


def test_somebody_of_another_user_is_waited_for_and_said_to_be(gpu: Gpu) -> None:
    if os.geteuid():
        pytest.skip("only root can run something as somebody else")
    os.chown(gpu.device, 65534, 65534)
    with gpu.user("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") as process:
        gpu.queue.put("1-gpu-a", "true")
        gpu.queue.wait_reason("1-gpu-a", "foreign")
        assert waits_for(gpu.queue) == [process.pid]
    gpu.queue.wait("1-gpu-a", "done")


def test_a_unit_that_has_the_device_is_named_and_its_stop_ends_the_wait(gpu: Gpu) -> None:
    queue = gpu.queue
    start = [
        "systemd-run",
        "--user",
        "--unit=engine-x",
        f"--property=StandardInput=file:{gpu.device}",
    ]
    queue.manager.run([*start, "sleep", "1000"])
    queue.put("1-gpu-a", "true")
    queue.wait_reason("1-gpu-a", "foreign")
    (wait,) = queue.events(event="gpu-wait")
    assert wait["unit"] == "engine-x.service"
    queue.manager.run(["systemctl", "--user", "stop", "engine-x"])
    queue.wait("1-gpu-a", "done")


def test_a_controller_that_is_killed_is_followed_by_one_that_sees_the_same(gpu: Gpu) -> None:
    queue = gpu.queue
    with gpu.user() as process:
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        queue.kill()
        queue.start()
        queue.wait_reason("1-gpu-a", "foreign")
        assert set(waits_for(queue)) == {process.pid}
    queue.wait("1-gpu-a", "done")


# Other sources -----------------------------------------------------------------------------------


def test_a_listener_on_a_port_is_waited_for_until_it_ends(manager: PrivateManager) -> None:
    program = (
        "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1])));"
        "s.listen(); print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    server = manager.popen([sys.executable, "-c", program, "0"], stdin=pipe, stdout=pipe)
    try:
        configure(manager, "devices = []", f"ports = [{hear(server)}]")
        with Queue(manager) as queue:
            queue.put("1-gpu-a", "true")
            queue.wait_reason("1-gpu-a", "foreign")
            assert waits_for(queue) == [server.pid]
            server.kill()
            queue.wait("1-gpu-a", "done")
    finally:
        server.kill()
        server.communicate()


def test_who_holds_a_lock_is_waited_for_until_he_lets_go(manager: PrivateManager) -> None:
    file = manager.home / "gpu.lock"
    file.touch()
    configure(manager, "devices = []", f'owner_files = ["{manager.home}/*.lock"]')
    script = f"exec 9<>{file}; flock 9; echo held; read _; exec 9>&-; exec sleep 1000"
    pipe = subprocess.PIPE
    holder = manager.popen(["bash", "-c", script], stdin=pipe, stdout=pipe)
    try:
        assert hear(holder) == "held"
        with Queue(manager) as queue:
            queue.put("1-gpu-a", "true")
            queue.wait_reason("1-gpu-a", "foreign")
            tell(holder, "")
            queue.wait("1-gpu-a", "done")
            assert holder.poll() is None
    finally:
        holder.kill()
        holder.communicate()


def test_an_active_unit_is_waited_for_until_it_stops(manager: PrivateManager) -> None:
    configure(manager, "devices = []", 'units = ["engine-*.service"]')
    manager.run(["systemd-run", "--user", "--unit=engine-x", "sleep", "1000"])
    with Queue(manager) as queue:
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "foreign")
        (wait,) = queue.events(event="gpu-wait")
        assert (wait["unit"], wait["cmd"]) == ("engine-x.service", "sleep")
        manager.run(["systemctl", "--user", "stop", "engine-x"], limit_sec=LIMIT_SEC)
        queue.wait("1-gpu-a", "done")


def test_a_look_that_fails_is_not_free_and_the_job_starts_when_it_works_again(
    manager: PrivateManager,
) -> None:
    (manager.home / "gpu.lock").touch()
    settings = "devices = []", f'owner_files = ["{manager.home}/gpu.lock"]'
    configure(manager, *settings, recheck="1s")
    with socket.socket(socket.AF_UNIX) as unreadable:
        unreadable.bind(str(manager.home / "socket"))
        manager.run(["mount", "--bind", str(manager.home / "socket"), "/proc/locks"])
        try:
            with Queue(manager) as queue:
                queue.put("1-gpu-a", "true")
                queue.wait_reason("1-gpu-a", "foreign")
                (wait,) = queue.events("1-gpu-a", event="wait")[-1:]
                assert "it can't be told" in wait["detail"]
                assert Gpu(queue, "").lane()["state"] == "unknown"
                manager.run(["umount", "/proc/locks"])
                queue.wait("1-gpu-a", "done")
        finally:
            manager.run(["umount", "/proc/locks"], check=False)


def test_a_model_server_that_holds_the_device_is_waited_for_by_its_unit_and_never_stopped(
    gpu: Gpu,
) -> None:
    queue = gpu.queue
    start = ["systemd-run", "--user", "--unit=llm-engine-x"]
    queue.manager.run([*start, f"--property=StandardInput=file:{gpu.device}", "sleep", "1000"])
    queue.put("1-gpu-a", "true")
    queue.wait_reason("1-gpu-a", "foreign")
    (wait,) = queue.events("1-gpu-a", event="wait")[-1:]
    assert "llm-engine-x.service" in wait["detail"]
    queue.ask("CancelJob", "s", "1-gpu-a")
    queue.wait("1-gpu-a", "parked")
    assert queue.manager.show("llm-engine-x.service", "ActiveState") == "active"
