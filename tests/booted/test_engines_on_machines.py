"""Engines beside queues on a booted machine: root's queue and a user's, and another user besides.

One machine of each kind plays all scenes; each leaves the lanes free. The device is a terminal's.
Who comes first, and what another controller changes, is tried on one manager in tests/bus.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.harness.container import Container
from tests.harness.engine import Engine
from tests.harness.images import CHECKOUT
from tests.harness.login import Login, UserQueue
from tests.harness.machine import MachineQueue
from tests.harness.waiting import eventually

DEVICE = """
import os, sys
pairs = [os.openpty() for _ in range(60)]  # a number that no other terminal here has
os.chmod(os.ttyname(pairs[-1][1]), 0o666)
print(os.ttyname(pairs[-1][1]), flush=True)
for _, slave in pairs:
    os.close(slave)
sys.stdin.read()
"""
OF_BERT = "bert-s-engine"
"""What a user can know of a process of another: its name, and not what it has open."""
PORT = 8431
CONFIG = f'''
recheck = "1h"
[lane.gpu]
devices = ["{{device}}", "/dev/nvidia0"]
foreign = ["{OF_BERT}"]
ports = [{PORT}]
'''


class Side(NamedTuple):
    """A queue, and a login of whose it is."""

    login: Login
    queue: MachineQueue

    def wait(self, *states: str) -> None:
        """Wait until the lane gpu is in one of these states."""

        def there() -> bool:
            (found,) = [row for row in self.queue.ask("ListLanes") if row["name"] == "gpu"]
            assert found["state"] in states, found
            return True

        eventually(there, f"the lane to be {states}")


class Machine(NamedTuple):
    """A booted machine with two queues, a user who has none, and a device."""

    container: Container
    root: Side
    anna: Side
    bert: Login
    device: str

    def side(self, name: str) -> Side:
        return self.root if name == "root" else self.anna


@pytest.fixture(scope="module")
def machine(shared_container: Container) -> Iterator[Machine]:
    container = shared_container
    for name in ("anna", "bert"):
        container.add_user(name, linger=True)
    root, anna, bert = (Login(container, name) for name in ("root", "anna", "bert"))
    with ExitStack() as stack:
        keeper = container.popen(["python3", "-c", DEVICE], stdin=-1, stdout=-1)
        stack.callback(keeper.communicate)
        assert keeper.stdout
        device = keeper.stdout.readline().strip()
        config = CONFIG.format(device=device)
        etc = container.root / "etc/sdqueue"
        etc.mkdir()
        (etc / "sdqueue.toml").write_text(config)
        anna.run(
            ["sh", "-c", "mkdir -p .config/sdqueue; cat >.config/sdqueue/sdqueue.toml"],
            input=config,
        )
        queues = MachineQueue(container), UserQueue(anna)
        stand_in(container)
        for queue in queues:
            queue.install()
        yield Machine(container, Side(root, queues[0]), Side(anna, queues[1]), bert, device)


def stand_in(container: Container) -> None:
    """Put a device and its driver there, which say what `use` says."""
    script = "mount -t tmpfs tmpfs /sys/bus/pci/drivers; mknod /dev/nvidia0 c 195 0; "
    script += "mkdir -p /sys/bus/pci/drivers/nvidia/0000:01:00.0; "
    script += 'python3 -c "import site; print(site.getsitepackages()[0])"'
    packages = container.run(["sh", "-ec", script]).stdout.strip()
    place = container.root / packages[1:]
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(CHECKOUT / "tests/harness/standin_nvml.py", place / "pynvml.py")
    use(container, {})


def use(container: Container, users: dict[int, tuple[int, bool]]) -> None:
    """Have processes use the device: so much memory, and whether they work."""
    new = container.root / "run/standin-gpu.new"
    new.write_text(json.dumps(users))
    new.rename(container.root / "run/standin-gpu.json")


@pytest.fixture(params=["root", "anna"])
def side(request: pytest.FixtureRequest, machine: Machine) -> Iterator[Side]:
    """Give each of the queues, with its lane free, and see that it is left so."""
    side = machine.side(request.param)
    side.wait("free")
    yield side
    side.queue._tell()
    side.wait("free")


def test_a_lease_lives_through_a_new_pid_1_and_a_new_controller_and_ends_with_its_holder(
    side: Side,
) -> None:
    """As reported: an upgrade executes the manager anew, and restarts the services it finds old."""
    with Engine(side.login) as engine:
        path = engine.acquire("gpu")
        unit = f"sdqueue-lease-gpu-{path.rpartition('/')[2]}.service"
        side.queue.put("1-gpu-a", "true")
        side.queue.wait_reason("1-gpu-a", "leased")
        side.login.reexec()
        side.queue.kill()
        side.login.reload()
        side.queue.start()
        side.login.reexec()
        side.queue.wait_reason("1-gpu-a", "leased")
        assert side.login.show(unit, "ActiveState") == "activating"
        assert [(row["pid"], row["unit"]) for row in side.queue.ask("ListLeases")] == [
            (engine.pid, unit)
        ]
        engine.kill()
        side.queue.wait("1-gpu-a", "done")


def test_an_engine_whose_lease_is_stopped_sees_it_by_its_descriptor(side: Side) -> None:
    with Engine(side.login) as engine:
        path = engine.acquire("gpu")
        unit = f"sdqueue-lease-gpu-{path.rpartition('/')[2]}.service"
        side.queue.kill()
        side.login.systemctl("stop", unit)
        assert engine.next("lost") is True
        side.queue.start()


def test_what_is_left_of_an_adopted_unit_has_the_lane_as_its_main_process_had(side: Side) -> None:
    unit = "bench.service"
    run = ["systemd-run", side.login.scope, "--quiet", f"--unit={unit}", "-pKillMode=process"]
    side.login.run([*run, "sh", "-c", "sleep 1000 & exec sleep 1001"])
    side.queue.ask("AdoptOwner", "sss", "gpu", unit, "")
    side.queue.put("2-gpu-b", "true")
    side.queue.wait_reason("2-gpu-b", "leased")
    side.login.systemctl("stop", unit)
    side.queue.kill()
    side.queue.start()
    side.queue.wait_reason("2-gpu-b", "leased")
    side.login.run(["pkill", "-KILL", "-f", "^sleep 1000$"])
    side.queue.wait("2-gpu-b", "done")


def test_an_engine_of_another_user_is_named_by_both_queues_and_both_go_on_when_it_ends(
    machine: Machine,
) -> None:
    sides = (machine.root, machine.anna)
    bert = f"user@{machine.bert.uid}.service"
    for side in sides:
        side.wait("free")
    with Engine(machine.bert, unit="llm-engine-b.service") as engine:
        engine.say(f"name {OF_BERT}")
        engine.next("named")
        engine.open(machine.device)
        for side in sides:
            side.queue.put("3-gpu-c", "true")
            side.queue.wait_reason("3-gpu-c", "foreign")
            (wait,) = side.queue.events(event="gpu-wait")[-1:]
            assert (wait["pid"], wait["unit"]) == (engine.pid, bert)
            assert "llm-engine-b.service by its own word" in wait["note"]
        assert "whom this user can't stop" in wait["note"]
        for side in sides:
            side.queue.kill()
            side.queue.start()
            side.queue.wait_reason("3-gpu-c", "foreign")
        engine.kill()
    for side in sides:
        side.queue.wait("3-gpu-c", "done")
    machine.bert.systemctl("reset-failed", "llm-engine-b.service")


def test_a_listener_of_another_user_is_seen_by_a_queue_whose_service_has_no_network(
    machine: Machine, side: Side
) -> None:
    with Engine(machine.bert, unit="llm-engine-l.service") as engine:
        engine.say(f"listen {PORT}")
        engine.next("listening")
        side.queue.put("9-gpu-i", "true")
        side.queue.wait_reason("9-gpu-i", "foreign")
        (wait,) = side.queue.events(event="gpu-wait")[-1:]
        assert (wait["pid"], wait["unit"]) == (engine.pid, f"user@{machine.bert.uid}.service")
        engine.kill()
        side.queue.wait("9-gpu-i", "done")
    machine.bert.systemctl("reset-failed", "llm-engine-l.service")
    side.login.run(["sdqueue", "remove", "9-gpu-i"])


def test_a_user_who_may_not_take_the_machines_lane_is_refused_and_sees_who_has_it(
    machine: Machine,
) -> None:
    with Engine(machine.root.login) as holder, Engine(machine.bert, system=True) as engine:
        holder.acquire("gpu")
        assert "may not take a lane without a job" in engine.refused("gpu")
        free = ["sdqueue", "--system", "is-free", "gpu"]
        answer = machine.bert.run(free, check=False)
        assert answer.returncode == 1
        assert f"pid {holder.pid}" in answer.stdout


def test_memory_that_an_engine_says_it_keeps_is_in_nobodys_way_until_it_works(
    machine: Machine,
) -> None:
    """As reported: a router's child keeps 600 MiB while it sleeps."""
    side = machine.root
    kept_bytes = 600 << 20
    name = "llm-engine-g.service"
    with Engine(side.login, unit=name) as engine:
        engine.acquire("gpu")
        engine.say("spawn")
        child = int(engine.next("spawned"))
        use(machine.container, {child: (kept_bytes, False)})
        side.queue.put("6-gpu-f", "true")
        side.queue.wait_reason("6-gpu-f", "leased")
        engine.close()
        side.queue.wait_reason("6-gpu-f", "foreign")
        side.queue.ask("CancelJob", "s", "6-gpu-f")
        side.queue.wait("6-gpu-f", "parked")
        engine.acquire("gpu")
        side.queue.put("7-gpu-g", 'until [ -e "$STATE_DIRECTORY/go" ]; do sleep 0.05; done')
        side.queue.wait_reason("7-gpu-g", "leased")
        engine.say(f"release {kept_bytes}")
        side.queue.wait_running("7-gpu-g")
        use(machine.container, {child: (kept_bytes, True)})
        (side.queue.work("7-gpu-g") / "go").touch()
        side.queue.wait("7-gpu-g", "done")
        side.wait("foreign")
        side.queue.put("8-gpu-h", "true")
        side.queue.wait_reason("8-gpu-h", "foreign")
        use(machine.container, {})
        engine.kill()
        side.queue.wait("8-gpu-h", "done")
    side.login.systemctl("reset-failed", name)
    for job in ("6-gpu-f", "7-gpu-g", "8-gpu-h"):
        side.login.run(["sdqueue", "remove", job])


