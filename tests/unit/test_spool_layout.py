"""The spool's places, schema and lock, on real files."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sdqueue.spool import layout
from sdqueue.spool.layout import Spool, open_spool
from sdqueue.words.errors import SpoolBusy, SpoolError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_spool_is_its_user_s_own(tmp_path: Path) -> None:
    os.umask(0o022)
    root = tmp_path / "a" / "b" / "sdqueue"
    open_spool(Spool(f"{root}/"))
    assert {mode(root / name) for name in layout.DIRECTORIES} == {0o700}
    assert (root / "schema").read_text() == "1\n"


def test_in_system_mode_others_pass_but_see_nothing(tmp_path: Path) -> None:
    open_spool(Spool(str(tmp_path / "s"), system=True))
    assert mode(tmp_path / "s") == mode(tmp_path / "s/work") == mode(tmp_path / "s/runs") == 0o711
    assert mode(tmp_path / "s/queue") == mode(tmp_path / "s/meta") == 0o700


def test_where_the_spool_is(tmp_path: Path) -> None:
    root = layout.default_root
    assert root({"XDG_STATE_HOME": str(tmp_path)}, system=False) == f"{tmp_path}/sdqueue"
    assert root({"HOME": "/h"}, system=False) == "/h/.local/state/sdqueue"
    # A relative path is to be ignored, the base directory specification says.
    assert root({"HOME": "/h", "XDG_STATE_HOME": "x"}, system=False).startswith("/h/")
    assert root({}, system=True) == "/var/lib/sdqueue"


def test_a_newer_schema_is_refused_and_nothing_touched(tmp_path: Path) -> None:
    (tmp_path / "schema").write_text("7\n")
    with pytest.raises(SpoolError, match=r"newer sdqueue \(schema 7.*install the newer version"):
        open_spool(Spool(str(tmp_path)))
    assert os.listdir(tmp_path) == ["schema"]


def test_a_damaged_schema_number_is_said(tmp_path: Path) -> None:
    (tmp_path / "schema").write_bytes(b"\0\0\0")
    with pytest.raises(SpoolError, match="damaged: write 1 into it"):
        open_spool(Spool(str(tmp_path)))


def test_a_directory_queue_without_a_number_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / "1-cpu-x.job").write_text("x")
    open_spool(Spool(str(tmp_path)))
    assert (tmp_path / "queue" / "1-cpu-x.job").read_text() == "x"
    assert (tmp_path / "schema").read_text() == "1\n"


def test_a_removed_directory_is_made_anew_and_named(tmp_path: Path) -> None:
    spool = open_spool(Spool(str(tmp_path)))
    (tmp_path / "queue").rmdir()
    assert layout.ensure(spool) == ("queue",)
    assert layout.ensure(spool) == ()


def test_a_file_in_a_directory_s_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "queue").write_text("")
    with pytest.raises(SpoolError, match="in the way"):
        open_spool(Spool(str(tmp_path)))
    with pytest.raises(SpoolError, match="can't make the spool"):
        open_spool(Spool(str(tmp_path / "queue" / "x")))


def test_one_controller_has_the_spool_and_the_next_is_told_who(tmp_path: Path) -> None:
    spool = open_spool(Spool(str(tmp_path)))
    held = layout.lock(spool)
    with pytest.raises(SpoolBusy, match=rf"pid {os.getpid()}\) has the spool"):
        layout.lock(spool)
    held.close()
    held.close()
    layout.lock(spool).close()


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    spool = open_spool(Spool(str(tmp_path)))
    code = (
        "import sys\nfrom sdqueue.spool import layout\n"
        "layout.lock(layout.Spool(sys.argv[1]))\nprint('held', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SpoolBusy, match=f"pid {holder.pid}"):
            layout.lock(spool)
        holder.kill()
    layout.lock(spool).close()


def test_a_link_in_the_lock_s_place_is_not_followed(tmp_path: Path) -> None:
    spool = open_spool(Spool(str(tmp_path / "s")))
    os.symlink(tmp_path / "victim", spool.lock_file)
    with pytest.raises(SpoolError, match="symbolic link"):
        layout.lock(spool)
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(("age_sec", "left"), [(24 * 3600.0, {"file", "a"}), (-60.0, {"a"})])
def test_what_writers_left_aside_long_ago_goes_when_the_spool_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_sec: float, left: set[str]
) -> None:
    spool = open_spool(Spool(str(tmp_path)))
    (tmp_path / "tmp/file").write_text("")
    os.utime(tmp_path / "tmp/file", (1000, 1000))  # as a rewritten job file has it
    (tmp_path / "tmp/a").mkdir()
    monkeypatch.setattr(layout, "LEFT_BEHIND_SECONDS", age_sec)
    layout.lock(spool).close()
    assert set(os.listdir(tmp_path / "tmp")) == left


def test_submit_loads_nothing_slow() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nsys.path.insert(0, sys.argv[1])\n"
        "from sdqueue import jobkeys, jobtext\nfrom sdqueue.words import names, spans\n"
        "from sdqueue.spool import add, layout\n"
        "print(*sorted(m for m in set(sys.modules) - before if not m.startswith('sdqueue')))"
    )
    argv = [sys.executable, "-I", "-c", code, str(Path(layout.__file__).parents[2])]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"errno", "fcntl", "itertools"}
