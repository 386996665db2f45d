"""Paused lanes on disk, and what others may have written there."""

from pathlib import Path

from sdqueue.spool import pauses
from sdqueue.spool.layout import Spool, open_spool


def spool(tmp_path: Path) -> Spool:
    return open_spool(Spool(str(tmp_path / "spool")))


def test_what_was_paused_is_read_back(tmp_path: Path) -> None:
    here = spool(tmp_path)
    assert pauses.load(here) == frozenset()
    pauses.save(here, ["net", "gpu"])
    assert pauses.load(here) == {"gpu", "net"}
    pauses.save(here, [])
    assert pauses.load(here) == frozenset()


def test_what_is_no_lanes_name_there_is_passed_over(tmp_path: Path) -> None:
    here = spool(tmp_path)
    Path(here.paused_file).write_bytes(b"gpu\n\n../x\nGPU\n\xff\x00\nnet")
    assert pauses.load(here) == {"gpu", "net"}
