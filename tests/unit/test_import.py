"""`sdqueue import`: every file of another queue comes over once, or stays and says why."""

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sdqueue.cli.oldfile import GOES_TO, Wish
from sdqueue.cli.oldqueue import survey
from sdqueue.cli.place import Place
from sdqueue.spool import moves, runs
from sdqueue.spool.layout import Spool
from sdqueue.spool.takeover import take
from sdqueue.words.errors import WrongState
from tests.harness.cli import STATES, Cli
from tests.harness.tools import require

EVENTS = """\
{"ts": "2026-11-01 10:00:00", "event": "done", "job": "1-cpu-a.job", "rc": 0, "verified": true}
{"ts": "2026-11-02 10:00:00", "event": "failed", "job": "1-cpu-f", "rc": 3, "attempt": 3}
torn {"event": "done"
"""


class Old:
    """A directory queue as people have it."""

    def __init__(self, top: Path) -> None:
        self.top = top
        for state in ("queue", "running", "done", "failed"):
            (top / state).mkdir(parents=True)
        (top / "events.jsonl").write_text(EVENTS)

    def put(self, state: str, file: str, *headers: str) -> Path:
        path = self.top / state / file
        path.write_text("\n".join(["#!/bin/bash", *(f"# {h}" for h in headers), "true", ""]))
        return path

    def left(self) -> list[str]:
        return sorted(str(p.relative_to(self.top)) for p in self.top.rglob("*") if p.is_file())


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
def old(tmp_path: Path) -> Old:
    return Old(tmp_path / "old")


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Old]:
    """Give a queue on another file system."""
    top = Path(f"/dev/shm/sdqueue-test-{os.getpid()}-{tmp_path.name}")
    if not top.parent.is_dir() or os.stat(top.parent).st_dev == os.stat(tmp_path).st_dev:
        require("no second file system at /dev/shm")
    yield Old(top)
    shutil.rmtree(top)


def everything(old: Old) -> None:
    old.put("queue", "10-gpu-z.job", "RETRIES: 2", "FOO: kept")
    old.put("queue", "9-cpu-y.sh")
    old.put("queue", "plain")
    old.put("queue", "7-last.job", "LANE: net")
    old.put("running", "5-gpu-r.job")
    old.put("done", "1-cpu-a.job")
    old.put("failed", "1-cpu-f.job")
    old.put("queue", "1-cpu-a.job")  # put back to be done again
    (old.top / "queue/README").write_text("about\n")
    (old.top / "done/1-cpu-a.log").write_text("said\n")


CAME = {
    "queue": ["1-cpu-a", "10-gpu-z", "7-last", "9-cpu-y", "plain"],
    "running": [],
    "done": ["1-cpu-a"],
    "failed": ["1-cpu-f"],
    "parked": ["5-gpu-r"],
}


NOTHING: dict[str, list[str]] = {state: [] for state in STATES}


def came(cli: Cli) -> dict[str, list[str]]:
    return {state: cli.jobs(state) for state in STATES}


def rows(cli: Cli, old: Old, *words: str, status: int = 0) -> dict[str, dict[str, object]]:
    done = cli.here("import", str(old.top), "--json=short", *words)
    assert done.status == status, done.out + done.err
    return {row["file"]: row for row in json.loads(done.out)}


def test_all_jobs_come_over_with_their_state_and_what_is_none_stays(cli: Cli, old: Old) -> None:
    everything(old)
    done = cli.here("import", str(old.top))
    assert done.status == 0, done.out + done.err
    assert "8 taken over, 2 left." in done.out
    assert came(cli) == CAME
    assert old.left() == ["done/1-cpu-a.log", "queue/README"]
    assert (cli.spool / "events-imported.jsonl").read_text() == EVENTS
    assert not (cli.spool / "import").exists()
    assert cli.text("10-gpu-z") == "#!/bin/bash\n# RETRIES: 2\n# FOO: kept\ntrue\n"
    assert cli.text("plain") == "#!/bin/bash\n# LANE: cpu\ntrue\n"


