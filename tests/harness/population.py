"""Who is in the lanes, in the kernel's eyes: a thread that reads cgroup.procs over and over.

    with Population(manager, "gpu", "net") as seen:
        …
    seen.overlaps        []   moments at which both lanes had processes
    seen.counts               how often each lane was seen with processes in it

An overlap is proven, not guessed: a process of the one lane that was there before and after the
other lane was looked at was there together with whoever was found in that.
"""

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.harness.manager import UID, USER_SLICE, PrivateManager

QUEUE = f"{USER_SLICE}/user@{UID}.service/sdqueue.slice"


class Population:
    """The watcher of two lanes, from `with` to its end."""

    def __init__(self, manager: PrivateManager, one: str, other: str) -> None:
        tree = manager.cgroup_dir / QUEUE
        self.one, self.other = (tree / f"sdqueue-{lane}.slice" for lane in (one, other))
        self.overlaps: list[tuple[set[str], set[str]]] = []
        self.counts = {one: 0, other: 0}
        self._names = (one, other)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="population")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        before = pids_in(self.one)
        while not self._end.is_set():
            between = pids_in(self.other)
            after = pids_in(self.one)
            stayed = before & after
            if stayed and between:
                self.overlaps.append((stayed, between))
            self.counts[self._names[0]] += bool(after)
            self.counts[self._names[1]] += bool(between)
            before = after
            self._end.wait(0.001)


def pids_in(directory: Path) -> set[str]:
    """Return the processes in a cgroup and those below it; none where it is not there."""
    found: set[str] = set()
    with suppress(OSError):
        for unit in directory.iterdir():
            if unit.is_dir():
                with suppress(OSError):
                    found |= set((unit / "cgroup.procs").read_text().split())
    return found
