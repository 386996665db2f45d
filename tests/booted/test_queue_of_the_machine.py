"""Root's queue on a booted machine: whose job runs as whom, reboots, power cuts, another PID 1."""

from collections.abc import Iterator

import pytest

from tests.harness.machine import SERVICE, MachineQueue
from tests.harness.waiting import eventually

GO = "/var/lib/go"
HELD = f"until [ -e {GO} ]; do sleep 0.05; done; "
"""A job that runs until the test lets it go."""
POLITE = f"trap 'exit 0' TERM; until [ -e {GO} ]; do sleep 0.05 & wait; done; "
"""The same, and one that says that all is well when it is asked to end."""


@pytest.fixture
def queue(machine: MachineQueue) -> Iterator[MachineQueue]:
    """Give the queue, and show what it did where a test fails."""
    (machine.container.root / GO[1:]).unlink(missing_ok=True)
    yield machine
    print(machine.said()[-3000:], *machine.events()[-60:], sep="\n")


def let_go(queue: MachineQueue) -> None:
    """Have held jobs come to their end."""
    (queue.container.root / GO[1:]).touch()


def test_a_job_of_root_runs_and_the_journal_knows_it_by_name(queue: MachineQueue) -> None:
    queue.put("1-cpu-root", "id -u; pwd")
    queue.wait("1-cpu-root", "done")
    said = [line["MESSAGE"] for line in queue.container.journal("SDQUEUE_JOB=1-cpu-root")]
    assert "0" in said
    assert "/root" in said
    assert queue.container.show(SERVICE, "NRestarts") == "0"


def test_a_user_s_job_runs_as_that_user_and_never_as_root(queue: MachineQueue) -> None:
    body = 'id -un >"$STATE_DIRECTORY/who"; pwd >>"$STATE_DIRECTORY/who"'
    checks = ('DONE_IF: id -un >>"$STATE_DIRECTORY/asked"; [ -s "$STATE_DIRECTORY/who" ]',)
    queue.put("1-cpu-hers", body, *checks, owner="anna")
    queue.wait("1-cpu-hers", "done")
    assert (queue.work("1-cpu-hers") / "who").read_text().split() == ["anna", "/home/anna"]
    assert set((queue.work("1-cpu-hers") / "asked").read_text().split()) == {"anna"}


def test_a_job_can_not_lead_root_by_a_link_in_its_run_directory(queue: MachineQueue) -> None:
    victim = queue.container.root / "etc/victim"
    victim.write_text("whole\n")
    body = 'for file in exit whole run.json; do ln -sf /etc/victim "${SDQUEUE_RUN%/*}/$file"; done'
    queue.put("1-cpu-evil", f"{body}; true", owner="bert")
    queue.wait("1-cpu-evil", "done")
    assert victim.read_text() == "whole\n"
    assert queue.record("1-cpu-evil")["rc"] == 0


def test_a_file_of_nobody_waits_with_that_reason_and_holds_nobody_up(queue: MachineQueue) -> None:
    queue.put("1-cpu-nobodys", "true", owner="4242")
    queue.put("2-cpu-good", "true", owner="anna")
    queue.wait("2-cpu-good", "done")
    queue.wait_reason("1-cpu-nobodys", "bad-file")
    (queue.spool / "queue/1-cpu-nobodys.job").unlink()


def test_a_file_that_everyone_may_write_is_refused(queue: MachineQueue) -> None:
    queue.put("1-cpu-open", "true", "NOT_BEFORE: 2099-01-01", owner="anna")
    (queue.spool / "queue/1-cpu-open.job").chmod(0o666)
    queue.wait_reason("1-cpu-open", "bad-file")
    (queue.spool / "queue/1-cpu-open.job").unlink()


