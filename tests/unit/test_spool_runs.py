"""Runs, witnesses, records and meta data, on real files that a hostile job may have changed."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.spool import add, meta, runs
from sdqueue.spool.layout import Spool, open_spool
from sdqueue.words.errors import NoSuchJob, SpoolError
from sdqueue.words.problem import Problem

ID, BOOT = "0123456789abcdef" * 2, "12345678-1234-1234-1234-123456789abc"


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return open_spool(Spool(str(tmp_path / "s")))


def test_runs_are_numbered_and_have_a_snapshot(spool: Spool) -> None:
    assert runs.runs(spool, "a") == []
    add.add(spool, "a", b"#!/bin/sh\r\necho\r\n", state="running")
    first = runs.create_run(spool, "a", "running")
    assert first == (1, spool.run_dir("a", 1), f"{spool.run_dir('a', 1)}/script")
    assert Path(first.script_file).read_bytes() == b"#!/bin/sh\necho\n"
    os.mkdir(spool.run_dir("a", 11))
    assert runs.create_run(spool, "a", "running").number == 12
    assert runs.runs(spool, "a") == [1, 11, 12]


def test_a_snapshot_does_not_change_with_its_file(spool: Spool) -> None:
    add.add(spool, "a", b"before")
    run = runs.create_run(spool, "a", "queue")
    Path(spool.job_file("queue", "a")).write_bytes(b"after")
    assert Path(run.script_file).read_bytes() == b"before"


def test_no_run_without_a_readable_file(spool: Spool) -> None:
    with pytest.raises(NoSuchJob):
        runs.create_run(spool, "a", "queue")
    os.mkfifo(spool.job_file("queue", "a"))
    with pytest.raises(SpoolError, match=r"queue/a\.job is a FIFO"):
        runs.create_run(spool, "a", "queue")
    assert runs.runs(spool, "a") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_in_system_mode_a_run_belongs_to_the_job_s_owner(
    tmp_path: Path,
) -> None:
    spool = open_spool(Spool(str(tmp_path / "s"), system=True))
    add.add(spool, "a", b"x", owner=(1234, 1234))
    run = runs.create_run(spool, "a", "queue", owner=(1234, 1234))
    work = runs.work_dir(spool, "a", owner=(1234, 1234))
    runs.write_record(spool, "a", 1, {}, durable=True)
    for path, uid, mode in (
        (run.directory, 1234, 0o700),
        (run.script_file, 1234, 0o600),
        (work, 1234, 0o700),
        (os.path.dirname(run.directory), 0, 0o711),
        (f"{run.directory}/run.json", 0, 0o644),
    ):
        status = os.stat(path)
        assert (status.st_uid, status.st_mode & 0o777) == (uid, mode), path


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_no_umask_of_root_shuts_other_users_jobs_out(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        spool = open_spool(Spool(str(tmp_path / "s"), system=True))
        add.add(spool, "a", b"x")
        run = runs.create_run(spool, "a", "queue")
    finally:
        os.umask(before)
    passed = (spool.root, f"{spool.root}/runs", f"{spool.root}/work", spool.runs_dir("a"))
    for directory in passed:
        assert os.stat(directory).st_mode & 0o777 == 0o711, directory
    assert os.stat(spool.state_dir("queue")).st_mode & 0o777 == 0o700
    assert os.stat(run.directory).st_mode & 0o777 == 0o700, "root's runs are root's to read"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_in_system_mode_no_job_has_the_work_directory_of_another_user(tmp_path: Path) -> None:
    spool = open_spool(Spool(str(tmp_path / "s"), system=True))
    hers = runs.work_dir(spool, "a", owner=(1234, 1234))
    Path(hers, "link").symlink_to("/etc/victim")
    assert runs.work_dir(spool, "a", owner=(1234, 1234)) == hers
    assert os.listdir(hers) == ["link"]
    root_s = runs.work_dir(spool, "a")
    assert (os.stat(root_s).st_uid, os.listdir(root_s)) == (0, [])
    assert sorted(os.listdir(f"{spool.root}/work")) == ["a", "a.~1~"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_no_run_of_a_file_that_is_another_user_s_by_now(tmp_path: Path) -> None:
    spool = open_spool(Spool(str(tmp_path / "s"), system=True))
    add.add(spool, "a", b"x", owner=(1234, 1234))
    with pytest.raises(NoSuchJob, match="belongs to uid 1234 now"):
        runs.create_run(spool, "a", "queue", uid=0)
    assert runs.runs(spool, "a") == []
    assert runs.create_run(spool, "a", "queue", uid=1234).number == 1


def test_records_read_back(spool: Spool) -> None:
    add.add(spool, "a", b"x")
    runs.create_run(spool, "a", "queue")
    assert runs.read_record(spool, "a", 1) is None
    for durable in (True, False):
        record = {"job": "ä\udcff", "rc": None, "durable": durable}
        runs.write_record(spool, "a", 1, record, durable=durable)
        assert runs.read_record(spool, "a", 1) == record | {"job": "ä?"}
    Path(spool.run_dir("a", 1), "run.json").write_text('{"job": "a"')
    assert runs.read_record(spool, "a", 1) is None


def test_a_record_replaces_a_link_and_does_not_write_through_it(
    spool: Spool, tmp_path: Path
) -> None:
    add.add(spool, "a", b"x")
    run = runs.create_run(spool, "a", "queue")
    (tmp_path / "victim").write_text("mine")
    os.symlink(tmp_path / "victim", f"{run.directory}/run.json")
    runs.write_record(spool, "a", 1, {"rc": 0}, durable=True)
    assert (tmp_path / "victim").read_text() == "mine"
    assert runs.read_record(spool, "a", 1) == {"rc": 0}


@pytest.mark.parametrize(
    ("line", "witness"),
    [
        (f"success exited 0 {ID} {BOOT}\n", ("success", "exited", "0", ID, BOOT)),
        (f"timeout killed TERM {ID} {BOOT}\n", ("timeout", "killed", "TERM", ID, BOOT)),
        (f"resources   {ID} {BOOT}\n", ("resources", "", "", ID, BOOT)),
        (f"success exited 0 {ID} {BOOT}", None),
        (f"success exited 0 {ID} {BOOT[:-3]}\n", None),
        (f"success exited 0 {ID} {BOOT}\nmore", None),
        (f"success exited 0 {ID}\n", None),
        ("\n", None),
        ("\0\0\0\0", None),
    ],
)
def test_a_witness_is_whole_or_none(
    spool: Spool, line: str, witness: tuple[str, ...] | None
) -> None:
    add.add(spool, "a", b"x")
    run = runs.create_run(spool, "a", "queue")
    assert runs.read_witness(spool, "a", 1) is None
    Path(run.directory, "exit").write_text(line)
    assert runs.read_witness(spool, "a", 1) == witness


def test_a_witness_is_not_looked_for_where_the_job_points(spool: Spool, tmp_path: Path) -> None:
    add.add(spool, "a", b"x")
    exit_file = Path(runs.create_run(spool, "a", "queue").directory, "exit")
    (tmp_path / "fake").write_text(f"success exited 0 {ID} {BOOT}\n")
    exit_file.symlink_to(tmp_path / "fake")
    assert runs.read_witness(spool, "a", 1) is None
    exit_file.unlink()
    os.mkfifo(exit_file)
    assert runs.read_witness(spool, "a", 1) is None
    exit_file.unlink()
    exit_file.mkdir()
    assert runs.read_witness(spool, "a", 1) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_witness_or_none(data: bytes) -> None:
    witness = runs.parse_witness(data)
    assert witness is None or " ".join(witness).encode() + b"\n" == data


def test_the_work_directory_survives(spool: Spool) -> None:
    work = runs.work_dir(spool, "a")
    Path(work, "rows").write_text("1")
    assert runs.work_dir(spool, "a") == work
    assert Path(work, "rows").read_text() == "1"
    runs.forget_runs(spool, "a")
    assert not os.path.exists(work)
    runs.forget_runs(spool, "a")


# Meta data --------------------------------------------------------------------------------------

FULL = meta.Meta(
    attempts=2,
    interrupted=1,
    retry_sec=1795976671.5,
    run=7,
    parked_reason="by hand",
    parked_by=1000,
    rc=137,
    verified=False,
    result="signal",
    ended_sec=1.5,
    ino=9,
    mtime_ns=10**18,
)


def test_meta_data_reads_back(spool: Spool) -> None:
    assert meta.load(spool, "a") is None
    for value in (FULL, meta.Meta()):
        meta.save(spool, "a", value)
        assert meta.load(spool, "a") == value
    meta.drop(spool, "a")
    meta.drop(spool, "a")
    assert meta.load(spool, "a") is None


def record(**changes: object) -> str:
    whole: dict[str, object] = {"schema": meta.SCHEMA}
    whole.update(changes)
    return json.dumps(whole)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "\0" * 50,
        record(schema=2),
        record(attempts="3"),
        record(attempts=-1),
        record(attempts=True),
        record(verified=1),
        record(retry_sec=float("nan")),
        record(retry_sec=float("inf")),
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_a_problem_and_says_what_it_costs(spool: Spool, text: str) -> None:
    Path(spool.meta_file("bad")).write_text(text)
    problem = meta.load(spool, "bad")
    assert isinstance(problem, Problem)
    assert problem.file == "meta/bad.json"
    assert "fresh budget" in problem.message


def test_keys_that_this_version_does_not_know_are_passed_over(spool: Spool) -> None:
    Path(spool.meta_file("a")).write_text(record(attempts=2, color="blue"))
    assert meta.load(spool, "a") == meta.Meta(attempts=2)


@given(st.binary(max_size=100))
def test_any_bytes_are_meta_data_or_a_problem(data: bytes) -> None:
    assert isinstance(meta._parsed("a", data), meta.Meta | Problem)
