"""The verbs that look, without a controller: files suffice, JSON is pure, terminals are safe."""

import json
import os
import pty
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from sdqueue.cli.options import parser_for
from sdqueue.cli.verbs import GLOBAL_OPTIONS, VERBS
from sdqueue.core.keys import JOB_KEYS
from tests.harness.cli import Cli
from tests.harness.waiting import LIMIT_SEC


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
def five(cli: Cli) -> Cli:
    """Give a spool with a job in each state."""
    cli.queue("10-gpu-b", "true", "DESCRIPTION: ten")
    cli.queue("9-gpu-a", "true", "RETRIES: 5")
    cli.queue("r", "true", "LANE: cpu", state="running")
    cli.queue("d", state="done")
    cli.queue("f", state="failed")
    cli.queue("p", state="parked")
    run = cli.spool / "runs/f/2"
    run.mkdir(parents=True)
    record = {
        "job": "f",
        "run": 2,
        "attempt": 3,
        "rc": 7,
        "verified": False,
        "start": 1.0,
        "end": 61.5,
    }
    (run / "run.json").write_text(json.dumps(record))
    return cli


def test_list_shows_all_five_states_and_each_word_for_one_once(five: Cli) -> None:
    done = five("list")
    assert [line.split()[0] for line in done.lines[1:7]] == [
        "r",
        "9-gpu-a",
        "10-gpu-b",
        "p",
        "f",
        "d",
    ]
    words = done.out.split()
    assert {
        state: words.count(state) for state in ("queued", "running", "done", "failed", "parked")
    } == {
        "queued": 2,
        "running": 1,
        "done": 1,
        "failed": 1,
        "parked": 1,
    }


def test_list_json_is_one_array_on_one_line_with_every_key(five: Cli) -> None:
    done = five("list", "--json=short")
    assert done.out.count("\n") == 1
    rows = {row["name"]: row for row in done.json}
    assert all(list(row) == list(JOB_KEYS) for row in rows.values())
    assert rows["9-gpu-a"]["reason"]["code"] == "no-controller"
    assert rows["9-gpu-a"]["lane"] == "gpu"
    assert rows["9-gpu-a"]["attempts_max"] == 5
    assert rows["r"]["reason"] is None
    assert (rows["f"]["rc"], rows["f"]["verified"], rows["f"]["attempt"], rows["f"]["run"]) == (
        7,
        False,
        3,
        2,
    )
    assert rows["d"]["unit"] == "sdqueue-job-d.service"
    assert rows["d"]["since"] > 1.7e9


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--state=queued",), ["9-gpu-a", "10-gpu-b"]),
        (("--state=failed,done",), ["f", "d"]),
        (("--state=done", "--state", "failed"), ["f", "d"]),
        (("--lane=gpu",), ["9-gpu-a", "10-gpu-b"]),
        (("*-gpu-*",), ["9-gpu-a", "10-gpu-b"]),
        (("d.job", "f"), ["f", "d"]),
        (("none",), []),
        (("[!0-9]", "--state=parked"), ["p"]),
    ],
)
def test_list_narrows_by_state_lane_and_glob(
    five: Cli, words: tuple[str, ...], names: list[str]
) -> None:
    done = five.here("list", "--json=short", *words)
    assert [row["name"] for row in done.json] == names


def test_columns_appear_only_when_used(cli: Cli) -> None:
    cli.queue("a", "true", "LANE: cpu", state="done")
    assert cli.here("list").lines[0].split() == ["NAME", "LANE", "STATE", "SINCE"]
    cli.queue("b", "true", "LANE: cpu", "DESCRIPTION: why", state="done")
    assert "DESCRIPTION" in cli.here("list").lines[0]


def test_no_legend_leaves_only_the_rows(five: Cli) -> None:
    assert len(five.here("--no-legend", "list").lines) == 6


HOSTILE = ("esc\x1b]0;owned\x07", "line\nbreak", "\u202etxt.exe", "nul")


