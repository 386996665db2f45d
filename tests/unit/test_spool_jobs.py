"""Job files in the spool: added, listed, read, moved, removed; with real files."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sdqueue.spool import add, moves, scan
from sdqueue.spool.layout import Spool, open_spool
from sdqueue.words.errors import NoSuchJob, SpoolError, WrongState
from sdqueue.words.problem import Problem

DATA = b"#!/bin/bash\n# LANE: cpu\ntrue\n"


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return open_spool(Spool(str(tmp_path / "s")))


def names(spool: Spool, state: str) -> list[str]:
    return sorted(os.listdir(spool.state_dir(state)))


def found(spool: Spool, state: str = "queue") -> dict[str, scan.Entry]:
    return {entry.name: entry for entry in scan.scan(spool, state)}


# Adding -----------------------------------------------------------------------------------------


def test_an_added_job_is_whole_and_nothing_else_is_left(spool: Spool) -> None:
    add.add(spool, "1-cpu-a", DATA)
    assert Path(spool.job_file("queue", "1-cpu-a")).read_bytes() == DATA
    assert os.stat(spool.job_file("queue", "1-cpu-a")).st_nlink == 1
    assert os.listdir(spool.aside_dir) == []


@pytest.mark.parametrize("state", ["queue", "running", "parked"])
def test_a_living_job_is_never_overwritten(spool: Spool, state: str) -> None:
    add.add(spool, "a", DATA, state=state)
    with pytest.raises(WrongState, match=f"there is a job a in {state}/ already"):
        add.add(spool, "a", b"other")
    assert names(spool, "queue") == (["a.job"] if state == "queue" else [])
    assert os.listdir(spool.aside_dir) == []


def test_an_ended_job_may_be_submitted_anew(spool: Spool) -> None:
    add.add(spool, "a", DATA, state="done")
    add.add(spool, "a", DATA)
    assert moves.states_of(spool, "a") == ("queue", "done")


def test_many_jobs_in_one_go(spool: Spool) -> None:
    add.add_many(spool, ((f"{n}-cpu-x", b"%d" % n) for n in range(700)))
    assert len(names(spool, "queue")) == 700
    assert Path(spool.job_file("queue", "699-cpu-x")).read_bytes() == b"699"
    assert os.listdir(spool.aside_dir) == []


def test_of_many_jobs_those_before_the_taken_name_are_in_place(spool: Spool) -> None:
    add.add(spool, "b", DATA)
    with pytest.raises(WrongState):
        add.add_many(spool, [("a", DATA), ("b", b"x"), ("c", DATA)])
    assert names(spool, "queue") == ["a.job", "b.job"]
    with pytest.raises(WrongState, match="two of the jobs"):
        add.add_many(spool, [("d", DATA), ("d", b"x")])
    assert os.listdir(spool.aside_dir) == []


def test_numbers_go_on_from_the_highest_in_any_state(spool: Spool) -> None:
    assert add.add_numbered(spool, [("cpu", "true", DATA)]) == ["001-cpu-true"]
    add.add(spool, "041-gpu-x", DATA, state="done")
    jobs = [("cpu", "a", DATA), ("net", "b", DATA)]
    assert add.add_numbered(spool, jobs) == ["042-cpu-a", "043-net-b"]
    moves.remove(spool, "043-net-b", "queue")
    assert add.add_numbered(spool, [("cpu", "c", DATA)]) == ["044-cpu-c"]


def test_a_lost_or_damaged_count_is_found_again(spool: Spool) -> None:
    add.add(spool, "99-cpu-x", DATA, state="failed")
    Path(spool.root, "number").write_bytes(b"\0\0\0\0")
    assert add.add_numbered(spool, [("cpu", "a", DATA)]) == ["100-cpu-a"]


def test_a_count_that_a_power_cut_set_back_hurts_nobody(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add, "_READ_DIRECTORY_MAX_BYTES", -1)  # as if the directories were huge
    add.add_numbered(spool, [("cpu", "a", DATA)] * 5)
    Path(spool.root, "number").write_text("2\n")
    assert add.add_numbered(spool, [("cpu", "a", DATA)]) == ["006-cpu-a"]


def test_submits_at_the_same_time_get_different_numbers(spool: Spool) -> None:
    code = (
        "import sys\nfrom sdqueue.spool import add, layout\n"
        "spool = layout.Spool(sys.argv[1])\n"
        "for _ in range(25): print(*add.add_numbered(spool, [('cpu', 'x', b'')] * 2))"
    )
    argv = [sys.executable, "-c", code, spool.root]
    children = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [name for child in children for name in child.communicate()[0].split()]
    assert [child.returncode for child in children] == [0] * 4
    assert len(set(said)) == len(said) == 200
    assert names(spool, "queue") == sorted(f"{name}.job" for name in said)


def test_a_name_that_was_taken_at_the_last_instant_is_not_overwritten(spool: Spool) -> None:
    """Two submits of one name may both see it free; the placing itself must tell them apart."""
    target, aside = Path(spool.job_file("queue", "a")), Path(spool.aside_dir, "mine")
    target.write_bytes(b"theirs")
    aside.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        add._link(str(aside), str(target))
    assert target.read_bytes() == b"theirs"


# Listing and reading ----------------------------------------------------------------------------


def test_a_listing_tells_what_a_file_is(spool: Spool) -> None:
    add.add(spool, "a", DATA)
    entry = found(spool)["a"]
    status = os.stat(spool.job_file("queue", "a"))
    assert entry == scan.Entry(
        "a", "queue", None, status.st_mtime_ns, len(DATA), status.st_ino, os.getuid()
    )
    got = scan.read_job(spool, "queue", "a")
    assert isinstance(got, scan.JobBytes)
    assert (got.data, got.ino, got.mtime_ns) == (DATA, status.st_ino, status.st_mtime_ns)


def test_only_job_files_are_listed_and_near_misses_are_said(spool: Spool) -> None:
    for name in ("a.job", "a.job~", ".b.job.swp", "README", "a.job.~1~", "c.JOB", "d.sh"):
        Path(spool.root, "queue", name).write_bytes(DATA)
    entries = found(spool)
    assert set(entries) == {"a", "c.JOB", "d.sh"}
    assert "must end in .job" in str(entries["d.sh"].problem)
    assert found(spool)["a"].problem is None


def test_what_is_no_plain_file_is_reported_and_never_opened(spool: Spool) -> None:
    queue = Path(spool.root, "queue")
    os.mkfifo(queue / "fifo.job")
    (queue / "directory.job").mkdir()
    os.symlink("nowhere", queue / "dangling.job")
    os.symlink("loop.job", queue / "loop.job")
    os.symlink("/dev/null", queue / "device.job")
    with socket.socket(socket.AF_UNIX) as listener:
        old = os.getcwd()
        os.chdir(queue)
        listener.bind("socket.job")
        os.chdir(old)
    expected = {
        "fifo": "is a FIFO",
        "directory": "is a directory",
        "dangling": "link to nothing",
        "loop": "Too many levels",
        "device": "is a device",
        "socket": "is a socket",
    }
    entries = found(spool)
    assert set(entries) == set(expected)
    for name, words in expected.items():
        assert words in str(entries[name].problem)
        got = scan.read_job(spool, "queue", name)
        assert isinstance(got, Problem)
        assert got.file == f"queue/{name}.job"


def test_a_symbolic_link_is_followed(spool: Spool, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(DATA)
    os.symlink(tmp_path / "real", spool.job_file("queue", "a"))
    assert found(spool)["a"].problem is None
    assert found(spool)["a"].ino == (tmp_path / "real").stat().st_ino
    got = scan.read_job(spool, "queue", "a")
    assert isinstance(got, scan.JobBytes)
    assert got.data == DATA


def test_the_machine_s_queue_follows_no_link_to_what_a_user_may_exchange(tmp_path: Path) -> None:
    spool = open_spool(Spool(str(tmp_path / "machine"), system=True))
    (tmp_path / "real").write_bytes(DATA)
    os.symlink(tmp_path / "real", spool.job_file("queue", "a"))
    assert "follows none" in str(found(spool)["a"].problem)
    got = scan.read_job(spool, "queue", "a")
    assert isinstance(got, Problem)
    assert "put the file itself there" in got.message


def test_bad_names_are_problems_that_can_be_printed(spool: Spool) -> None:
    queue = os.fsencode(spool.state_dir("queue"))
    for name in (b"123.job", b"\xff.job", b"a\nb.job", b".job"):
        with open(queue + b"/" + name, "wb") as file:
            file.write(DATA)
    problems = [entry.problem for entry in scan.scan(spool, "queue")]
    assert len(problems) == 4
    for problem in problems:
        assert problem is not None
        assert "can't be a job's name" in problem.message
        problem.message.encode()


def test_a_huge_file_is_refused_with_its_size(spool: Spool) -> None:
    with open(spool.job_file("queue", "a"), "wb") as file:
        file.truncate(40 << 20)
    assert "has 40 MiB" in str(found(spool)["a"].problem)
    assert isinstance(scan.read_job(spool, "queue", "a"), Problem)


def test_the_head_of_a_large_file_is_enough(spool: Spool) -> None:
    add.add(spool, "a", DATA + b"x" * 1_000_000)
    got = scan.read_job(spool, "queue", "a")
    assert isinstance(got, scan.JobBytes)
    assert (len(got.data), got.size_bytes) == (64 * 1024, len(DATA) + 1_000_000)


def test_what_everyone_can_write_is_refused_in_system_mode_only(tmp_path: Path) -> None:
    for system in (True, False):
        spool = open_spool(Spool(str(tmp_path / str(system)), system=system))
        add.add(spool, "a", DATA)
        os.chmod(spool.job_file("queue", "a"), 0o666)
        assert (found(spool)["a"].problem is not None) == system
        assert isinstance(scan.read_job(spool, "queue", "a"), Problem) == system


def test_a_file_that_is_gone_is_no_error(spool: Spool) -> None:
    assert scan.read_job(spool, "queue", "a") is None


def test_files_that_vanish_while_they_are_listed_are_no_error(spool: Spool) -> None:
    add.add_many(spool, ((f"{n}-x", DATA) for n in range(500)))
    for entry in scan.scan(spool, "queue"):
        for other in os.listdir(spool.state_dir("queue"))[:5]:
            os.unlink(f"{spool.state_dir('queue')}/{other}")
        assert entry.problem is None


def test_a_missing_state_directory_is_said(spool: Spool) -> None:
    os.rmdir(spool.state_dir("queue"))
    with pytest.raises(SpoolError, match=r"can't list .*queue.*removed"):
        list(scan.scan(spool, "queue"))
    with pytest.raises(SpoolError, match="queue"):
        add.add(spool, "a", DATA)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_a_problem(spool: Spool) -> None:
    add.add(spool, "a", DATA)
    os.chmod(spool.job_file("queue", "a"), 0)
    assert "can't be read" in str(scan.read_job(spool, "queue", "a"))


# Moving -----------------------------------------------------------------------------------------


def test_a_move_is_from_one_directory_to_another(spool: Spool) -> None:
    add.add(spool, "a", DATA)
    assert moves.move(spool, "a", "queue", "running") is None
    assert moves.states_of(spool, "a") == ("running",)
    assert moves.move(spool, "a", "running", "running") is None


def test_what_is_in_the_way_is_kept_and_named(spool: Spool) -> None:
    for text in (b"first", b"second", b"third"):
        add.add(spool, "a", text)
        moves.move(spool, "a", "queue", "done")
    assert names(spool, "done") == ["a.job", "a.job.~1~", "a.job.~2~"]
    assert Path(spool.job_file("done", "a")).read_bytes() == b"third"
    assert list(found(spool, "done")) == ["a"]
    add.add(spool, "a", DATA)
    assert moves.move(spool, "a", "queue", "done") == "a.job.~3~"


def test_a_source_that_vanished_is_said_and_the_target_stays(spool: Spool) -> None:
    add.add(spool, "a", DATA, state="done")
    with pytest.raises(NoSuchJob, match="a is not in queue/ any more"):
        moves.move(spool, "a", "queue", "done")
    assert names(spool, "done") == ["a.job"]


def test_a_missing_target_directory_loses_nothing(spool: Spool) -> None:
    add.add(spool, "a", DATA)
    os.rmdir(spool.state_dir("running"))
    with pytest.raises(SpoolError, match="can't move"):
        moves.move(spool, "a", "queue", "running")
    assert names(spool, "queue") == ["a.job"]


def test_a_link_is_moved_as_a_link(spool: Spool, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(DATA)
    os.symlink(tmp_path / "real", spool.job_file("queue", "a"))
    moves.move(spool, "a", "queue", "running")
    assert os.path.islink(spool.job_file("running", "a"))


def test_removal(spool: Spool) -> None:
    add.add(spool, "a", DATA)
    moves.remove(spool, "a", "queue")
    with pytest.raises(NoSuchJob):
        moves.remove(spool, "a", "queue")