def test_a_dry_run_says_the_same_of_every_file_and_touches_none(cli: Cli, old: Old) -> None:
    everything(old)
    before = old.left()
    said = rows(cli, old, "--dry-run")
    assert old.left() == before
    assert not cli.spool.exists()
    assert said == rows(cli, old)
    assert set(said) == {file for file in before if file != "events.jsonl"}
    assert said["running/5-gpu-r.job"]["state"] == "parked"
    assert "no process now" in str(said["running/5-gpu-r.job"]["note"])
    assert said["queue/plain"]["lane"] == "cpu"
    assert "FOO" in str(said["queue/10-gpu-z.job"]["note"])
    assert "no job file" in str(said["queue/README"]["note"])


def test_from_another_file_system_it_is_the_same(cli: Cli, far: Old) -> None:
    everything(far)
    os.utime(far.top / "queue/7-last.job", ns=(5, 5_000_000_007))
    assert cli.here("import", str(far.top)).status == 0
    assert came(cli) == CAME
    assert far.left() == ["done/1-cpu-a.log", "queue/README"]
    assert (cli.spool / "events-imported.jsonl").read_text() == EVENTS
    assert os.stat(cli.spool / "queue/7-last.job").st_mtime_ns == 5_000_000_007


def test_what_the_old_log_says_of_ends_is_known_here(cli: Cli, old: Old) -> None:
    everything(old)
    rows(cli, old)
    shown = {row["name"]: row for row in cli("list", "--json=short", "--state=done,failed").json}
    assert (shown["1-cpu-a"]["rc"], shown["1-cpu-a"]["verified"]) == (0, True)
    assert (shown["1-cpu-f"]["rc"], shown["1-cpu-f"]["attempt"]) == (3, 3)
    said = cli("status", "5-gpu-r").out
    assert f"it was in running/ of {old.top}, imported from there" in said


def test_a_job_whose_process_lives_stays_and_so_do_those_that_could_start_beside_it(
    cli: Cli, old: Old
) -> None:
    file = old.put("running", "5-gpu-r.job")
    for job in ("6-gpu-a.job", "6-net-b.job", "6-cpu-c.job", "5-gpu-r.job"):
        old.put("queue", job)
    with file.open("rb") as held:
        sleeper = subprocess.Popen(["sleep", "infinity"], stdin=held)
    try:
        said = rows(cli, old, status=1)
        assert f"process {sleeper.pid} (sleep)" in str(said["running/5-gpu-r.job"]["note"])
        assert cli.jobs() == ["6-cpu-c"]
        assert "running/5-gpu-r.job runs still" in str(said["queue/6-net-b.job"]["note"])
        assert (old.top / "events.jsonl").exists(), "it tells of a job that is still there"
        rows(cli, old, "--beside", status=1)
        assert cli.jobs() == ["6-cpu-c", "6-gpu-a", "6-net-b"]
        assert old.left() == ["events.jsonl", "queue/5-gpu-r.job", "running/5-gpu-r.job"]
    finally:
        sleeper.kill()
        sleeper.wait()
    (old.top / "queue/5-gpu-r.job").unlink()
    rows(cli, old, "--requeue")
    assert cli.jobs() == ["5-gpu-r", "6-cpu-c", "6-gpu-a", "6-net-b"]


def test_a_process_is_found_by_a_relative_name_in_its_command_line(cli: Cli, old: Old) -> None:
    (old.top / "running/5-gpu-r.job").write_text("read -r line\n")
    with subprocess.Popen(
        ["sh", "running/5-gpu-r.job"], cwd=old.top, stdin=subprocess.PIPE
    ) as runs_still:
        said = rows(cli, old, "--requeue", status=1)
        runs_still.communicate(b"end\n")
    assert f"process {runs_still.pid} (" in str(said["running/5-gpu-r.job"]["note"])
    assert came(cli) == NOTHING


def test_a_process_is_found_by_the_old_log_s_pid_unless_the_pid_came_round(
    cli: Cli, old: Old
) -> None:
    began = time.time()
    with subprocess.Popen(["sleep", "infinity"]) as sleeper:
        try:
            for name, sec in (("1-cpu-same", began), ("1-cpu-other", began - 3600)):
                old.put("running", f"{name}.job")
                event = {"event": "start", "job": f"{name}.job", "pid": sleeper.pid, "t": sec}
                with (old.top / "events.jsonl").open("a") as log:
                    log.write(json.dumps(event) + "\n")
            said = rows(cli, old, status=1)
        finally:
            sleeper.kill()
    assert f"process {sleeper.pid} (sleep)" in str(said["running/1-cpu-same.job"]["note"])
    assert cli.jobs("parked") == ["1-cpu-other"]


