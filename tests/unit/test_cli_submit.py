"""`sdqueue submit` and `check`: files on disk, names on stdout, clear refusals."""

import os
from pathlib import Path

import pytest

from sdqueue.cli.compose import option_of
from sdqueue.jobkeys import KEYS
from tests.harness.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_the_name_and_nothing_else_is_on_stdout(cli: Cli) -> None:
    done = cli("submit", "--", "true")
    assert (done.status, done.out) == (0, "001-cpu-true\n")
    assert "no controller is running" in done.err
    assert "exec true" in cli.text("001-cpu-true")


def test_numbers_go_on_and_the_word_is_the_command(cli: Cli) -> None:
    cli.queue("041-net-x", state="done")
    assert (
        cli("submit", "--lane", "gpu", "--", "/usr/bin/python3", "a.py").out == "042-gpu-python3\n"
    )


def test_the_command_needs_no_dashes_before_it_and_keeps_its_own(cli: Cli) -> None:
    cli("submit", "--name", "a", "prog", "--json", "-x", "--", "it's")
    assert """exec prog --json -x -- 'it'"'"'s'""" in cli.text("a")


def test_options_stand_before_or_after_the_verb(cli: Cli) -> None:
    before, after = cli("--json=short", "submit", "true"), cli("submit", "--json=short", "true")
    assert [row["name"] for row in before.json + after.json] == ["001-cpu-true", "002-cpu-true"]


def test_every_header_key_is_an_option_and_is_written(cli: Cli) -> None:
    words = [word for key in KEYS for word in (option_of(key), key.example)]
    done = cli("submit", "--name", "all", *words, "--", "true")
    assert done.status == 0, done.err
    text = cli.text("all")
    assert [key.name for key in KEYS if f"\n# {key.name}: " not in text] == []
    assert cli("check", str(cli.spool / "queue/all.job")).out == ""


def test_the_callers_directory_is_the_jobs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    cli("submit", "--name", "x", "--", "true", cwd=tmp_path / "a b")
    assert f"# CWD: {tmp_path}/a b\n" in cli.text("x")
    cli("submit", "--name", "y", "--cwd", "..", "--", "true", cwd=tmp_path / "a b")
    assert f"# CWD: {tmp_path}\n" in cli.text("y")


def test_env_takes_the_callers_value_and_warns_of_secrets(cli: Cli) -> None:
    done = cli("submit", "--name", "x", "--env", "HF_TOKEN", "--", "true", env={"HF_TOKEN": "s3 c"})
    assert '# ENV: HF_TOKEN="s3 c"\n' in cli.text("x") or "# ENV: HF_TOKEN=s3 c\n" in cli.text("x")
    assert "HF_TOKEN looks like a secret" in done.err
    assert "HOME" not in cli.text("x")
    missing = cli("submit", "--env", "NOT_SET", "--", "true")
    assert (missing.status, missing.out) == (2, "")


def test_many_from_stdin_one_command_a_line(cli: Cli) -> None:
    done = cli("submit", "-", given="echo a | tee x\n\n# a remark\n  sleep 1\n")
    assert done.lines == ["001-cpu-echo", "002-cpu-sleep"]
    assert cli.text("001-cpu-echo").endswith("\n\necho a | tee x\n")


def test_many_from_stdin_separated_by_nul_may_have_lines(cli: Cli) -> None:
    done = cli("submit", "-0", "--lane", "net", "-", given="a\nb\0c\0")
    assert done.lines == ["001-net-a", "002-net-c"]
    assert cli.text("001-net-a").endswith("\n\na\nb\n")
    assert cli("submit", "-", given="a\0b\n").status == 2


def test_nothing_on_stdin_is_an_error(cli: Cli) -> None:
    assert cli("submit", "-", given="\n# only this\n").status == 2


