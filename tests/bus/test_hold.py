"""`hold` and `adopt`: commands by hand that have a lane, on a real user manager."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sdqueue import pipes
from tests.bus.test_cli_live import PROGRAM, Live
from tests.harness.manager import PrivateManager
from tests.harness.tools import needs
from tests.harness.waiting import LIMIT_SEC, eventually, wait_exit

NAMED = f"engine-{os.getpid()}"
CONFIG = f"""
[lane.gpu]
excludes = ["net"]
[lane.net]
[lane.cpu]
[lane.named]
foreign = ["{NAMED}"]
"""


@pytest.fixture
def own(manager: PrivateManager) -> Iterator[Live]:
    """Give a controller of this test's own, to be killed and started at will."""
    live = Live(manager)
    live.start()
    yield live
    live.stop()


@pytest.fixture(scope="module")
def module_live() -> Iterator[Live]:
    from tests.harness import manager as managers
    from tests.harness.tools import require

    require(managers.missing())
    with PrivateManager() as manager:
        config = manager.home / ".config/sdqueue"
        config.mkdir(parents=True)
        (config / "sdqueue.toml").write_text(CONFIG)
        live = Live(manager)
        live.start()
        yield live
        live.stop()
        print((manager.home / "daemon.log").read_text())


@pytest.fixture
def live(module_live: Live) -> Iterator[Live]:
    """Give the controller of all tests here, whose lanes are free before and after."""
    yield module_live
    module_live("cancel", "*")
    module_live("wait", "--all")
    module_live("remove", "*")
    eventually(lambda: state(module_live) == state(module_live, "net") == "free", "both to be free")


def state(live: Live, lane: str = "gpu") -> str:
    return str(live.json_of("is-free", lane)["state"])


@contextmanager
def holding(live: Live, *words: str, lane: str = "gpu") -> Iterator["subprocess.Popen[str]"]:
    """Have a command hold a lane that says `up` when it has it."""
    with calling(live, "hold", lane, *words) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        yield process


@contextmanager
def calling(live: Live, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Call the program with pipes all around it; it is killed in the end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with live.popen(*words, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


SLEEP = ("--", "sh", "-c", "echo up; exec sleep 1000")


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), -9),
        (("/no/such/program",), 127),
        (("/etc/passwd",), 127),
    ],
    ids=["0", "7", "a signal", "no program", "no executable"],
)
def test_its_exit_status_is_the_commands(live: Live, command: tuple[str, ...], status: int) -> None:
    assert live("hold", "gpu", "--", *command).returncode == status


def test_it_becomes_the_command_with_all_that_the_caller_gave_it(live: Live) -> None:
    script = "echo $$ $(ps -o pgid= -p $$) $SDQUEUE_LEASE; exec cat"
    with calling(live, "hold", "gpu", "--", "sh", "-c", script) as process:
        out, err = process.communicate("what stdin says", timeout=LIMIT_SEC)
    first, rest = out.split("\n", 1)
    pid, group, lease = first.split()
    assert (int(pid), int(group)) == (process.pid, os.getpgrp())
    assert lease.startswith("/org/sdqueue1/lease/")
    assert (rest, err) == ("what stdin says", "")


def test_no_signal_is_ignored_in_the_command_that_would_not_be_without_hold(live: Live) -> None:
    asked = ["grep", "SigIgn", "/proc/self/status"]
    done = live("hold", "gpu", "--", *asked)
    bare = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout == bare.stdout


def test_the_lane_is_leased_as_long_as_the_command_runs(live: Live) -> None:
    with holding(live, "--why", "to measure", *SLEEP) as process:
        assert state(live) == "leased"
        (row,) = live.json("owners", "gpu")
        assert (row["standing"], row["pid"], row["comm"]) == ("leased", process.pid, "sh")
        assert row["detail"] == "to measure"
        live.submit("--lane", "net", "--name", "n", "--", "true")
        eventually(lambda: live.row("n")["reason"]["code"] == "excluded-lane")
        text = live("why", "n").stdout
        assert f"leased to sh, pid {process.pid} (to measure)" in text
        assert "sh" in live("status").stdout
        assert live("is-free", "gpu").returncode == 1
    assert live("wait", "n").returncode == 0