def test_a_name_that_is_in_use_stays_and_one_that_has_ended_is_kept_beside(
    cli: Cli, old: Old
) -> None:
    for state in ("queue", "running", "parked", "done"):
        cli.queue(f"1-cpu-{state}", "echo ours", state=state)
        old.put("queue", f"1-cpu-{state}.job")
    old.put("done", "1-cpu-done.job")
    said = rows(cli, old, status=1)
    assert [file for file, row in said.items() if row["left"]] == [
        "queue/1-cpu-parked.job",
        "queue/1-cpu-queue.job",
        "queue/1-cpu-running.job",
    ]
    assert "running/1-cpu-running.job in the spool" in str(said["queue/1-cpu-running.job"]["note"])
    assert cli.jobs() == ["1-cpu-done", "1-cpu-queue"]
    assert "echo ours" in cli.text("1-cpu-done", "done")
    assert (cli.spool / "done/1-cpu-done.job.~1~").exists()
    assert "kept as 1-cpu-done.job.~1~" in str(said["done/1-cpu-done.job"]["note"])


def test_what_is_no_plain_file_or_has_a_bad_name_stays_and_is_said(cli: Cli, old: Old) -> None:
    queue = old.top / "queue"
    os.mkfifo(queue / "1-cpu-fifo.job")
    (queue / "1-cpu-dir.job").mkdir()
    (queue / "1-cpu-link.job").symlink_to(old.put("done", "target"))
    (queue / "17.job").write_text("true\n")
    (queue / "1-cpu-\n.job").write_text("true\n")
    (queue / os.fsdecode(b"1-cpu-\xff.job")).write_text("true\n")
    (queue / f"1-cpu-{'x' * 235}.job").write_text("true\n")
    (old.top / "failed").rmdir()
    (old.top / "failed").symlink_to(old.top / "done")
    said = rows(cli, old, status=1)
    assert all(row["left"] for file, row in said.items() if file != "done/target")
    assert len(said) == 9
    assert came(cli) == {**NOTHING, "done": ["target"]}
    assert cli.here("import", str(old.top)).status == 1
    assert len(list(queue.iterdir())) == 7


