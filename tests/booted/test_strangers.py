"""The machine's queue and its users: who may look at what, and change what, and how much of it.

One machine of each systemd, with a real polkit; root's jobs, anna's and bert's in one queue.
"""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.harness.container import PYTHONPATH
from tests.harness.machine import SERVICE, MachineQueue
from tests.harness.waiting import LIMIT_SEC, eventually

GO = "/var/lib/go"
HELD = f"until [ -e {GO} ]; do sleep 0.05; done; "
SECRET = "not for everybody"
DONE_IF = 'DONE_IF: test -e "$STATE_DIRECTORY/x"'
RULES = "etc/polkit-1/rules.d/10-test.rules"
LET = """
polkit.addRule(function(action, subject) {
    if (%s.indexOf(action.id) >= 0 && subject.user == "bert") return polkit.Result.YES;
});
"""
BUSCTL = ["busctl", "--json=short", "call", "org.sdqueue1", "/org/sdqueue1", "org.sdqueue1.Manager"]
ACQUIRE = ["AcquireLease", "sssa{sv}", "cpu", "me", "", "0"]


@pytest.fixture
def queue(machine: MachineQueue) -> Iterator[MachineQueue]:
    (machine.container.root / GO[1:]).unlink(missing_ok=True)
    yield machine
    (machine.container.root / GO[1:]).touch()
    print(machine.said()[-3000:], *machine.events()[-60:], sep="\n")