def test_it_is_refused_with_the_reason_and_the_command_not_run(live: Live) -> None:
    with holding(live, *SLEEP) as process:
        done = live("hold", "gpu", "--wait-timeout=0", "--", "echo", "ran")
        assert (done.returncode, done.stdout) == (5, "")
        assert f"leased to sh, pid {process.pid}" in done.stderr
        assert done.stderr.count("\n") == 1
        done = live("hold", "net", "--wait-timeout=50ms", "--", "echo", "ran")
        assert (done.returncode, done.stdout) == (5, "")
        assert done.stderr.splitlines()[1:] == ["sdqueue: lane net was not had in time."]
    assert live("hold", "gup", "--", "true").returncode == 2


def test_it_says_once_whom_it_waits_for_and_has_the_lane_after_that(live: Live) -> None:
    live.submit("--lane", "gpu", "--name", "g", "--", "sleep", "1000")
    live.wait_state("g", "running")
    with calling(live, "hold", "gpu", "--", "echo", "ran") as process:
        assert process.stderr
        assert process.stderr.readline() == (
            "sdqueue: lane gpu is taken by sdqueue-job-g.service; waits for it\n"
        )
        eventually(lambda: lane(live)["requests"] == ["echo"])
        assert "echo" in live("status").stdout
        live("cancel", "g")
        assert process.communicate(timeout=LIMIT_SEC) == ("ran\n", "")


def lane(live: Live, name: str = "gpu") -> dict[str, object]:
    rows: list[dict[str, object]] = live.json("status")["lanes"]
    return next(row for row in rows if row["name"] == name)


def test_who_waits_for_a_lane_is_not_taken_for_who_uses_it(live: Live) -> None:
    engine = live.manager.home / NAMED
    engine.write_text("#!/bin/sh\nexec sleep 0\n")
    engine.chmod(0o755)
    live.submit("--lane", "named", "--name", "g", "--", "sleep", "1000")
    live.wait_state("g", "running")
    with calling(live, "hold", "named", "--", str(engine)) as process:
        eventually(lambda: lane(live, "named")["requests"] == [NAMED])
        comm = Path(f"/proc/{process.pid}/comm")
        assert comm.read_text() == "sdqueue-hold\n"
        live("cancel", "g")
        assert process.wait(LIMIT_SEC) == 0


def test_what_goes_along_with_a_command_has_not_its_name(live: Live) -> None:
    with holding(live, *SLEEP) as process:
        comms = {comm_of(pid): pid for pid in holders_of(process.pid)}
        assert set(comms) == {"sleep", "sdqueue-hold"}
        assert comms["sleep"] == process.pid


def holders_of(pid: int) -> list[int]:
    """Find the processes that have a pipe open for writing that this one has beyond its three."""
    links = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if int(each.name) > 2]
    (inode,) = {int(link[6:-1]) for link in links if link.startswith("pipe:")}
    return list(pipes.writers(inode))


def comm_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")


def test_ctrl_c_while_it_waits_asks_for_nothing_more(live: Live) -> None:
    with holding(live, *SLEEP):
        with calling(live, "hold", "gpu", "--", "true") as process:
            assert process.stderr
            process.stderr.readline()
            eventually(lambda: lane(live)["requests"] == ["true"])
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_SEC) == -signal.SIGINT
        eventually(lambda: lane(live)["requests"] == [])


@pytest.mark.parametrize("name", ["gpu", "net"])
def test_it_yields_to_a_job_that_waits_for_the_lane_or_one_that_it_excludes(
    live: Live, name: str
) -> None:
    with holding(live, "--yield", *SLEEP) as process:
        live.submit("--lane", name, "--name", "j", "--", "true")
        assert process.wait(LIMIT_SEC) == -signal.SIGTERM
        assert process.stderr
        said = process.stderr.readline()
        assert said == f"sdqueue: job j waits for lane gpu: SIGTERM to pid {process.pid}\n"
    assert live("wait", "j").returncode == 0