def test_control_characters_of_names_and_descriptions_never_reach_the_output(cli: Cli) -> None:
    for number, word in enumerate(HOSTILE):
        cli.queue(f"{number}-cpu-{word}", "true")
    cli.queue("9-cpu-x", "true", "DESCRIPTION: red \x1b[31m \u202e \x9b")
    (cli.spool / "queue").joinpath(os.fsdecode(b"\xff\xfe.job")).write_text("true\n")
    for words in (("list",), ("status",), ("show", "9-cpu-x"), ("why", "*"), ("status", "9*")):
        done = cli.here(*words)
        assert done.status == 0, done.err
        assert all(line.isprintable() for line in done.lines), (words, done.out)
        assert done.err.replace("\n", "").isprintable()
    assert len(cli("list", "--json=short").json) == 6


def test_what_is_no_job_file_is_listed_with_what_is_wrong(cli: Cli) -> None:
    cli.queue("a")
    os.mkfifo(cli.spool / "queue/1-cpu-fifo.job")
    (cli.spool / "queue/2-cpu-dir.job").mkdir()
    rows = {row["name"]: row for row in cli("list", "--json=short").json}
    assert "FIFO" in rows["1-cpu-fifo"]["description"]
    assert "directory" in rows["2-cpu-dir"]["description"]


def test_status_without_a_controller_says_so_and_how_to_start_it(five: Cli) -> None:
    done = five("status")
    assert done.status == 0
    assert "1 running, 2 queued, 1 parked, 1 failed, 1 done" in done.out
    assert (
        "not running, so nothing starts; start it with: systemctl --user start sdqueue" in done.out
    )
    assert five("--json=short").json["counts"]["queued"] == 2


def test_status_says_that_the_journal_dropped_lines_of_a_running_job(
    five: Cli, tmp_path: Path
) -> None:
    fake = tmp_path / "bin/journalctl"
    fake.parent.mkdir()
    said = [
        {"MESSAGE": f"Suppressed 41 messages from user@{os.geteuid()}.service", "N_DROPPED": "41"},
        {"MESSAGE": "Suppressed 9 messages from other.service", "N_DROPPED": "9"},
    ]
    fake.write_text("#!/bin/sh\n" + "".join(f"echo '{json.dumps(each)}'\n" for each in said))
    fake.chmod(0o755)
    done = five("status", env={"PATH": f"{fake.parent}:{os.environ['PATH']}"})
    assert "41 lines of running jobs were dropped" in done.out


