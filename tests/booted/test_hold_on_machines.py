"""`hold`, `is-free` and `owners` on booted machines: root's queue, asked by its users as well."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness import container as containers
from tests.harness.container import Container
from tests.harness.machine import MachineQueue
from tests.harness.tools import require
from tests.harness.waiting import LIMIT_SEC, eventually

EXAMPLE = Path(__file__).parents[2] / "units/examples/llm-engine@.service"
UP = ("--", "sh", "-c", "echo up; exec sleep 1000")
VERSIONS = [
    pytest.param(version, id=version, marks=pytest.mark.xdist_group(f"hold-{version}"))
    for version in ("252", "257", "262")
]


@pytest.fixture(scope="module", params=VERSIONS)
def machine(request: pytest.FixtureRequest) -> Iterator[MachineQueue]:
    """Give a machine with a user, whose queue the tests of this module share."""
    require(containers.missing(request.param))
    with Container(request.param) as booted:
        booted.add_user("anna")
        queue = MachineQueue(booted)
        queue.install()
        yield queue


@pytest.fixture
def queue(machine: MachineQueue) -> Iterator[MachineQueue]:
    """Give the queue with a free lane, and show what it did where a test fails."""
    eventually(lambda: asked(machine, "is-free", "gpu")["free"], "the lane to be free")
    yield machine
    print(machine.said()[-3000:], *machine.events()[-60:], sep="\n")


def asked(queue: MachineQueue, *words: str, user: str = "root") -> Any:
    """Ask as that user, and return what is printed as JSON."""
    argv = ["sdqueue", "--system", "--json=short", *words]
    return json.loads(queue.container.run(argv, user=user, check=False).stdout)


@contextmanager
def holding(queue: MachineQueue, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Have root hold the gpu lane."""
    argv = ["sdqueue", "hold", "gpu", *words]
    pipe = subprocess.PIPE
    with queue.container.popen(argv, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()
            print(process.communicate(timeout=LIMIT_SEC))


def test_a_user_sees_that_root_has_the_lane_and_jobs_wait(queue: MachineQueue) -> None:
    with holding(queue, "--why", "to measure", *UP):
        answer = asked(queue, "is-free", "gpu", user="anna")
        assert (answer["state"], answer["free"]) == ("leased", False)
        (row,) = asked(queue, "owners", "gpu", user="anna")
        assert (row["standing"], row["user"], row["detail"]) == ("leased", "root", "to measure")
        queue.put("1-gpu-waits", "true", owner="anna")
        queue.wait_reason("1-gpu-waits", "leased")
        queue.put("2-net-waits", "true")
        queue.wait_reason("2-net-waits", "excluded-lane")
    queue.wait("1-gpu-waits", "done")
    queue.wait("2-net-waits", "done")


def test_it_yields_to_a_user_s_job(queue: MachineQueue) -> None:
    with holding(queue, "--yield", *UP) as process:
        queue.put("3-gpu-hers", "true", owner="anna")
        assert process.stderr
        assert "job 3-gpu-hers waits for lane gpu: SIGTERM to pid" in process.stderr.readline()
        assert process.wait(LIMIT_SEC) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    queue.wait("3-gpu-hers", "done")


def test_a_user_without_leave_is_refused_and_the_command_not_run(queue: MachineQueue) -> None:
    argv = ["sdqueue", "--system", "hold", "gpu", "--", "echo", "ran"]
    done = queue.container.run(argv, user="anna", check=False)
    assert (done.returncode, done.stdout) == (5, "")
    assert "authorization" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_example_of_an_engine_starts_only_while_the_lane_is_free(queue: MachineQueue) -> None:
    machine = queue.container
    program = machine.run(["sh", "-c", "command -v sdqueue"]).stdout.strip()
    engine = machine.root / "usr/local/bin/llama-server"
    engine.write_text("#!/bin/sh\nexec sleep 1000\n")
    engine.chmod(0o755)
    text = EXAMPLE.read_text().replace("ExecStart=sdqueue --user", f"ExecStart={program} --system")
    text = text.replace("--yield=30s", "--yield").replace("%h/models", "/srv")
    (machine.root / f"etc/systemd/system/{EXAMPLE.name}").write_text(text)
    machine.run(["systemctl", "daemon-reload"])
    machine.run(["systemctl", "start", "llm-engine@one"])
    (row,) = asked(queue, "owners", "gpu", user="anna")
    assert (row["standing"], row["unit"]) == ("leased", "llm-engine@one.service")
    assert machine.run(["systemctl", "start", "llm-engine@two"], check=False).returncode != 0
    assert "leased to llama-server" in machine.show("llm-engine@two.service", "StatusText")
    queue.put("4-gpu-hers", "true", owner="anna")
    queue.wait("4-gpu-hers", "done")
    ended = ["inactive", "success"]
    eventually(
        lambda: (
            [machine.show("llm-engine@one.service", k) for k in ("ActiveState", "Result")] == ended
        ),
        "the engine to have ended well",
    )