def test_a_script_is_kept_byte_for_byte_behind_its_header(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "sweep.py"
    script.write_bytes(b"#!/usr/bin/python3\n# LANE: gpu\nprint('\xe9')\r\n")
    done = cli("submit", "--script", "sweep.py", "--retries", "7")
    assert done.out == "001-gpu-sweep\n", done.err
    data = (cli.spool / "queue/001-gpu-sweep.job").read_bytes()
    assert data.startswith(b"#!/usr/bin/python3\n# RETRIES: 7\n")
    assert data.endswith(b"# LANE: gpu\nprint('\xe9')\r\n")


def test_job_files_keep_their_names_and_options_win(cli: Cli, tmp_path: Path) -> None:
    for name in ("5-net-a", "6-gpu-b"):
        (tmp_path / f"{name}.job").write_text("# RETRIES: 2\n# CWD: /\ntrue\n")
    done = cli("submit", "--retries", "9", "-f", "5-net-a.job", "6-gpu-b.job")
    assert done.lines == ["5-net-a", "6-gpu-b"]
    assert "# RETRIES: 9\n" in cli.text("5-net-a")
    assert "# RETRIES: 2\n" not in cli.text("5-net-a")
    assert "# CWD: /\n" in cli.text("6-gpu-b")


def test_a_job_file_with_an_error_is_refused_with_its_line_and_nothing_is_queued(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "1-cpu-good.job").write_text("true\n")
    (tmp_path / "2-cpu-bad.job").write_text("# LANE: cpu\n# RETRIES: many\ntrue\n")
    done = cli("submit", "-f", "1-cpu-good.job", "2-cpu-bad.job")
    assert (done.status, done.out) == (1, "")
    assert "2-cpu-bad.job:2: error: RETRIES" in done.err
    assert cli.jobs() == []


BAD_NAMES = ("a/b", "..", ".", "a\nb", "a" * 300, "12", "", ".hidden", "a\x1b[31m", "x.job.job")


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_a_bad_name_is_refused_in_one_safe_line(cli: Cli, name: str) -> None:
    done = cli.here("submit", "--name", name, "--", "true")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("sdqueue: ")
    assert done.err.count("\n") == 1
    assert done.err.rstrip("\n").isprintable()
    assert not (cli.spool / "queue").exists() or cli.jobs() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("submit",), "say what to run"),
        (("submit", "--lane", "gup", "--", "x"), "did you mean gpu?"),
        (("submit", "--retries", "0", "--", "x"), "--retries: "),
        (("submit", "--retrys", "1", "--", "x"), "did you mean --retries?"),
        (("submit", "--retries"), "--retries needs a value"),
        (("submit", "--timeout", "soon", "--", "x"), "--timeout: "),
        (("submit", "--script", "nope"), "can't read 'nope'"),
        (("submit", "--script", "."), "can't read '.'"),
        (("submit", "--name", "a", "-f", "a.job", "b.job"), "--name names one job"),
        (("submit", "--script", "x", "--", "y"), "not two of them"),
        (("submit", "-0", "--", "y"), "-0 goes with -"),
        (("submit", "--done-if", "a\nb", "--", "y"), "--done-if: "),
        (("submit", "--env", "A", "--", "y"), "--env: "),
        (("submit", "--after", "a/b", "--", "y"), "--after: "),
        (("sumbit",), "did you mean submit?"),
        (("list", "--json=yaml"), "none of short, pretty, off"),
        (("list", "--no-legend=1"), "takes no value"),
        (("check",), "JOBFILE is missing"),
        (("plan", "x"), "one word too many"),
        (("list", "--state=quued"), "did you mean queued?"),
        (("wait",), "wait for what?"),
        (("wait", "--all", "--timeout", "x"), "--timeout: "),
    ],
)
def test_what_cannot_be_understood_is_said_in_one_line_with_status_2(
    cli: Cli, words: tuple[str, ...], said: str
) -> None:
    done = cli.here(*words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_name_that_is_alive_is_refused_and_the_first_file_stands(cli: Cli) -> None:
    cli("submit", "--name", "a", "--", "first")
    again = cli("submit", "--name", "a.job", "--", "second")
    assert (again.status, again.out) == (1, "")
    assert "there is a job a in queue/ already" in again.err
    assert "exec first" in cli.text("a")


def test_a_missing_predecessor_a_failed_one_and_a_circle_are_warned_of(cli: Cli) -> None:
    cli.queue("bad", state="failed")
    cli.queue("b", "true", "AFTER: a")
    done = cli("submit", "--name", "a", "--after", "b bad", "--after-any", "nowhere", "--", "true")
    assert done.out == "a\n"
    assert "a comes after nowhere, and there is no such job" in done.err
    assert "a comes after bad, which is in failed/" in done.err
    assert "a comes after b comes after a: none of them will ever start" in done.err


def test_more_memory_than_the_box_has_is_accepted_with_a_warning(cli: Cli) -> None:
    done = cli("submit", "--memory", "900T", "--", "true")
    assert done.status == 0
    assert "MEMORY 900T is more than" in done.err


def test_a_full_disk_is_said_and_nothing_is_printed(cli: Cli) -> None:
    cli("submit", "--", "true")
    os.rename(cli.spool / "queue", cli.spool / "elsewhere")
    (cli.spool / "queue").write_text("in the way")
    done = cli("submit", "--", "true")
    assert (done.status, done.out) == (1, "")
    assert "queue' is in the way" in done.err


def test_configured_lanes_count(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "config/sdqueue/sdqueue.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[lane.disk]\nslots = 2\n")
    done = cli("submit", "--lane", "disk", "--", "true")
    assert done.out == "001-disk-true\n", done.err


def test_check_says_file_and_line_and_exits_1_on_errors_only(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "1-cpu-a.job").write_text("# LNAE: gpu\ntrue\n")
    warned = cli("check", "1-cpu-a.job")
    assert (warned.status, warned.out.split(": ")[:2]) == (0, ["1-cpu-a.job:1", "warning"])
    (tmp_path / "x.job").write_text("true\n")
    wrong = cli("check", "1-cpu-a.job", "x.job", "--json=short")
    assert wrong.status == 1
    assert [(p["file"], p["line"], p["severity"]) for p in wrong.json] == [
        ("1-cpu-a.job", 1, "warning"),
        ("x.job", 1, "error"),
    ]


def test_check_never_waits_for_a_fifo_and_names_what_is_no_file(cli: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.job")
    (tmp_path / "d.job").mkdir()
    (tmp_path / "l.job").symlink_to("nowhere")
    done = cli("check", "f.job", "d.job", "l.job", "none.job")
    assert done.status == 1
    assert [line.split(": ", 1)[0] for line in done.lines] == [
        "f.job",
        "d.job",
        "l.job",
        "none.job",
    ]
    assert "is a FIFO" in done.out
    assert "is a directory" in done.out