def test_a_command_that_is_stopped_yields_too(live: Live) -> None:
    with holding(live, "--yield", *SLEEP) as process:
        process.send_signal(signal.SIGSTOP)
        eventually(lambda: process_state(process.pid) == "T", "it to be stopped")
        live.submit("--lane", "gpu", "--name", "j", "--", "true")
        assert process.wait(LIMIT_SEC) == -signal.SIGTERM


def test_without_yield_nothing_is_sent(live: Live) -> None:
    with holding(live, *SLEEP) as process:
        live.submit("--lane", "gpu", "--name", "j", "--", "true")
        eventually(lambda: lane(live)["waiters"] == ["job j"])
        assert process.poll() is None
        assert live.row("j")["reason"]["code"] == "leased"


def test_a_command_that_finishes_its_work_at_sigterm_is_waited_for(live: Live) -> None:
    script = 'trap "echo finishing; read go; exit 3" TERM; echo up; while :; do sleep 0.02; done'
    with calling(live, "hold", "gpu", "--yield", "--", "bash", "-c", script) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        live.submit("--lane", "gpu", "--name", "j", "--", "true")
        assert process.stdout.readline() == "finishing\n"
        assert live.row("j")["reason"]["code"] == "leased"
        process.communicate("go\n", timeout=LIMIT_SEC)
    assert process.returncode == 3
    assert live("wait", "j").returncode == 0


def test_what_the_command_leaves_behind_has_the_lane_and_yields_too(live: Live) -> None:
    script = "sleep 1000 >/dev/null 2>&1 & echo $!; echo up; exec sleep 1000"
    with calling(live, "hold", "gpu", "--yield", "--", "sh", "-c", script) as process:
        assert process.stdout
        left = int(process.stdout.readline())
        live.submit("--lane", "gpu", "--name", "j", "--", "true")
        assert process.wait(LIMIT_SEC) == -signal.SIGTERM
        assert live("wait", "j").returncode == 0
        wait_exit(left)
        assert process.stderr
        assert f"SIGTERM to pid {left} of the command, which goes on" in process.stderr.read()


def test_what_an_ended_command_leaves_behind_is_named(live: Live) -> None:
    script = "sleep 1000 >/dev/null 2>&1 & echo $!"
    done = live("hold", "gpu", "--", "sh", "-c", script)
    left = int(done.stdout)
    try:
        eventually(lambda: f"pid {left}" in str(live.json_of("is-free", "gpu")["detail"]))
        assert state(live) == "leased"
        assert f"pid {left} of the command goes on, and has lane gpu" in done.stderr
    finally:
        os.kill(left, signal.SIGKILL)


def test_a_command_that_closes_what_it_did_not_open_has_the_lane_all_the_same(live: Live) -> None:
    script = "import os, time; os.closerange(3, 256); print('up', flush=True); time.sleep(1000)"
    with holding(live, "--", sys.executable, "-c", script) as process:
        live.submit("--lane", "gpu", "--name", "j", "--", "true")
        eventually(lambda: live.row("j")["reason"]["code"] == "leased")
        process.kill()
        assert live("wait", "j").returncode == 0


def test_kill_9_of_the_command_ends_the_lease(live: Live) -> None:
    with holding(live, *SLEEP) as process:
        process.kill()
        eventually(lambda: state(live) == "free", "the lane to be free")


def test_it_yields_after_the_controller_was_killed_and_another_came(own: Live) -> None:
    with holding(own, "--yield", *SLEEP) as process:
        own.stop(signal.SIGKILL)
        own.start()
        eventually(lambda: state(own) == "leased", "the lease to be found again")
        own.submit("--lane", "gpu", "--name", "j", "--", "true")
        assert process.wait(LIMIT_SEC) == -signal.SIGTERM
    assert own("wait", "j").returncode == 0


def test_who_waits_for_the_lane_waits_on_while_the_controller_is_away(own: Live) -> None:
    own.submit("--lane", "gpu", "--name", "g", "--", "sleep", "1000")
    own.wait_state("g", "running")
    with calling(own, "hold", "gpu", "--", "echo", "ran") as process:
        assert process.stderr
        process.stderr.readline()
        eventually(lambda: lane(own)["requests"] == ["echo"])
        own.stop(signal.SIGKILL)
        assert "waits for another one" in process.stderr.readline()
        own.start()
        own("cancel", "g")
        assert process.communicate(timeout=LIMIT_SEC) == ("ran\n", "")