def test_a_controller_that_holds_the_spool_and_does_not_answer_is_told_from_none(five: Cli) -> None:
    import fcntl

    five("submit", "--", "true")
    with (five.spool / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        done = five("status")
        assert "Controller: running" in done.out
        assert "does not answer on this bus" in done.out
        rows = five("list", "--json=short", "--state=queued").json
        assert {row["reason"]["code"] for row in rows} == {"no-answer"}
        quiet = five("submit", "--", "true")
        assert quiet.err == ""
        assert five("cancel", "9-gpu-a").status == 3
        assert "9-gpu-a" in five.jobs()


FORGED = (
    '{"start": NaN, "end": Infinity, "rc": "7", "run": [1], "attempt": {}, "verified": "yes"}',
    '{"start": 1e300, "end": -1e300, "rc": true, "invocation": 5, "note": "\\u001b[31m"}',
    '{"start": "x", "outcome": 1, "result": [], "kernel": {"a": NaN}}',
    "[]",
    '{"start": ' + "9" * 400 + "}",
)


@pytest.mark.parametrize("record", FORGED, ids=range(len(FORGED)))
def test_a_forged_record_of_a_run_spoils_nothing(five: Cli, record: str) -> None:
    (five.spool / "runs/f/2/run.json").write_text(record)
    for words in (("list",), ("show", "f"), ("status", "f")):
        done = five.here(*words)
        assert done.status == 0
        assert all(line.isprintable() for line in done.lines)
        strict = json.loads(five.here(*words, "--json").out, parse_constant=pytest.fail)
        assert next(row for row in strict if row["name"] == "f")["rc"] is None


def test_a_name_with_the_letters_of_a_pattern_is_found_by_itself(cli: Cli) -> None:
    cli.queue("1-cpu-a[1]")
    cli.queue("1-cpu-a1")
    rows = cli.here("list", "--json=short", "1-cpu-a[1]").json
    assert [row["name"] for row in rows] == ["1-cpu-a1", "1-cpu-a[1]"]


def test_status_of_a_queue_that_nobody_has_used_makes_nothing(cli: Cli) -> None:
    assert cli("status").status == 0
    assert cli("list", "--json=short").json == []
    assert not cli.spool.exists()


def test_status_exit_code_tells_whether_it_is_safe_to_reboot(cli: Cli) -> None:
    cli.queue("a")
    assert cli.here("status", "--exit-code").status == 0
    cli.queue("b", state="running")
    assert cli.here("status", "--exit-code").status == 1
    assert cli.here("status").status == 0


def test_show_gives_header_runs_file_and_dropins(five: Cli, tmp_path: Path) -> None:
    for directory in ("sdqueue-job-.service.d", "service.d"):
        dropin = tmp_path / "config/systemd/user" / directory / "50-nice.conf"
        dropin.parent.mkdir(parents=True)
        dropin.write_text("[Service]\nNice=5\n")
    (job,) = five("show", "9-gpu-a", "--json=short").json
    assert job["settings"] == {"LANE": ["gpu"], "RETRIES": ["5"]}
    assert job["file"] == str(five.spool / "queue/9-gpu-a.job")
    assert [Path(each).parent.name for each in job["dropins"]] == ["sdqueue-job-.service.d"]
    text = five("show", "f").out
    assert "1min" in text
    assert "exit status 7, DONE_IF does not hold" in text


def test_a_job_that_is_not_there_is_status_4_and_the_nearest_is_named(five: Cli) -> None:
    for verb in ("show", "why", "cancel", "logs", "wait"):
        done = five.here(verb, "9-gpu-b")
        assert (done.status, done.out) == (4, ""), verb
        assert "did you mean" in done.err, verb
    assert five.here("show", "z*").status == 4


@pytest.mark.parametrize("words", [("plan",), ("pause", "gpu"), ("resume", "gpu")])
def test_what_only_the_controller_knows_is_status_3_with_the_command_that_starts_it(
    five: Cli, words: tuple[str, ...]
) -> None:
    done = five(*words)
    assert (done.status, done.out) == (3, "")
    assert "systemctl --user start sdqueue.service" in done.err
    assert done.err.count("\n") == 1


def test_cancel_without_a_controller_sets_waiting_jobs_aside_and_names_what_stops_a_run(
    five: Cli,
) -> None:
    done = five("cancel", "9*", "r")
    assert done.status == 1
    assert five.jobs("parked") == ["9-gpu-a", "p"]
    assert "9-gpu-a: set aside" in done.out
    assert "systemctl --user stop sdqueue-job-r.service" in done.err
    ended = five("cancel", "f")
    assert ended.status == 1
    assert "f is failed already" in ended.err


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("d",), 0),
        (("d", "f"), 1),
        (("d", "p"), 5),
        (("p", "f"), 1),
        (("--timeout=10ms", "9-gpu-a"), 124),
        (("--timeout=10ms", "--all"), 124),
        (("--timeout=10ms", "--lane=gpu"), 124),
        (("--timeout=1h", "--lane=net"), 0),
    ],
)
def test_wait_says_by_its_status_how_jobs_ended(
    five: Cli, words: tuple[str, ...], status: int
) -> None:
    assert five.here("wait", *words).status == status