def call(
    queue: MachineQueue, user: str, *words: str, interactive: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Call a method of the manager as a user."""
    may_ask = f"--allow-interactive-authorization={'yes' if interactive else 'no'}"
    return queue.container.run([*BUSCTL[:1], may_ask, *BUSCTL[1:], *words], user=user, check=False)


def answer(queue: MachineQueue, user: str, *words: str) -> str:
    """Return what a call is answered, good or bad."""
    done = call(queue, user, *words)
    return done.stdout + done.stderr


def let_bert(queue: MachineQueue, *actions: str) -> None:
    """Have polkit let bert do these, and nothing else that it would not."""
    rules = queue.container.root / RULES
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(LET % json.dumps([f"org.sdqueue1.{action}" for action in actions]))
    queue.container.run(["systemctl", "restart", "polkit.service"])


def test_everybody_may_look_and_what_a_file_says_is_its_owner_s(queue: MachineQueue) -> None:
    late = "NOT_BEFORE: 2099-01-01"
    for owner in ("root", "anna", "bert"):
        queue.put(f"1-cpu-{owner}s", "true", late, f"DESCRIPTION: {SECRET}", owner=owner)
        queue.wait_reason(f"1-cpu-{owner}s", "not-before")
    for user, secrets in (("root", 3), ("anna", 1), ("bert", 1)):
        said = answer(queue, user, "ListJobs", "as", "0")
        assert "1-cpu-berts" in said
        assert said.count(SECRET) == secrets
        assert "gpu" in answer(queue, user, "ListLanes")
        assert "not-before" in answer(queue, user, "Why", "s", "1-cpu-berts")
    state = "/org/sdqueue1/lane/cpu", "org.sdqueue1.Lane", "State"
    ask = ["busctl", "get-property", "org.sdqueue1", *state]
    assert "free" in queue.container.run(ask, user="anna").stdout
    for owner in ("root", "anna", "bert"):
        queue.ask("CancelJob", "s", f"1-cpu-{owner}s")


def test_nobody_submits_as_somebody_else(queue: MachineQueue) -> None:
    tries = (
        "cp /etc/hostname /var/lib/sdqueue/queue/1-cpu-evil.job",
        "mv ~/x /var/lib/sdqueue/queue/",
        "ls /var/lib/sdqueue/queue",
        "ls /var/lib/sdqueue/runs",
        "sdqueue --system submit --name=1-cpu-evil -- true",
        "sdqueue --system pause cpu",
        "ln -s /etc /var/lib/sdqueue/work/1-cpu-evil",
    )
    for command in tries:
        done = queue.container.run(["sh", "-c", f"touch ~/x; {command}"], user="anna", check=False)
        assert done.returncode != 0, command
    assert queue.state("1-cpu-evil") == ""


def test_a_user_cancels_her_own_job_and_no_other(queue: MachineQueue) -> None:
    queue.put("2-cpu-annas", HELD, owner="anna")
    queue.wait_running("2-cpu-annas")
    for owner in ("root", "bert"):
        queue.put(f"3-cpu-{owner}s", HELD, owner=owner)
    queue.put("9-cpu-annas", "true", owner="anna")
    queue.wait_reason("9-cpu-annas", "earlier-job")
    for interactive in (False, True):
        for name in ("3-cpu-roots", "3-cpu-berts"):
            refused = call(queue, "anna", "CancelJob", "s", name, interactive=interactive)
            assert refused.returncode != 0
            assert "may not cancel jobs of other users" in refused.stderr
    assert "stopping" in answer(queue, "anna", "CancelJob", "s", "2-cpu-annas")
    assert "parked" in answer(queue, "anna", "CancelJob", "s", "9-cpu-annas")
    queue.wait("2-cpu-annas", "parked")
    (event,) = queue.events("2-cpu-annas", event="canceled")
    assert event["by"] == int(queue.container.run(["id", "-u", "anna"]).stdout)
    (queue.container.root / GO[1:]).touch()
    for name in ("3-cpu-roots", "3-cpu-berts"):
        queue.wait(name, "done")


def test_the_command_line_of_a_user_looks_and_cancels_what_is_hers(queue: MachineQueue) -> None:
    def say(*words: str) -> "subprocess.CompletedProcess[str]":
        return queue.container.run(["sdqueue", "--system", *words], user="anna", check=False)

    queue.put("7-cpu-berts", HELD, owner="bert")
    queue.wait_running("7-cpu-berts")
    queue.put("8-cpu-annas", "true", owner="anna")
    queue.wait_reason("8-cpu-annas", "lane-taken")
    for words in (("status",), ("list",), ("plan",), ("why", "8-*"), ("why", "8-cpu-annas")):
        done = say(*words)
        assert (done.returncode, "8-cpu-annas" in done.stdout) == (0, True), (words, done)
    assert (say("is-free", "gpu").returncode, say("is-free", "cpu").returncode) == (0, 1)
    assert say("why", "nobodys").returncode == 4
    assert "may not cancel jobs of other users" in say("cancel", "7-cpu-berts").stderr
    assert "may not pause lanes" in say("pause", "cpu").stderr
    assert "may not take a lane" in say("hold", "gpu", "--", "true").stderr
    assert say("cancel", "8-*").returncode == 0
    queue.wait("8-cpu-annas", "parked")
    assert queue.state("7-cpu-berts") == "running"
    assert "chown" not in say("doctor").stdout
    (queue.container.root / GO[1:]).touch()
    queue.wait("7-cpu-berts", "done")


def test_who_may_pause_a_lane_is_polkit_s_to_say(queue: MachineQueue) -> None:
    let_bert(queue, "manage-lanes")
    assert "without authorization" in answer(queue, "anna", "PauseLane", "sb", "cpu", "true")
    assert queue.events(event="paused") == []
    assert call(queue, "bert", "PauseLane", "sb", "cpu", "true").returncode == 0
    eventually(lambda: len(queue.events(event="paused")) == 1, "the pause")
    assert "without authorization" in answer(queue, "bert", *ACQUIRE)
    assert call(queue, "bert", "PauseLane", "sb", "cpu", "false").returncode == 0
    eventually(lambda: len(queue.events(event="resumed")) == 1, "the end of the pause")


def test_without_polkit_root_is_the_only_one(queue: MachineQueue) -> None:
    let_bert(queue, "manage-lanes")
    queue.container.run(["systemctl", "mask", "--runtime", "--now", "polkit.service"])
    try:
        assert "polkit can't be asked" in answer(queue, "bert", "PauseLane", "sb", "cpu", "true")
        assert call(queue, "root", "PauseLane", "sb", "cpu", "false").returncode == 0
    finally:
        queue.container.run(["systemctl", "unmask", "--runtime", "polkit.service"])


@pytest.mark.parametrize("owner", ["root", "bert"])
def test_files_of_another_user_s_job_can_not_be_read(queue: MachineQueue, owner: str) -> None:
    name = f"4-cpu-{owner}s"
    queue.put(name, f'echo {SECRET}; touch "$STATE_DIRECTORY/x"', DONE_IF, owner=owner)
    queue.wait(name, "done")
    spool = "/var/lib/sdqueue"
    files = [
        *(f"{spool}/runs/{name}/1/{file}" for file in ("run.json", "script", "done_if", "exit")),
        *(f"{spool}/{file}" for file in (f"done/{name}.job", f"work/{name}/x", "events.jsonl")),
    ]
    for file in files:
        there = queue.container.run(["test", "-e", file], check=False).returncode == 0
        assert there or file.endswith(("exit", "done_if")), file
        read = queue.container.run(["cat", file], user="anna", check=False)
        assert (read.returncode != 0, read.stdout) == (True, ""), file
    logs = ["journalctl", "-q", "--no-pager", f"SDQUEUE_JOB={name}"]
    assert SECRET in queue.container.run(logs).stdout
    assert SECRET not in queue.container.run(logs, user="anna", check=False).stdout


def test_a_record_can_be_read_by_whose_job_it_is(queue: MachineQueue) -> None:
    queue.put("5-cpu-annas", 'cp "$SDQUEUE_RUN" "$STATE_DIRECTORY/seen"', owner="anna")
    queue.wait("5-cpu-annas", "done")
    assert json.loads((queue.work("5-cpu-annas") / "seen").read_text())["job"] == "5-cpu-annas"


def test_leases_need_leave(queue: MachineQueue) -> None:
    assert "without authorization" in answer(queue, "anna", *ACQUIRE)
    assert "without authorization" in answer(queue, "anna", "AdoptOwner", "sss", "cpu", "1", "x")
    assert queue.ask("ListLeases") == []


@pytest.mark.parametrize("machine", ["257"], indirect=True)
def test_a_flood_of_calls_does_not_stop_the_queue(queue: MachineQueue) -> None:
    began = queue.container.root / "home/anna/began"
    pid = queue.container.show(SERVICE, "MainPID")
    argv = ["python3", "/sdqueue/tests/booted/flooder.py", "20", "/home/anna/began"]
    flooder = queue.container.popen(
        argv, user="anna", env={"PYTHONPATH": PYTHONPATH}, stdout=subprocess.PIPE
    )
    with flooder:
        try:
            eventually(began.exists, "the flood")
            for number in range(3):
                name = f"6-cpu-meanwhile-{number}"
                queue.put(name, "true")
                queue.wait(name, "done")
                assert queue.ask("Plan") == []
            assert "cpu" in answer(queue, "bert", "ListLanes")
            assert flooder.poll() is None, "the flood was over too early"
            out, _ = flooder.communicate(timeout=LIMIT_SEC)
        finally:
            flooder.kill()
    count = json.loads(out)
    print(count)
    assert count["answered"] > 0
    assert count["org.sdqueue1.Error.LimitsExceeded"] > 0
    assert queue.container.show(SERVICE, "MainPID") == pid
    assert queue.container.show(SERVICE, "NRestarts") == "0"