def test_who_takes_the_lease_away_is_heard_and_the_command_told(live: Live) -> None:
    with holding(live, "--yield=1h", *SLEEP) as process:
        unit = str(live.json_of("is-free", "gpu")["holder"])
        live.manager.run(["systemctl", "--user", "stop", unit])
        assert process.wait(LIMIT_SEC) == -signal.SIGTERM
        assert process.stderr
        assert "the lease of lane gpu was taken away: its unit was stopped" in process.stderr.read()


def test_within_a_job_it_refuses_the_lane_that_the_job_has(live: Live) -> None:
    program = " ".join((sys.executable, "-m", "sdqueue", "--user"))
    body = f"PYTHONPATH={Path(__file__).parents[2]} {program} hold net -- true; echo status $?"
    done = live("run", "--lane", "gpu", "--", "bash", "-c", body)
    assert done.stdout.splitlines()[-1:] == ["status 5"], done.stdout


@needs("script")
def test_a_shell_at_a_terminal_stops_it_goes_on_with_it_and_ends_it(live: Live) -> None:
    program = shlex.join([*PROGRAM, "hold", "gpu", "--", "sleep", "1000"])
    env = {"PYTHONPATH": str(Path(__file__).parents[2]), "PS1": "", "HISTFILE": ""}
    argv = ["script", "-qfec", "bash --norc --noprofile -i", "/dev/null"]
    null = subprocess.DEVNULL
    with live.manager.popen(
        argv, env=env, stdin=subprocess.PIPE, stdout=null, stderr=null
    ) as terminal:

        def types(text: str) -> None:
            assert terminal.stdin
            terminal.stdin.write(text)
            terminal.stdin.flush()

        try:
            types(f"{program}\n")
            eventually(lambda: state(live) == "leased", "the lane to be held")
            pid = int(live.json("owners", "gpu")[0]["pid"])
            eventually(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
            types("\x1a")
            eventually(lambda: process_state(pid) == "T", "Ctrl-Z to stop it")
            assert state(live) == "leased"
            types("fg\n")
            eventually(lambda: process_state(pid) == "S", "fg to let it go on")
            types("\x03")
            wait_exit(pid)
            eventually(lambda: state(live) == "free", "the lane to be free")
            types("echo $? >$HOME/status\n")
            status = live.manager.home / "status"
            eventually(lambda: status.exists() and status.read_text() == "130\n", "its status")
        finally:
            terminal.kill()


def process_state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# Adopting ---------------------------------------------------------------------------------------


def test_a_process_that_runs_already_is_adopted_until_it_ends(live: Live) -> None:
    with live.manager.popen(["sleep", "1000"]) as process:
        done = live("adopt", "gpu", str(process.pid), "--name", "bench")
        assert (done.returncode, done.stdout) == (0, "lane gpu is held for bench until that ends\n")
        answer = live.json_of("is-free", "gpu")
        assert (answer["state"], "bench" in answer["detail"]) == ("leased", True)
        assert live("adopt", "gpu", str(process.pid)).returncode == 5
        process.kill()
    eventually(lambda: state(live) == "free", "the lane to be free")


def test_a_unit_is_adopted_with_all_that_is_in_it(live: Live) -> None:
    live.manager.run(["systemd-run", "--user", "--unit=bench", "sleep", "1000"])
    assert live.json("adopt", "gpu", "bench")["what"] == "bench.service"
    assert state(live) == "leased"
    live.manager.run(["systemctl", "--user", "stop", "bench.service"])
    eventually(lambda: state(live) == "free", "the lane to be free")


@pytest.mark.parametrize("what", ["no-such.service", str(2**22 + 1), "../x.service"])
def test_what_does_not_run_is_not_adopted(live: Live, what: str) -> None:
    done = live("adopt", "gpu", what)
    assert done.returncode in (1, 2), done.stderr
    assert state(live) == "free"
