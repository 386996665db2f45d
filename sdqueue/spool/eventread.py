"""Reading `events.jsonl` and its rotated logs: the last events, or each as it comes.

Broken lines are passed over. Never writes, never waits, and needs no lock: the CLI reads so while
the controller writes.
"""

import json
import os
from collections.abc import Iterator

from sdqueue.spool.files import telling
from sdqueue.spool.layout import Spool

Record = dict[str, object]
KEPT_LOGS = 3
TAIL_BLOCK = 64 * 1024


def _parsed(line: bytes) -> Record | None:
    """Return a line's object, or None for a broken line."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def backwards(file: str) -> Iterator[Record]:
    """Yield the log's events from the last one back, passing over broken lines."""
    with telling("read", file):
        try:
            fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            for line in _lines_backwards(fd):
                record = _parsed(line)
                if record is not None:
                    yield record
        finally:
            os.close(fd)


def _lines_backwards(fd: int) -> Iterator[bytes]:
    at = os.fstat(fd).st_size
    rest = b""
    while at > 0:
        start = max(0, at - TAIL_BLOCK)
        first, *lines = (os.pread(fd, at - start, start) + rest).split(b"\n")
        yield from reversed(lines)
        rest, at = first, start
    yield rest


def _status(file: str) -> os.stat_result | None:
    try:
        return os.lstat(file)
    except OSError:
        return None


def tail(spool: Spool, count: int) -> list[Record]:
    """Return the last `count` events, oldest first, across rotated logs."""
    found: list[Record] = []
    for number in range(KEPT_LOGS + 1):
        file = spool.events_file + (f".{number}" if number else "")
        for record in backwards(file):
            if len(found) >= count:
                return found[::-1]
            found.append(record)
    return found[::-1]


class Follower:
    """Reads events as they come, across rotations; read() never waits.

    It begins at the log's present end, or at its head with `from_start`. Whoever uses it watches
    the spool's root for changes and calls read() then.
    """

    def __init__(self, spool: Spool, *, from_start: bool = False) -> None:
        self._file = spool.events_file
        self._fd = -1
        self._partial = b""
        self._reopen(self._file)
        if self._fd >= 0 and not from_start:
            os.lseek(self._fd, 0, os.SEEK_END)

    def _reopen(self, file: str) -> None:
        with telling("read", file):
            try:
                fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                return
        self.close()
        self._fd, self._partial = fd, b""

    def read(self) -> list[Record]:
        """Return the events that came since the last call."""
        records = self._rest()
        while (newer := self._newer_log()) is not None:
            # Once more: lines may have come between the reading and the rotation.
            records += self._rest()
            self._reopen(newer)
            records += self._rest()
        return records

    def _newer_log(self) -> str | None:
        """Return the log that follows the one being read, or None if there is none yet."""
        logs = [self._file, *(f"{self._file}.{number}" for number in range(1, KEPT_LOGS + 1))]
        there = [(log, status) for log in logs if (status := _status(log)) is not None]
        if not there or self._fd < 0:
            return there[0][0] if there else None
        mine = os.fstat(self._fd)
        for place, (_, status) in enumerate(there):
            if os.path.samestat(status, mine):
                return there[place - 1][0] if place else None
        # Removed, or rotated away by a writer far ahead: go on with the present one.
        return there[0][0]

    def _rest(self) -> list[Record]:
        if self._fd < 0:
            return []
        parts = [self._partial]
        with telling("read", self._file):
            while part := os.read(self._fd, 1 << 20):
                parts.append(part)
        *lines, self._partial = b"".join(parts).split(b"\n")
        return [record for line in lines if (record := _parsed(line)) is not None]

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
