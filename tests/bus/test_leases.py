"""Leases on a real manager: real pipes, real units, and programs that end in every way."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.harness.engine import Engine
from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually


@pytest.fixture
def queue(manager: PrivateManager) -> Iterator[Queue]:
    with Queue(manager) as running:
        wait_lane(running, "free")
        yield running


def lane(queue: Queue, name: str = "gpu") -> str:
    (found,) = [row for row in queue.ask("ListLanes") if row["name"] == name]
    return str(found["state"])


def wait_lane(queue: Queue, state: str) -> None:
    eventually(lambda: lane(queue) == state, f"the lane to be {state}")


def backing_unit(path: str) -> str:
    return f"sdqueue-lease-gpu-{path.rpartition('/')[2]}.service"


def test_a_lease_holds_the_lane_until_its_descriptor_is_closed(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        path = engine.acquire("gpu")
        assert queue.manager.show(backing_unit(path), "ActiveState") == "activating"
        assert lane(queue) == "leased"
        (row,) = queue.ask("ListLeases")
        assert (row["pid"], row["who"], row["lane"]) == (engine.pid, "stand-in engine", "gpu")
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "leased")
        assert engine.next("waiters") == [["job", "1-gpu-a"]]
        (wait,) = queue.events(event="gpu-wait")
        assert (wait["pid"], wait["job"]) == (engine.pid, "1-gpu-a")
        engine.close()
        queue.wait("1-gpu-a", "done")
    (begun,) = queue.events(event="lease")
    (ended,) = queue.events(event="lease-end")
    assert "revoked" not in ended
    assert begun["pid"] == engine.pid


def test_a_holder_that_is_killed_has_let_go(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        engine.acquire("gpu")
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "leased")
        engine.kill()
        queue.wait("1-gpu-a", "done")


def test_it_is_refused_while_a_job_runs_and_the_reason_says_which(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        queue.put("1-gpu-a", "sleep 1000")
        queue.wait_running("1-gpu-a")
        assert "LaneBusy" in engine.refused("gpu")
        assert "sdqueue-job-1-gpu-a.service" in engine.refused("gpu")
        queue.ask("CancelJob", "s", "1-gpu-a")
        queue.wait("1-gpu-a", "parked")
        wait_lane(queue, "free")
        engine.acquire("gpu")


def test_it_can_be_waited_for_and_whoever_goes_meanwhile_has_asked_for_nothing(
    queue: Queue,
) -> None:
    queue.put("1-gpu-a", "sleep 1000")
    queue.wait_running("1-gpu-a")
    with Engine(queue.manager) as gone, Engine(queue.manager) as patient:
        gone.say("acquire gpu wait")
        eventually(lambda: len(queue.events(event="lease-wait")) == 1, "the first in line")
        patient.say("acquire gpu wait")
        eventually(lambda: len(queue.events(event="lease-wait")) == 2, "the second in line")
        gone.kill()
        queue.ask("CancelJob", "s", "1-gpu-a")
        assert patient.next("got", "refused").startswith("/")
    wait_lane(queue, "free")


def test_it_survives_the_controller_and_is_known_to_the_next(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        path = engine.acquire("gpu")
        queue.kill()
        assert queue.manager.show(backing_unit(path), "ActiveState") == "activating"
        queue.put("1-gpu-a", "true")
        queue.start()
        queue.wait_reason("1-gpu-a", "leased")
        (row,) = queue.ask("ListLeases")
        assert (row["pid"], row["who"]) == (engine.pid, "stand-in engine")
        assert engine.next("waiters") == [["job", "1-gpu-a"]]
        engine.close()
        queue.wait("1-gpu-a", "done")


def test_a_lease_that_ends_while_no_controller_lives_is_over(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        engine.acquire("gpu")
        queue.kill()
        engine.close()
        queue.put("1-gpu-a", "true")
        queue.start()
        queue.wait("1-gpu-a", "done")


def test_pid_1_refuses_a_start_against_a_lease_as_against_a_job(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        path = engine.acquire("gpu")
        stop = ["systemctl", "--user", "--job-mode=fail", "stop", "sdqueue-lane-gpu.target"]
        refused = queue.manager.run(stop, check=False)
        assert refused.returncode
        assert queue.manager.show(backing_unit(path), "ActiveState") == "activating"


def test_a_child_that_has_the_descriptor_keeps_it_and_is_named(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        engine.acquire("gpu")
        engine.say("fork")
        child = int(engine.next("forked"))
        try:
            engine.kill()
            eventually(
                lambda: [row["pid"] for row in queue.ask("ListLeases")] == [child],
                "the child to be the holder",
            )
            assert lane(queue) == "leased"
        finally:
            os.kill(child, signal.SIGKILL)
        wait_lane(queue, "free")


def test_who_lets_go_over_the_bus_has_let_go_though_the_descriptor_is_open(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        engine.acquire("gpu")
        engine.say("release 1000000")
        engine.next("released")
        wait_lane(queue, "free")
        (ended,) = queue.events(event="lease-end")
        assert ended["parked_bytes"] == 1000000
        assert "revoked" not in ended


def test_a_lease_whose_unit_is_stopped_is_revoked_and_its_holder_hears_of_it(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        path = engine.acquire("gpu")
        queue.manager.run(["systemctl", "--user", "stop", backing_unit(path)])
        assert "stopped" in engine.next("revoked")
        wait_lane(queue, "free")
        assert queue.events(event="lease-end")[0]["revoked"] is True


def test_a_lease_lives_through_reloads_with_what_is_known_of_it(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        path = engine.acquire("gpu")
        queue.manager.reload()
        queue.manager.reexec()
        queue.kill()
        queue.start()
        eventually(lambda: queue.ask("ListLeases"), "the lease")
        (row,) = queue.ask("ListLeases")
        assert row["unit"] == backing_unit(path)
        assert row["pid"] == engine.pid
        engine.close()
        wait_lane(queue, "free")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gpu", "", "", "0"), "who is some text"),
        (("gpu", "two\nlines", "", "0"), "who is some text"),
        (("gpu", "x" * 129, "", "0"), "at most 128"),
        (("gpu", "me", "y" * 513, "0"), "at most 512"),
        (("disk", "me", "", "0"), "the lanes are cpu, gpu, net"),
        (("gpu", "me", "", "1", "hurry", "b", "true"), "no such option 'hurry'"),
        (("gpu", "me", "", "1", "wait", "s", "yes"), "no such option 'wait'"),
    ],
)
def test_a_request_that_can_not_be_meant_is_refused_and_says_why(
    queue: Queue, arguments: tuple[str, ...], said: str
) -> None:
    call = ["busctl", "--user", "call", "org.sdqueue1", "/org/sdqueue1", "org.sdqueue1.Manager"]
    answer = queue.manager.run([*call, "AcquireLease", "sssa{sv}", *arguments], check=False)
    assert said in answer.stderr
    assert queue.ask("ListLeases") == []


def test_one_user_can_not_have_more_than_some(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        engine.acquire("gpu")
        waiting = [Engine(queue.manager) for _ in range(15)]
        for number, one in enumerate(waiting, 1):
            one.say("acquire gpu wait")
            eventually(
                lambda n=number: len(queue.events(event="lease-wait")) == n,  # type: ignore[misc]
                "the request",
            )
        assert "LimitsExceeded" in engine.refused("cpu")
        for one in waiting:
            with one:
                pass


def test_a_holder_may_say_any_number_of_what_it_keeps(queue: Queue) -> None:
    with Engine(queue.manager) as engine:
        engine.acquire("gpu")
        engine.say(f"release {2**64 - 1}")
        engine.next("released")
        wait_lane(queue, "free")
        (ended,) = queue.events(event="lease-end")
        assert ended["parked_bytes"] == 2**64 - 1
        queue.put("1-gpu-a", "true")
        queue.wait("1-gpu-a", "done")


def test_a_unit_that_says_of_itself_that_it_is_a_lease_is_a_stranger_in_the_lane(
    queue: Queue,
) -> None:
    told = {"ID": "a1", "LANE": "gpu", "WHO": "x", "WHY": "", "UID": "0", "PID": str(10**20)}
    told |= {"STARTED": "5", "COMM": "", "UNIT": "", "PIPE": "1", "ADOPTED": "", "SINCE_SEC": "nan"}
    unit = "sdqueue-lease-gpu-a1.service"
    run = ["systemd-run", "--user", "--quiet", f"--unit={unit}", "--slice=sdqueue-gpu.slice"]
    environment = [f"--setenv=SDQUEUE_LEASE_{key}={value}" for key, value in told.items()]
    queue.kill()
    queue.manager.run([*run, "--collect", *environment, "sleep", "1000"])
    queue.start()
    wait_lane(queue, "running")
    assert queue.ask("ListLeases") == []
    queue.manager.run(["systemctl", "--user", "stop", unit])
    wait_lane(queue, "free")


# Adopted


def sleeper(queue: Queue) -> "subprocess.Popen[str]":
    return queue.manager.popen(["sleep", "1000"])


def test_a_process_is_adopted_until_it_ends(queue: Queue) -> None:
    process = sleeper(queue)
    try:
        queue.ask("AdoptOwner", "sss", "gpu", str(process.pid), "by hand")
        assert lane(queue) == "leased"
        (row,) = queue.ask("ListLeases")
        assert (row["pid"], row["adopted"], row["who"]) == (
            process.pid,
            str(process.pid),
            "by hand",
        )
        queue.put("1-gpu-a", "true")
        queue.wait_reason("1-gpu-a", "leased")
        queue.kill()
        queue.start()
        queue.wait_reason("1-gpu-a", "leased")
    finally:
        process.kill()
        process.wait()
    queue.wait("1-gpu-a", "done")
    (ended,) = queue.events(event="lease-end")
    assert "revoked" not in ended


def test_a_unit_is_adopted_until_the_last_of_its_processes_is_gone(
    queue: Queue,
) -> None:
    run = ["systemd-run", "--user", "--quiet", "--unit=bench.service", "-pKillMode=process"]
    queue.manager.run([*run, "bash", "-c", "sleep 1000 & exec sleep 1001"])
    queue.ask("AdoptOwner", "sss", "gpu", "bench.service", "")
    (row,) = queue.ask("ListLeases")
    assert (row["who"], row["adopted"]) == ("bench.service", "bench.service")
    queue.put("1-gpu-a", "true")
    queue.wait_reason("1-gpu-a", "leased")
    queue.manager.run(["systemctl", "--user", "kill", "--kill-whom=all", "bench.service"])
    queue.wait("1-gpu-a", "done")


def test_what_a_lease_says_outlives_the_manager_s_reading_it_again(queue: Queue) -> None:
    name = "50% \"x\" \\n $HOME %n 'a' ;#\\"
    process = sleeper(queue)
    try:
        queue.ask("AdoptOwner", "sss", "gpu", str(process.pid), name)
        queue.manager.reload()
        queue.manager.reexec()
        queue.kill()
        queue.start()
        eventually(lambda: queue.ask("ListLeases"), "the lease")
        assert [row["who"] for row in queue.ask("ListLeases")] == [name]
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("4194305", "no process"),
        ("9" * 5000, "no process"),
        ("bench", "neither a pid nor"),
        ("nowhere.service", "not there"),
        ("sdqueue-job-1.service", "neither a pid nor"),
        ("sdqueue.slice", "neither a pid nor"),
        ("../x.service", "neither a pid nor"),
    ],
)
def test_what_is_not_there_is_not_adopted(queue: Queue, what: str, said: str) -> None:
    call = ["busctl", "--user", "call", "org.sdqueue1", "/org/sdqueue1", "org.sdqueue1.Manager"]
    answer = queue.manager.run([*call, "AdoptOwner", "sss", "gpu", what, ""], check=False)
    assert said in answer.stderr