def test_a_file_that_is_being_written_stays(cli: Cli, old: Old) -> None:
    with old.put("queue", "1-cpu-a.job").open("a"):
        assert moves.has_writer(str(old.top / "queue/1-cpu-a.job"))
        assert rows(cli, old, status=1)["queue/1-cpu-a.job"]["left"]
    rows(cli, old)
    assert cli.jobs() == ["1-cpu-a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_what_belongs_to_another_user_stays(cli: Cli, old: Old) -> None:
    os.chown(old.put("queue", "1-cpu-a.job"), 1, 1)
    assert "would run as you" in str(rows(cli, old, status=1)["queue/1-cpu-a.job"]["note"])


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_in_the_machine_s_queue_nobody_puts_jobs_in_for_another(old: Old, tmp_path: Path) -> None:
    place = Place(system=True)
    place.spool = Spool(str(tmp_path / "spool"), system=True)
    queue = old.top / "queue"
    os.chown(queue, 1, 1)
    os.chown(old.put("queue", "1-cpu-own.job"), 1, 1)
    os.chown(old.put("queue", "1-cpu-linked.job"), 1, 1)
    os.link(queue / "1-cpu-linked.job", old.top / "elsewhere")
    old.put("queue", "1-cpu-of-root.job")
    os.chown(old.put("failed", "1-cpu-f.job"), 1, 1)
    old.put("done", "1-cpu-d.job").chmod(0o666)
    (old.top / "running").chmod(0o775)
    found = {each.shown: each for each in survey(str(old.top), place, Wish("cpu", False, False))}
    assert {file for file, each in found.items() if each.to} == {
        "queue/1-cpu-own.job",
        "failed/1-cpu-f.job",
    }
    assert "a directory of uid 1" in found["queue/1-cpu-of-root.job"].note
    assert "hard link" in found["queue/1-cpu-linked.job"].note
    assert "chmod o-w" in found["done/1-cpu-d.job"].note
    assert "chmod go-w" in found["running/"].note


def test_a_file_that_was_exchanged_after_the_look_stays(tmp_path: Path) -> None:
    file, staged = tmp_path / "a.job", tmp_path / "staged"
    file.write_text("true\n")
    seen = file.stat()
    (tmp_path / "other").write_text("false\n")
    (tmp_path / "other").rename(file)
    with pytest.raises(WrongState):
        take(str(file), str(staged), seen, str(tmp_path))
    assert file.read_text() == "false\n"
    assert not staged.exists()


def test_a_name_that_is_taken_after_the_look_waits_for_the_next_import(
    cli: Cli, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.put("queue", "1-cpu-a.job")

    def take_and_be_overtaken(*words: Any) -> None:
        take(*words)
        cli.queue("1-cpu-a", "echo ours")

    monkeypatch.setattr("sdqueue.spool.takeover.take", take_and_be_overtaken)
    assert "taken meanwhile" in str(rows(cli, old, status=1)["queue/1-cpu-a.job"]["note"])
    assert "echo ours" in cli.text("1-cpu-a")
    monkeypatch.undo()
    (cli.spool / "queue/1-cpu-a.job").unlink()
    rows(cli, old)
    assert "echo ours" not in cli.text("1-cpu-a")


def test_the_lane_of_those_that_name_none_can_be_said(cli: Cli, old: Old) -> None:
    old.put("queue", "1-bench.job")
    old.put("queue", "2-cpu-b.job")
    assert cli.here("import", str(old.top), "--lane=nolane").status == 2
    rows(cli, old, "--lane=gpu")
    assert "# LANE: gpu\n" in cli.text("1-bench")
    assert "LANE" not in cli.text("2-cpu-b")


def test_the_spool_and_what_is_no_queue_are_refused(cli: Cli, old: Old) -> None:
    cli.queue("1-cpu-a")
    (old.top / "spool").symlink_to(cli.spool)
    for where, why in (
        (cli.spool, "in the spool itself"),
        (cli.spool / "queue", "in the spool itself"),
        (old.top / "spool", "in the spool itself"),
        (old.top / "queue", "is no directory queue"),
        (old.top / "none", "there is no directory"),
    ):
        done = cli.here("import", str(where))
        assert (done.status, why in done.err) == (1, True), done.err


def test_a_runner_that_holds_its_lock_is_to_be_stopped_first(cli: Cli, old: Old) -> None:
    old.put("queue", "1-cpu-a.job")
    with (old.top / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = cli.here("import", str(old.top))
        assert (done.status, "stop that first" in done.err) == (1, True)
    assert cli.here("import", str(old.top)).status == 0


def test_the_order_is_that_in_which_they_would_start(cli: Cli, old: Old) -> None:
    for name, *headers in (("10-cpu-a",), ("9-cpu-b",), ("11-cpu-c", "PRIORITY: 5")):
        old.put("queue", f"{name}.job", *headers)
    old.put("done", "1-cpu-z.job")
    assert [row["name"] for row in rows(cli, old).values()] == [
        "1-cpu-z",
        "11-cpu-c",
        "9-cpu-b",
        "10-cpu-a",
    ]


def test_a_record_is_not_made_twice_when_an_import_goes_on(cli: Cli, old: Old) -> None:
    old.put("done", "1-cpu-a.job")
    rows(cli, old)
    spool = Spool(str(cli.spool))
    staging = cli.spool / "import/done"
    staging.mkdir(parents=True)
    (cli.spool / "done/1-cpu-a.job").rename(staging / "1-cpu-a.job")
    (old.top / "events.jsonl").write_text(EVENTS)
    assert "an import was cut off: 1 of its files" in cli("doctor").out
    rows(cli, old)
    assert "cut off" not in cli("doctor").out
    assert cli.jobs("done") == ["1-cpu-a"]
    assert runs.runs(spool, "1-cpu-a") == [1]


def test_each_directory_of_an_old_queue_has_a_place_here() -> None:
    assert set(GOES_TO) == set(STATES)
    assert set(GOES_TO.values()) == set(STATES) - {"running"}