def test_wait_wakes_up_when_the_file_moves_also_by_way_of_the_queue(five: Cli) -> None:
    waiting = subprocess.Popen(
        five.argv("wait", "r", "9-gpu-a"),
        env=five.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with waiting:
        assert waiting.stderr
        assert "no controller is running" in waiting.stderr.readline()
        for name, ways in (
            ("r", ("running", "queue", "running", "done")),
            ("9-gpu-a", ("queue", "failed")),
        ):
            for old, new in pairwise(ways):
                os.rename(five.spool / old / f"{name}.job", five.spool / new / f"{name}.job")
        out, _ = waiting.communicate(timeout=LIMIT_SEC)
    assert (waiting.returncode, out.splitlines()) == (1, ["r done", "9-gpu-a failed"])


def test_a_job_can_neither_wait_for_itself_nor_run_in_the_lane_that_it_holds(five: Cli) -> None:
    inside = {"SDQUEUE_JOB": "r", "SDQUEUE_LANE": "gpu"}
    assert "its own end" in five("wait", "--all", env=inside).err
    for lane in ("gpu", "net"):
        done = five("run", "--lane", lane, "--", "true", env=inside)
        assert done.status == 1
        assert "would wait for ever" in done.err
    assert five.jobs() == ["10-gpu-b", "9-gpu-a"]


def _log(cli: Cli, *events: dict[str, object]) -> None:
    with (cli.spool / "events.jsonl").open("a") as log:
        log.writelines(json.dumps(event) + "\n" for event in events)


def test_events_are_the_log_and_narrow_by_job_and_kind(five: Cli) -> None:
    _log(
        five,
        *(
            {"ts": "T", "seq": n, "event": "wait", "job": f"j{n % 3}.job", "x": "a b"}
            for n in range(9)
        ),
    )
    _log(five, {"ts": "T", "seq": 9, "event": "error", "job": "-", "what": "\x1b[31m"})
    with (five.spool / "events.jsonl").open("a") as log:
        log.write('{"torn": ')
    assert len(five("events").lines) == 10
    assert [e["seq"] for e in five("events", "--json=short", "-n2").json] == [8, 9]
    assert [e["seq"] for e in five("events", "--json", "j1").json] == [1, 4, 7]
    assert [e["seq"] for e in five("events", "--json", "--event=error").json] == [9]
    assert five("events", "-n1").out == "T error        - what=\\x1b[31m\n"
    assert five("events", "-n", "x").status == 2


def test_events_follow_goes_on_with_what_is_written(five: Cli) -> None:
    _log(five, {"ts": "T", "seq": 1, "event": "start", "job": "a.job"})
    argv = five.argv("events", "-f", "--json=short", "a")
    with subprocess.Popen(argv, env=five.env, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout
        assert json.loads(follower.stdout.readline())["seq"] == 1
        _log(five, {"ts": "T", "seq": 2, "event": "start", "job": "b"})
        _log(five, {"ts": "T", "seq": 3, "event": "done", "job": "a"})
        assert json.loads(follower.stdout.readline())["seq"] == 3
        follower.terminate()


def test_logs_asks_journalctl_for_the_unit_or_for_one_runs_invocation(
    five: Cli, tmp_path: Path
) -> None:
    fake = tmp_path / "bin/journalctl"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    env = {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
    record = five.spool / "runs/f/1/run.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"invocation": "ab" * 16, "start": 0.5}))
    whole = " ".join(five("logs", "f", "-f", env=env).lines)
    mine = f"_UID={os.geteuid()}"
    assert whole == (
        f"--follow _SYSTEMD_USER_UNIT=sdqueue-job-f.service {mine}"
        f" + SYSLOG_IDENTIFIER=f _TRANSPORT=stdout {mine} + USER_UNIT=sdqueue-job-f.service {mine}"
    )
    one = " ".join(five("logs", "--run=1", "--json=short", "f", env=env).lines)
    assert one == (
        "--output=json --quiet --since=@0.500000 --until=@1.000000"
        f" _SYSTEMD_INVOCATION_ID={'ab' * 16} + USER_INVOCATION_ID={'ab' * 16}"
        f" + SYSLOG_IDENTIFIER=f _TRANSPORT=stdout {mine}"
    )
    assert five("logs", "--run", "-2", "f", env=env).lines[0] == "--since=@0.500000"
    missing = five("logs", "--run", "9", "f", env=env)
    assert (missing.status, "its runs are 1, 2" in missing.err) == (4, True)


def test_without_journalctl_logs_says_what_is_missing(five: Cli, tmp_path: Path) -> None:
    done = five("logs", "f", env={"PATH": str(tmp_path)})
    assert done.status == 1
    assert "there is no journalctl" in done.err


def test_nobody_reading_on_is_no_traceback(five: Cli) -> None:
    for number in range(2000):
        five.queue(f"{number}-cpu-x")
    command = "sdqueue list | head -n 1".replace("sdqueue", " ".join(five.argv()), 1)
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        env=five.env,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_ends_by_the_signal_and_says_nothing(five: Cli) -> None:
    argv = five.argv("wait", "r")
    with subprocess.Popen(argv, env=five.env, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr
        waiting.stderr.readline()
        waiting.send_signal(2)
        assert waiting.stderr.read() == ""
    assert waiting.returncode == -2


# On a terminal ----------------------------------------------------------------------------------


def on_terminal(cli: Cli, *words: str, columns: int = 60, rows: int = 100, **env: str) -> str:
    """Call on a terminal of that size and return what it would show."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**cli.env, "TERM": "xterm", **env}
    argv = cli.argv(*words)
    with subprocess.Popen(
        argv, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as child:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            shown += part
    os.close(ours)
    assert child.returncode == 0, shown
    return shown.decode().replace("\r\n", "\n")


def test_colour_is_for_terminals_and_can_be_refused(five: Cli) -> None:
    assert "\x1b[" not in five("list").out
    assert "\x1b[" in on_terminal(five, "list", SYSTEMD_PAGER="")
    assert "\x1b[" not in on_terminal(five, "list", NO_COLOR="1", SYSTEMD_PAGER="")
    assert "\x1b[" not in on_terminal(five, "list", SYSTEMD_COLORS="0", SYSTEMD_PAGER="")
    assert "\x1b[" in five("list", env={"SYSTEMD_COLORS": "1"}).out


def test_a_table_is_cut_to_the_terminal_and_not_to_a_pipe(cli: Cli) -> None:
    cli.queue("1-cpu-a", "true", f"DESCRIPTION: {'wort' * 40}")
    shown = on_terminal(cli, "list", NO_COLOR="1", SYSTEMD_PAGER="")
    assert max(map(len, shown.splitlines())) == 60
    assert "…" in shown
    assert "wort" * 40 in cli("list").out


def test_long_output_on_a_terminal_goes_through_the_pager(five: Cli) -> None:
    pager = "sed 's/^/P:/'"
    assert on_terminal(five, "list", rows=5, SYSTEMD_PAGER=pager).count("P:") > 5
    assert "P:" not in on_terminal(five, "list", rows=50, SYSTEMD_PAGER=pager)
    assert "P:" not in on_terminal(five, "list", "--no-pager", rows=5, SYSTEMD_PAGER=pager)
    assert "P:" in on_terminal(five, "list", rows=5, PAGER=pager)
    assert "9-gpu-a" in on_terminal(five, "list", rows=5, SYSTEMD_PAGER="no-such-pager-at-all")


# Every verb -------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help_that_names_its_options(cli: Cli, verb: object) -> None:
    from sdqueue import cli as front

    name = verb.name  # type: ignore[attr-defined]
    done = cli.here(name, "--help")
    assert (done.status, done.err) == (0, "")
    parser = parser_for(verb)  # type: ignore[arg-type]
    front.load(verb).add_arguments(parser)  # type: ignore[arg-type]
    for option in parser.options:
        assert all(flag in done.out for flag in option.flags)
        assert option.help, f"{name}: {option.name} has no help"


def test_the_overview_names_every_verb_and_option(cli: Cli) -> None:
    done = cli.here("--help")
    assert [verb.name for verb in VERBS if f"  {verb.name} " not in done.out] == []
    assert [each for each in GLOBAL_OPTIONS if each not in done.out and each != "-h"] == []
    assert cli.here("--version").out.startswith("sdqueue 0.")


def test_a_bare_sdqueue_is_status(five: Cli) -> None:
    assert five.here().lines[1] == five.here("status").lines[1]
