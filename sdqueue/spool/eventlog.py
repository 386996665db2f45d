"""Writing `events.jsonl`: one object a line, one write() a line, and never a number twice.

Knows lines and files, not what events mean. What must be found at the head of a new log (the open
gpu-wait) is handed in when the log is rotated.

`seq` goes on from the last line of the log, or from the mark in `events.seq` where the log was lost
or its end never reached the disk. The mark runs ahead of the numbers that are given out, and is set
right at close(), so only an unclean end leaves a gap.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from sdqueue.spool.eventread import KEPT_LOGS, TAIL_BLOCK, Record, backwards
from sdqueue.spool.files import (
    aside_name,
    discard,
    read_small,
    replace,
    sync_dir,
    telling,
    write_all,
)
from sdqueue.spool.layout import Spool
from sdqueue.words.errors import SpoolError

SEQ_STEP = 10_000


class Clock:
    """The time, and the boot that it is in; tests put their own in its place."""

    def now_sec(self) -> float:
        """Return unix seconds."""
        return time.time()

    def boot_id(self) -> str:
        """Return this boot's id, 32 hexadecimal digits."""
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip().replace("-", "")

    def local(self, sec: float) -> str:
        """Return the local time as people read it."""
        return datetime.fromtimestamp(sec).strftime("%Y-%m-%d %H:%M:%S")


class EventLog:
    """The log, open for appending; one writer, the controller that holds the spool's lock."""

    def __init__(
        self,
        spool: Spool,
        *,
        clock: Clock | None = None,
        max_bytes: int = 16 * 1024 * 1024,
        carried: Callable[[], Sequence[Mapping[str, object]]] = list,
    ) -> None:
        """Open the log and mend its end; `carried` says which events open a rotated log."""
        self.max_bytes = max_bytes
        self.carried = carried
        self._spool = spool
        self._clock = clock or Clock()
        self._boot = self._clock.boot_id()
        self._file = spool.events_file
        self.written_bytes = 0
        self._seq, self._mark = 0, 0
        self._is_torn = False
        self._fd = self._open(self._file)
        with telling("mend", self._file):
            self._finish_rotation()
        self._continue()

    def _open(self, file: str) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with telling("open", file):
            return os.open(file, flags, 0o600)

    def _continue(self) -> None:
        """Find the next number, and mend a line that a crash cut off."""
        last = next(backwards(self._file), None) or next(backwards(f"{self._file}.1"), None)
        seq = last.get("seq") if last else None
        mark = read_small(f"{self._spool.root}/events.seq", 64) or b""
        known = seq if isinstance(seq, int) else 0
        self._seq = max(known, int(mark) - 1 if mark.strip().isdigit() else 0)
        torn = self._torn_bytes()
        self._is_torn = bool(torn)
        if torn:
            what = (
                f"the last line of events.jsonl was cut off; its {torn} bytes are kept as they are"
            )
            self.append({"event": "error", "job": "-", "what": what})

    def _torn_bytes(self) -> int:
        """Return how many bytes follow the last line feed."""
        with telling("read", self._file):
            end = os.fstat(self._fd).st_size
            at = end
            while at > 0:
                start = max(0, at - TAIL_BLOCK)
                found = os.pread(self._fd, at - start, start).rfind(b"\n")
                if found >= 0:
                    return end - (start + found + 1)
                at = start
            return end

    def append(self, record: Mapping[str, object]) -> Record:
        """Write one event and return it as written, with `ts`, `t`, `boot` and `seq` added."""
        with telling("write to", self._file):
            status = os.fstat(self._fd)
            if status.st_nlink == 0:
                self._reopen()
            elif status.st_size >= self.max_bytes:
                self._rotate()
            line, full = self._line(record)
            self._write(line)
        return full

    def _reopen(self) -> None:
        """Begin a new log where somebody removed it."""
        fd = self._open(self._file)
        os.close(self._fd)
        self._fd, self._is_torn = fd, False

    def _line(self, record: Mapping[str, object]) -> tuple[bytes, Record]:
        if self._seq + 1 >= self._mark:
            self._set_mark(self._seq + 1 + SEQ_STEP)
        now = self._clock.now_sec()
        stamp = {"ts": self._clock.local(now), "t": now, "boot": self._boot, "seq": self._seq + 1}
        full = {**stamp, **record} | stamp
        text = json.dumps(full, ensure_ascii=False, separators=(",", ":"), default=str)
        return text.encode("utf-8", "replace") + b"\n", full

    def _write(self, line: bytes) -> None:
        if self._is_torn:
            line = b"\n" + line
        self._is_torn = True
        if os.write(self._fd, line) != len(line):
            # The disk is full: what is there stays a broken line, which readers pass over.
            raise SpoolError(f"can't write to {self._file!r}: no room for a whole line.")
        self._is_torn = False
        self._seq += 1
        self.written_bytes += len(line)

    def _set_mark(self, mark: int) -> None:
        replace(f"{self._spool.root}/events.seq", b"%d\n" % mark, self._spool.aside_dir)
        self._mark = mark

    def _rotate(self) -> None:
        """Begin a new log, headed by the carried events; a log is there at every instant."""
        aside = aside_name(self._spool.aside_dir)
        fd = self._open(aside)
        try:
            for record in self.carried():
                write_all(fd, self._line(record)[0])
                self._seq += 1
            os.fsync(fd)
            os.fsync(self._fd)
            self._shift()
            os.link(self._file, f"{self._file}.1", follow_symlinks=False)
            os.rename(aside, self._file)
        except BaseException:
            os.close(fd)
            discard(aside)
            raise
        os.close(self._fd)
        self._fd, self._is_torn = fd, False
        sync_dir(self._spool.root)

    def _shift(self) -> None:
        """Make room for a new `.1`; the oldest log goes."""
        for number in range(KEPT_LOGS - 1, 0, -1):
            if os.path.lexists(f"{self._file}.{number}"):
                os.rename(f"{self._file}.{number}", f"{self._file}.{number + 1}")

    def _finish_rotation(self) -> None:
        """Undo half a rotation: a crash between its last two steps left the log with two names."""
        older = f"{self._file}.1"
        if os.path.lexists(older) and os.path.samestat(os.lstat(older), os.fstat(self._fd)):
            os.unlink(older)

    def sync(self) -> None:
        """Make every event so far durable."""
        with telling("sync", self._file):
            os.fsync(self._fd)

    def close(self) -> None:
        """Make all durable and let go of the file; numbers go on without a gap."""
        if self._fd < 0:
            return
        self.sync()
        self._set_mark(self._seq + 1)
        os.close(self._fd)
        self._fd = -1
