"""The event log: one line an event, never a number twice, whatever happens to the file."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdqueue.spool.eventlog import Clock, EventLog
from sdqueue.spool.eventread import Follower, tail
from sdqueue.spool.layout import Spool, open_spool
from sdqueue.words.errors import SpoolError


class StillClock(Clock):
    def now_sec(self) -> float:
        return 1795976671.5

    def boot_id(self) -> str:
        return "b" * 32

    def local(self, sec: float) -> str:
        return f"2026-11-29 18:24:{sec % 60:02.0f}"


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return open_spool(Spool(str(tmp_path / "s")))


def opened(
    spool: Spool, max_bytes: int = 1 << 24, carried: Sequence[Mapping[str, object]] = ()
) -> EventLog:
    return EventLog(spool, clock=StillClock(), max_bytes=max_bytes, carried=lambda: carried)


def seqs(spool: Spool, count: int = 10**9) -> list[object]:
    return [record["seq"] for record in tail(spool, count)]


def test_an_event_is_one_line_with_its_time_and_number(spool: Spool) -> None:
    log = opened(spool)
    told = log.append({"event": "start", "job": "a\n", "seq": 99})
    log.close()
    log.close()
    line = Path(spool.events_file).read_text()
    assert line.count("\n") == 1
    assert json.loads(line) == told
    assert told == {
        "ts": "2026-11-29 18:24:32",
        "t": 1795976671.5,
        "boot": "b" * 32,
        "seq": 1,
        "event": "start",
        "job": "a\n",
    }


def test_the_real_clock() -> None:
    clock = Clock()
    assert len(clock.boot_id()) == 32
    assert len(clock.local(clock.now_sec())) == 19


def test_numbers_go_on_without_a_gap_after_a_clean_end(spool: Spool) -> None:
    for _ in range(3):
        log = opened(spool)
        log.append({"event": "x"})
        log.close()
    assert seqs(spool) == [1, 2, 3]


def test_numbers_never_repeat_after_a_kill_nor_when_the_log_is_removed(spool: Spool) -> None:
    given_out: list[int] = []
    for remove in (False, True, False, True):
        log = opened(spool)  # never closed: killed
        given_out += [int(str(log.append({"event": "x"})["seq"])) for _ in range(3)]
        os.close(log._fd)
        if remove:
            os.unlink(spool.events_file)
    assert given_out == sorted(set(given_out))


@pytest.mark.parametrize("torn", [b'{"event": "sta', b"\0" * 4000, b'{"seq": 5}', b"\xff"])
def test_a_torn_last_line_is_mended_kept_and_said(spool: Spool, torn: bytes) -> None:
    log = opened(spool)
    log.append({"event": "x"})
    log.close()
    with open(spool.events_file, "ab") as file:
        file.write(torn)
    log = opened(spool)
    log.append({"event": "y"})
    log.close()
    assert torn + b"\n" in Path(spool.events_file).read_bytes()
    events = [record.get("event") for record in tail(spool, 10)]
    assert events[-2:] == ["error", "y"]
    assert f"its {len(torn)} bytes" in str(tail(spool, 2)[0]["what"])
    numbers = seqs(spool)
    assert len(set(map(str, numbers))) == len(numbers)


def test_rotation_keeps_whole_lines_and_puts_the_carried_first(spool: Spool) -> None:
    carried = [{"event": "gpu-wait", "episode": "e1"}]
    log = opened(spool, max_bytes=2000, carried=carried)
    for number in range(150):
        log.append({"event": "x", "n": number})
    log.close()
    for suffix in ("", ".1", ".2", ".3"):
        lines = Path(spool.events_file + suffix).read_bytes().splitlines()
        assert all(json.loads(line) for line in lines)
        assert json.loads(lines[0])["event"] == "gpu-wait"
        assert len(lines) < 25
    assert not os.path.exists(f"{spool.events_file}.4")
    numbers = seqs(spool)
    assert numbers == list(range(int(str(numbers[0])), int(str(numbers[-1])) + 1))
    assert os.listdir(spool.aside_dir) == []


def test_a_restart_after_a_rotation_goes_on(spool: Spool) -> None:
    log = opened(spool, max_bytes=1)
    log.append({"event": "x"})
    log.append({"event": "y"})
    log.close()
    os.unlink(f"{spool.root}/events.seq")
    os.truncate(spool.events_file, 0)
    log = opened(spool)
    assert log.append({"event": "z"})["seq"] == 2  # the last line that is left is in the .1


def test_half_a_rotation_is_undone(spool: Spool) -> None:
    log = opened(spool)
    log.append({"event": "x"})
    log.close()
    os.link(spool.events_file, f"{spool.events_file}.1")
    log = opened(spool)
    log.append({"event": "y"})
    log.close()
    assert seqs(spool) == [1, 2]


def test_a_removed_log_is_begun_anew(spool: Spool) -> None:
    log = opened(spool)
    log.append({"event": "x"})
    os.unlink(spool.events_file)
    log.append({"event": "y"})
    log.close()
    assert [record["event"] for record in tail(spool, 5)] == ["y"]


def test_a_link_in_the_log_s_place_is_not_followed(spool: Spool, tmp_path: Path) -> None:
    os.symlink(tmp_path / "victim", spool.events_file)
    with pytest.raises(SpoolError, match="symbolic link"):
        opened(spool)
    assert not (tmp_path / "victim").exists()


def test_a_full_disk_is_said_and_the_next_event_is_whole(spool: Spool) -> None:
    log = opened(spool)
    log.append({"event": "x"})
    real = log._fd
    log._fd = os.open("/dev/full", os.O_RDWR)
    with pytest.raises(SpoolError, match="free some space"):
        log.append({"event": "lost"})
    os.close(log._fd)
    log._fd = real
    log.append({"event": "y"})
    log.close()
    assert [(record["event"], record["seq"]) for record in tail(spool, 9)] == [("x", 1), ("y", 2)]


def test_the_tail_is_read_from_the_end(spool: Spool) -> None:
    assert tail(spool, 5) == []
    log = opened(spool)
    for _ in range(5000):
        log.append({"event": "x", "text": "y" * 50})
    log.close()
    assert seqs(spool, 3) == [4998, 4999, 5000]
    assert len(seqs(spool)) == 5000
    assert tail(spool, 0) == []


def test_a_follower_sees_each_event_once_across_rotations(spool: Spool) -> None:
    early = Follower(spool)
    assert early.read() == []
    log = opened(spool, max_bytes=500)
    seen = []
    for number in range(100):
        log.append({"event": "x", "n": number})
        if number % 7 == 0:
            seen += early.read()
    seen += early.read()
    assert [record["n"] for record in seen] == list(range(100))
    late = Follower(spool)
    log.append({"event": "last"})
    assert [record["event"] for record in late.read()] == ["last"]
    whole = Follower(spool, from_start=True)
    assert whole.read()[-1]["event"] == "last"
    for follower in (early, late, whole):
        follower.close()
    log.close()


def test_a_follower_waits_for_the_whole_line(spool: Spool) -> None:
    follower = Follower(spool, from_start=True)
    with open(spool.events_file, "ab", buffering=0) as file:
        file.write(b'{"a"')
        assert follower.read() == []
        file.write(b": 1}\nbroken\n[]\n")
        assert follower.read() == [{"a": 1}]
    follower.close()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=60), st.just(b'{"seq": 3}\n')), max_size=8))
def test_no_log_makes_reader_or_writer_fail(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    spool = open_spool(Spool(str(tmp_path_factory.mktemp("s"))))
    Path(spool.events_file).write_bytes(b"".join(parts))
    log = opened(spool)
    written = log.append({"event": "x"})
    log.close()
    assert tail(spool, 1) == [written]
