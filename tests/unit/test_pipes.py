"""Who has the writing end of a pipe open."""

import os
from pathlib import Path

from sdqueue.pipes import writers


def process(proc: Path, pid: int, *descriptors: tuple[str, str]) -> None:
    """Lay out a process whose descriptors link to something, each with its flags."""
    for name in ("fd", "fdinfo"):
        (proc / str(pid) / name).mkdir(parents=True)
    for number, (target, flags) in enumerate(descriptors):
        (proc / str(pid) / "fd" / str(number)).symlink_to(target)
        if flags:
            text = f"pos:\t0\nflags:\t{flags}\n"
            (proc / str(pid) / "fdinfo" / str(number)).write_text(text)


def test_the_writers_of_a_pipe_are_those_that_can_write_to_it(tmp_path: Path) -> None:
    process(tmp_path, 7, ("pipe:[99]", "0100001"))
    process(tmp_path, 8, ("pipe:[99]", "0100000"))
    process(tmp_path, 9, ("pipe:[98]", "0100001"))
    (tmp_path / "self").mkdir()
    assert list(writers(99, str(tmp_path))) == [7]


def test_a_descriptor_that_is_closed_under_the_look_hides_no_other(tmp_path: Path) -> None:
    process(tmp_path, 7, ("pipe:[99]", ""), ("pipe:[99]", "0100001"))
    (tmp_path / "7" / "fd" / "5").write_text("no link: readlink fails as it does for what is gone")
    assert list(writers(99, str(tmp_path))) == [7]


def test_this_process_is_found_in_the_tree_of_the_kernel() -> None:
    reader, writer = os.pipe()
    try:
        assert list(writers(os.fstat(writer).st_ino)) == [os.getpid()]
    finally:
        os.close(reader)
        os.close(writer)
