"""The operator's verbs on files alone: what each does in each state, and that nothing gets lost."""

import os
from pathlib import Path

import pytest

from sdqueue.spool import meta
from sdqueue.spool import rewrite as rewriting
from sdqueue.spool.layout import Spool
from sdqueue.spool.rewrite import read_content, rewrite
from sdqueue.words.errors import NoSuchJob, WrongState
from tests.harness.cli import STATES, Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    found = Cli(tmp_path)
    assert found.here("submit", "--name", "first", "--", "true").status == 0
    (found.spool / "queue/first.job").unlink()
    return found


DOES: dict[str, dict[str, str]] = {
    "park": {"queue": "parked", "failed": "parked"},
    "release": {"parked": "queue"},
    "retry": {"queue": "queue", "parked": "queue", "failed": "queue", "done": "queue"},
    "remove": {"queue": "", "parked": "", "failed": "", "done": ""},
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", DOES)
def test_each_verb_moves_from_the_states_it_may_and_refuses_the_others(
    cli: Cli, verb: str, state: str
) -> None:
    cli.queue("1-cpu-a", state=state)
    done = cli.here(verb, "1-cpu-a")
    to = DOES[verb].get(state, state)
    assert [each for each in STATES if cli.jobs(each)] == ([to] if to else [])
    assert done.status == (0 if state in DOES[verb] else 1)
    assert ("1-cpu-a: " in done.out) == (done.status == 0)
    assert ("1-cpu-a: it " in done.err) == (done.status == 1)


@pytest.mark.parametrize("verb", [*DOES, "move", "edit"])
def test_a_name_that_is_none_is_status_4(cli: Cli, verb: str) -> None:
    words = ["--priority", "1"] if verb == "move" else []
    assert cli.here(verb, "nothing", *words).status == 4
    assert cli.here(verb, "no*", *words).status == 4


def test_a_glob_means_only_jobs_to_which_it_can_be_done(cli: Cli) -> None:
    cli.queue("1-cpu-a")
    cli.queue("1-cpu-b", state="running")
    cli.queue("1-cpu-c", state="done")
    done = cli.here("park", "1-*", "--json=short")
    assert [row["name"] for row in done.json] == ["1-cpu-a"]
    assert done.status == 0
    assert cli.here("park", "1-cpu-[bc]").status == 4


def test_retry_by_glob_means_failed_jobs_unless_told_otherwise(cli: Cli) -> None:
    for state in ("failed", "done", "parked"):
        cli.queue(f"1-cpu-{state}", state=state)
    assert cli.here("retry", "*").status == 0
    assert cli.jobs() == ["1-cpu-failed"]
    assert cli.here("retry", "*", "--state=done,parked").status == 0
    assert cli.jobs() == ["1-cpu-done", "1-cpu-failed", "1-cpu-parked"]


def test_retry_of_a_waiting_job_ends_its_waits_for_a_time_and_keeps_the_rest(cli: Cli) -> None:
    file = cli.queue("1-cpu-a", "exit 3", "RETRY_DELAY: 1h", "NOT_BEFORE: +1h", "PRIORITY: 4")
    meta.save(Spool(str(cli.spool)), "1-cpu-a", meta.Meta(attempts=1, retry_sec=2e9))
    assert cli.here("retry", "1-cpu-a").status == 0
    assert file.read_text() == "#!/bin/bash\n# RETRY_DELAY: 1h\n# PRIORITY: 4\nexit 3\n"
    assert meta.load(Spool(str(cli.spool)), "1-cpu-a") is None


def test_park_and_release_keep_the_attempts_that_are_left(cli: Cli) -> None:
    cli.queue("1-cpu-a")
    kept = meta.Meta(attempts=2)
    meta.save(Spool(str(cli.spool)), "1-cpu-a", kept)
    assert cli.here("park", "1-cpu-a").status == 0
    assert cli.here("release", "1-cpu-a").status == 0
    assert meta.load(Spool(str(cli.spool)), "1-cpu-a") == kept


def test_a_file_of_the_same_name_in_the_queue_is_not_overwritten(cli: Cli) -> None:
    cli.queue("1-cpu-a", "old", state="parked")
    cli.queue("1-cpu-a", "new")
    (cli.spool / "queue/1-cpu-a.job").rename(cli.spool / "running/1-cpu-a.job")
    assert cli.here("release", "1-cpu-a").status == 1
    assert (cli.jobs("parked"), cli.jobs("running")) == (["1-cpu-a"], ["1-cpu-a"])


def test_move_changes_lane_and_priority_and_no_other_byte(cli: Cli) -> None:
    file = cli.queue("1-cpu-a", "body \\", "PRIORITY: 3", "RETRIES: 2")
    file.chmod(0o750)
    before = file.stat()
    done = cli.here("move", "1-cpu-a", "--lane", "gpu", "--priority", "7")
    assert done.out == "1-cpu-a: LANE is gpu now, PRIORITY is 7 now\n"
    assert file.read_text() == ("#!/bin/bash\n# LANE: gpu\n# PRIORITY: 7\n# RETRIES: 2\nbody \\\n")
    assert (file.stat().st_mode, file.stat().st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_move_keeps_what_is_remembered_of_the_job(cli: Cli) -> None:
    file = cli.queue("1-cpu-a")
    spool = Spool(str(cli.spool))
    meta.save(spool, "1-cpu-a", meta.Meta(attempts=2, ino=file.stat().st_ino))
    assert cli.here("move", "1-cpu-a", "--priority", "7").status == 0
    kept = meta.load(spool, "1-cpu-a")
    assert isinstance(kept, meta.Meta)
    assert (kept.attempts, kept.ino) == (2, file.stat().st_ino)


def test_first_goes_before_all_of_the_lane_and_several_keep_their_order(cli: Cli) -> None:
    cli.queue("1-cpu-a", "true", "PRIORITY: 5")
    cli.queue("2-gpu-b", "true", "PRIORITY: 50")
    for name in ("3-cpu-c", "4-cpu-d"):
        cli.queue(name)
    assert cli.here("move", "4-cpu-d", "3-cpu-c", "--first").status == 0
    assert "PRIORITY: 7" in cli.text("4-cpu-d")
    assert "PRIORITY: 6" in cli.text("3-cpu-c")


@pytest.mark.parametrize(
    "words",
    [
        ["--lane", "tpu"],
        ["--priority", "high"],
        [],
        ["--first", "--priority", "2"],
    ],
)
def test_move_refuses_what_it_can_not_understand_before_it_changes_anything(
    cli: Cli, words: list[str]
) -> None:
    cli.queue("1-cpu-a")
    assert cli.here("move", "1-cpu-a", *words).status == 2
    assert cli.text("1-cpu-a") == "#!/bin/bash\ntrue\n"


def test_purge_takes_runs_and_state_too_and_remove_does_not(cli: Cli) -> None:
    for name in ("1-cpu-a", "2-cpu-b"):
        cli.queue(name, state="done")
        (cli.spool / f"runs/{name}/1").mkdir(parents=True)
        (cli.spool / f"work/{name}").mkdir()
    assert cli.here("remove", "1-cpu-a").status == 0
    assert cli.here("remove", "--purge", "2-cpu-b").status == 0
    assert os.listdir(cli.spool / "runs") == os.listdir(cli.spool / "work") == ["1-cpu-a"]


# Editing ----------------------------------------------------------------------------------------


def editor(cli: Cli, script: str) -> dict[str, str]:
    """Write an editor that runs a script on the file, and give the environment that names it."""
    program = cli.home / "edit"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    return {"EDITOR": str(program), "TMPDIR": str(cli.home)}


def kept_copies(cli: Cli) -> list[str]:
    return [file.read_text() for file in cli.home.glob("sdqueue-edit-*/*.job")]


@pytest.mark.parametrize("state", STATES)
def test_edit_changes_the_file_in_every_state(cli: Cli, state: str) -> None:
    cli.queue("1-cpu-a", state=state)
    done = cli("edit", "1-cpu-a", env=editor(cli, 'echo "# more" >>"$1"'))
    assert done.status == 0, done.err
    assert cli.text("1-cpu-a", state).endswith("# more\n")
    assert ("counts from the next attempt" in done.out) == (state == "running")
    assert kept_copies(cli) == []


def test_an_edit_with_an_error_is_said_and_kept_and_changes_nothing(cli: Cli) -> None:
    cli.queue("1-cpu-a")
    done = cli("edit", "1-cpu-a", env=editor(cli, 'echo "# RETRIES: many" >"$1"'))
    assert done.status == 1
    assert ":1: " in done.err
    assert "RETRIES" in done.err
    assert cli.text("1-cpu-a") == "#!/bin/bash\ntrue\n"
    assert kept_copies(cli) == ["# RETRIES: many\n"]


@pytest.mark.parametrize(
    ("meanwhile", "where"),
    [
        ("mv queue/1-cpu-a.job running/", "running"),
        ("rm queue/1-cpu-a.job", ""),
        ("echo other >queue/x; mv queue/x queue/1-cpu-a.job", "queue"),
    ],
)
def test_an_edit_of_a_job_that_changed_meanwhile_is_kept_beside(
    cli: Cli, meanwhile: str, where: str
) -> None:
    cli.queue("1-cpu-a")
    script = f'echo "# mine" >>"$1"; cd {cli.spool}; {meanwhile}'
    done = cli("edit", "1-cpu-a", env=editor(cli, script))
    assert (done.status, done.out) == (1, "")
    assert [state for state in STATES if cli.jobs(state)] == ([where] if where else [])
    assert all("mine" not in cli.text("1-cpu-a", state) for state in STATES if cli.jobs(state))
    assert len(kept_copies(cli)) == 1
    assert "what you wrote is in" in done.err


def test_an_edit_that_changes_nothing_or_fails_leaves_the_very_file(cli: Cli) -> None:
    before = cli.queue("1-cpu-a").stat().st_ino
    assert "left as it was" in cli("edit", "1-cpu-a", env=editor(cli, "true")).out
    assert cli("edit", "1-cpu-a", env=editor(cli, 'rm "$1"; exit 3')).status == 1
    assert cli("edit", "1-cpu-a", env={"EDITOR": "/no/such"}).status == 1
    assert (cli.spool / "queue/1-cpu-a.job").stat().st_ino == before


# The exchange -----------------------------------------------------------------------------------


def test_a_rewrite_never_brings_back_what_has_gone(cli: Cli) -> None:
    spool = Spool(str(cli.spool))
    file = cli.queue("1-cpu-a")
    old = read_content(spool, "1-cpu-a", "queue")
    file.rename(cli.spool / "running/1-cpu-a.job")
    with pytest.raises(NoSuchJob):
        rewrite(spool, "1-cpu-a", "queue", old, b"new")
    assert (cli.jobs("queue"), cli.text("1-cpu-a", "running")) == ([], "#!/bin/bash\ntrue\n")
    assert os.listdir(spool.aside_dir) == []


def test_a_rewrite_leaves_a_file_that_is_another_one_by_now(cli: Cli) -> None:
    spool = Spool(str(cli.spool))
    file = cli.queue("1-cpu-a")
    old = read_content(spool, "1-cpu-a", "queue")
    (cli.spool / "x").write_text("other")
    (cli.spool / "x").rename(file)
    with pytest.raises(WrongState):
        rewrite(spool, "1-cpu-a", "queue", old, b"new")
    assert file.read_text() == "other"
    assert os.listdir(spool.aside_dir) == []


@pytest.mark.parametrize("state", ["queue", "failed"])
def test_a_file_system_without_exchange_goes_by_way_of_parked(
    cli: Cli, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(one: str, _other: str) -> None:
        raise OSError(22, "Invalid argument", one)

    monkeypatch.setattr(rewriting, "_exchange", refuses)
    spool = Spool(str(cli.spool))
    cli.queue("1-cpu-a", state=state)
    rewrite(spool, "1-cpu-a", state, read_content(spool, "1-cpu-a", state), b"new")
    assert cli.text("1-cpu-a", state) == "new"
    assert [each for each in STATES if cli.jobs(each)] == [state]
