"""An open gpu-wait is found by readers of the log's tail, whatever is written after it."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sdqueue.controller.journal import Journal
from sdqueue.spool.eventlog import EventLog
from sdqueue.spool.layout import Spool, open_spool
from tests.harness.gpu_reader import last_wait

WAIT = {"lane": "gpu", "pid": 7, "cmd": "llama-server", "episode": "e1"}
NOISE = {"lane": "net", "note": "x" * 900}


class Log:
    """A journal, and its reader."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.events = EventLog(open_spool(Spool(str(root))), max_bytes=max_bytes)
        self.journal = Journal(self.events)
        self.runner = asyncio.Runner()
        self.file = root / "events.jsonl"

    def write(self, event: str, fields: Mapping[str, object], *, times: int = 1) -> None:
        """Have the events written, and wait until they are."""

        async def writing() -> None:
            task = asyncio.create_task(self.journal.run())
            for _ in range(times):
                self.journal.write(event, "1-gpu-a", fields)
            await self.journal.wait_drained()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.runner.run(writing())

    @property
    def episode(self) -> object:
        found = last_wait(self.file)
        return found and found["episode"]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "spool", 16 << 20)
    yield made
    made.runner.close()
    made.events.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Log]:
    """Give a log that is rotated often."""
    made = Log(tmp_path / "spool", 64 << 10)
    yield made
    made.runner.close()
    made.events.close()


def test_after_more_than_a_megabyte_it_is_still_found_at_every_moment(log: Log) -> None:
    log.write("gpu-wait", WAIT)
    for _ in range(60):
        log.write("skipped", NOISE, times=25)
        assert log.episode == "e1"
    lines = [json.loads(line) for line in log.file.read_text().splitlines()]
    waits = [line for line in lines if line["event"] == "gpu-wait"]
    assert log.file.stat().st_size > 1_300_000
    assert 4 < len(waits) < 10
    assert {wait["episode"] for wait in waits} == {"e1"}


def test_one_batch_of_a_megabyte_hides_it_nowhere(log: Log) -> None:
    log.write("gpu-wait", WAIT)
    log.write("skipped", NOISE, times=1500)
    since = 0
    for line in log.file.read_bytes().splitlines(keepends=True):
        since = 0 if json.loads(line)["event"] == "gpu-wait" else since + len(line)
        assert since < 256 * 1024


def test_a_log_that_is_rotated_meanwhile_begins_with_it(small: Log) -> None:
    small.write("gpu-wait", WAIT)
    for _ in range(10):
        small.write("skipped", NOISE, times=25)
        assert small.episode == "e1"
    assert small.file.with_suffix(".jsonl.1").exists()
    assert json.loads(small.file.read_text().splitlines()[0])["event"] == "gpu-wait"


@pytest.mark.parametrize(
    ("event", "fields"),
    [("start", {"lane": "gpu"}), ("runner-start", {}), ("gpu-wait-end", WAIT)],
)
def test_what_is_over_is_not_written_again(log: Log, event: str, fields: dict[str, object]) -> None:
    log.write("gpu-wait", WAIT)
    log.write(event, fields)
    log.write("skipped", NOISE, times=1000)
    assert log.file.read_text().count('"gpu-wait"') == 1
    assert log.episode is None


OPENED = [
    ("lease", "lease-end", {"unit": "l.service"}, {"unit": "m.service"}),
    ("lease-wait", "lease-wait-end", {"unit": "l.service"}, {"unit": "m.service"}),
    ("owner", "owner-end", {"lane": "gpu", "pid": 7}, {"lane": "gpu", "pid": 8}),
    ("paused", "resumed", {"lane": "gpu"}, {"lane": "net"}),
]


@pytest.mark.parametrize(("opens", "ends", "this", "other"), OPENED)
def test_whatever_is_open_heads_a_new_log_until_its_end(
    small: Log, opens: str, ends: str, this: dict[str, object], other: dict[str, object]
) -> None:
    small.write(opens, this)
    small.write(ends, other)
    small.write("start", {"lane": "gpu"})
    small.write("skipped", NOISE, times=100)
    assert json.loads(small.file.read_text().splitlines()[0])["event"] == opens
    small.write(ends, this)
    small.write("skipped", NOISE, times=100)
    assert f'"{opens}"' not in small.file.read_text()


def test_a_start_in_another_lane_does_not_end_it(log: Log) -> None:
    log.write("gpu-wait", WAIT)
    log.write("start", {"lane": "net"})
    log.write("skipped", NOISE, times=1000)
    assert log.episode == "e1"