def test_a_user_manager_that_is_killed_takes_leases_and_jobs_along_and_no_attempt(
    machine: Machine,
) -> None:
    """As reported: the manager went at the end of a session, and all that it ran with it."""
    anna, queue = machine.anna.login, machine.anna.queue
    manager = f"user@{anna.uid}.service"
    with Engine(anna) as engine:
        engine.acquire("gpu")
        once = 'cd "$STATE_DIRECTORY"; [ -e ran ] || { touch ran; sleep 1000; }'
        queue.put("4-cpu-d", once)
        queue.put("5-gpu-e", "true")
        queue.wait_running("4-cpu-d")
        queue.wait_reason("5-gpu-e", "leased")
        eventually((queue.work("4-cpu-d") / "ran").exists, "its first line")
        machine.container.run(["systemctl", "kill", "--signal=KILL", "--kill-whom=main", manager])
        assert engine.next("lost") is True
        eventually(lambda: machine.container.show(manager, "ActiveState") == "failed", manager)
        machine.container.run(["systemctl", "start", manager])
        queue.wait("5-gpu-e", "done")
        queue.wait("4-cpu-d", "done")
    assert queue.words("4-cpu-d") == ["start", "recovered", "start", "done"]
    assert queue.record("4-cpu-d", 2)["attempt"] == 1
    assert queue.ask("ListLeases") == []