@pytest.mark.parametrize("where", ["/home/anna/old", "/dev/shm/old"])
def test_the_jobs_of_a_user_s_old_queue_are_imported_and_run_as_that_user(
    queue: MachineQueue, where: str
) -> None:
    name = f"3-cpu-{where.split('/')[1]}"
    make = f"umask 022; mkdir -p {where}/queue {where}/done; cd {where}; "
    make += f"echo 'id -un >\"$STATE_DIRECTORY/who\"' >queue/{name}.job"
    queue.container.run(["sh", "-ec", make], user="anna")
    (queue.container.root / f"{where[1:]}/queue/4-cpu-of-root.job").write_text("true\n")
    done = queue.container.run(["sdqueue", "import", where], check=False)
    assert done.returncode == 1, "root's file in her directory is nobody's job"
    assert "belongs to uid 0 and would run so" in done.stdout
    queue.wait(name, "done")
    assert (queue.work(name) / "who").read_text() == "anna\n"


def test_excluded_lanes_wait_for_each_other_and_the_slice_counts(queue: MachineQueue) -> None:
    queue.put("1-gpu-held", HELD)
    unit = queue.wait_running("1-gpu-held")
    queue.put("2-net-next", "true")
    queue.wait_reason("2-net-next", "excluded-lane")
    if int(queue.container.version) >= 258:
        assert queue.container.show("sdqueue-gpu.slice", "ConcurrencyHardMax") == "1"
        intruder = ["systemd-run", "--slice=sdqueue-gpu.slice", "--property=Type=oneshot", "true"]
        refused = queue.container.run(intruder, check=False)
        assert "oncurrency" in refused.stderr
    assert queue.container.show(unit, "ActiveState") == "activating"
    let_go(queue)
    queue.wait("2-net-next", "done")
    queue.wait("1-gpu-held", "done")


def test_a_new_pid_1_and_a_new_controller_in_mid_run_change_nothing(queue: MachineQueue) -> None:
    queue.put("1-cpu-reexec", f'{HELD} echo ran >>"$STATE_DIRECTORY/ran"')
    unit = queue.wait_running("1-cpu-reexec")
    pid = queue.container.show(unit, "MainPID")
    queue.container.run(["systemctl", "daemon-reexec"])
    queue.kill()
    queue.start()
    queue.container.run(["systemctl", "daemon-reexec"])
    eventually(lambda: queue.words("1-cpu-reexec")[-1:] == ["reattached"], "the reattachment")
    assert queue.container.show(unit, "MainPID") == pid
    let_go(queue)
    queue.wait("1-cpu-reexec", "done")
    assert (queue.work("1-cpu-reexec") / "ran").read_text().split() == ["ran"]
    assert [word for word in queue.words("1-cpu-reexec") if word != "stopped"] == [
        "start",
        "reattached",
        "done",
    ]


@pytest.mark.parametrize("how", ["reboot", "power_cut"])
@pytest.mark.parametrize("body", [HELD, POLITE], ids=["killed", "exits 0 when asked to end"])
def test_a_run_that_the_machine_cut_short_is_run_again_and_nothing_spent(
    queue: MachineQueue, how: str, body: str
) -> None:
    name = f"1-cpu-{how.replace('_', '')}-{'held' if body is HELD else 'polite'}"
    mark = 'echo "$SDQUEUE_ATTEMPT" >>"$STATE_DIRECTORY/began"; '
    queue.put(name, f'{mark} {body} echo ran >>"$STATE_DIRECTORY/ran"', "RETRIES: 1", owner="anna")
    queue.put("2-cpu-after", "true")
    queue.wait_running(name)
    eventually(lambda: (queue.work(name) / "began").exists(), "its first line")
    getattr(queue.container, how)()
    eventually(lambda: queue.words(name)[-2:] == ["recovered", "start"], "its second start")
    let_go(queue)
    queue.wait(name, "done")
    queue.wait("2-cpu-after", "done")
    assert (queue.work(name) / "began").read_text().split() == ["1", "1"]
    assert (queue.work(name) / "ran").read_text().split() == ["ran"]
    assert queue.record(name, 2)["attempt"] == 1
