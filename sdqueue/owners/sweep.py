"""One look at who uses a lane: all detectors in their order, and owners made of what they saw.

Theory of operation. `Sweep.first` asks every detector that applies. Where it leaves somebody
undecided, who has a device open, little memory and counters of engine time, `again` a second later
asks those that have counters for just these processes. `owners` then joins all that was seen of a
process into one Owner, and adds nobody in particular (pid 0) where something could not be told or
memory is in use that nobody has. A whole scan of descriptors is left out while the device's memory
is explained by those who were seen already: nobody new can be on it without some.

It decides nothing: whose a process is, and who waits for it, is for others to say.
"""

import os
import time
from dataclasses import dataclass, field

from sdqueue.core.lane import Lane
from sdqueue.core.owner import Owner, Use
from sdqueue.owners import judge
from sdqueue.owners.box import Box
from sdqueue.owners.clients import Process
from sdqueue.owners.descriptors import Remembered
from sdqueue.owners.detectors import DETECTORS, Asked, Detector
from sdqueue.owners.judge import Evidence
from sdqueue.owners.sighting import Gauge, Report, Sighting
from sdqueue.owners.units import ActiveUnit

BETWEEN_SEC = 1.0
UNKNOWN = "unknown"
UNTOLD = "what it does with the device can't be told"
KERNEL_WIDE = ("kfd", "nvml")
FLOOR = "vram_floor: memory that the driver has kept, and that nobody has"
HIDDEN = "memory of the device is in use by somebody whom this user can't see"


@dataclass(slots=True)
class LaneMemory:
    """What is known of a lane from one sweep to the next.

    `unexplained_bytes` is how much memory of the devices no kernel-wide source gave to anybody
    when all descriptors were looked at last; None where they were not yet. `samples` are the last
    sightings that had counters.
    """

    scanned: Remembered = field(default_factory=Remembered)
    unexplained_bytes: int | None = None
    samples: dict[tuple[object, ...], Sighting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a sweep found: owners, the devices' memory, notes, and words why it could not tell."""

    owners: tuple[Owner, ...]
    gauges: tuple[Gauge, ...] = ()
    notes: tuple[str, ...] = ()
    remainder_bytes: int = 0


class Sweep:
    """One sweep over one lane. Its methods block, and belong into a thread."""

    def __init__(
        self,
        lane: Lane,
        memory: LaneMemory,
        *,
        root: str = "/",
        active: tuple[ActiveUnit, ...] | None = None,
        is_privileged: bool | None = None,
    ) -> None:
        self._lane = lane
        self._memory = memory
        self._root = root
        self._active = active
        self._sees_all = os.geteuid() == 0 if is_privileged is None else is_privileged
        self._box = Box(root)
        self._reports: dict[str, Report] = {}
        self._later: dict[tuple[object, ...], Sighting] = {}
        self._at = 0.0
        self._elapsed_sec = 0.0
        self._undecided: frozenset[int] = frozenset()

    def first(self, *, is_full: bool = False) -> bool:
        """Ask all detectors; say whether a second sample is needed to tell.

        `is_full`: look at every descriptor, whatever is known from earlier.
        """
        if is_full:
            self._memory.scanned.without.clear()
        self._at = time.monotonic()
        for detector in DETECTORS:
            if detector.applies(self._lane):
                self._reports[detector.name] = self._ask_first(detector, is_full=is_full)
        self._undecided = self._decide()
        return bool(self._undecided)

    def again(self) -> None:
        """Take the second sample, of those that the first one left undecided."""
        self._elapsed_sec = time.monotonic() - self._at
        only, self._box = self._undecided, Box(self._root)
        found: list[Sighting] = []
        for detector in DETECTORS:
            if detector.has_counters and detector.applies(self._lane):
                found += self._ask(detector, only, Remembered()).sightings
        self._later = judge.together(found)

    def first_seen(self, *, is_full: bool = False) -> Seen | None:
        """Ask all detectors and say what was found; None where a second sample is needed."""
        return None if self.first(is_full=is_full) else self.seen()

    def again_seen(self) -> Seen:
        """Take the second sample, and say what was found."""
        self.again()
        return self.seen()

    def whole(self, *, is_full: bool = False) -> Seen:
        """Sweep from beginning to end, with the pause that it may need."""
        seen = self.first_seen(is_full=is_full)
        if seen is None:
            time.sleep(BETWEEN_SEC)
            seen = self.again_seen()
        return seen

    def seen(self) -> Seen:
        """Say what was found."""
        owners = self._owners()
        remainder = self._remainder(owners)
        owners += [*self._failures(), *self._rest(remainder)]
        family = {owner.pid for owner in owners}
        owners.sort(key=lambda each: (not each.counts, each.ppid in family, each.pid))
        return Seen(tuple(owners), self._gauges(), self._notes(), remainder)

    # Asking

    def _ask_first(self, detector: Detector, *, is_full: bool) -> Report:
        """Ask one detector; the dear one only about those it knows, where that is all there is."""
        if not detector.remembers:
            return self._ask(detector, None)
        known = frozenset(self._memory.scanned.having)
        if not is_full and self._is_explained():
            report = self._ask(detector, known)
            if known == self._memory.scanned.having:
                return report
        report = self._ask(detector, None)
        self._memory.unexplained_bytes = self._unexplained_bytes()
        return report

    def _ask(
        self, detector: Detector, only: frozenset[int] | None, memory: Remembered | None = None
    ) -> Report:
        covers = frozenset[str]().union(*(each.covers for each in self._reports.values()))
        asked = Asked(self._active, covers, memory or self._memory.scanned, only)
        try:
            return detector.look(self._box, self._lane, asked)
        except OSError as error:
            return Report(cannot_tell=f"{error.filename}: {error.strerror}")

    def _is_explained(self) -> bool:
        """Say whether nobody can have come since the last full scan: it would have some memory."""
        before = self._memory.unexplained_bytes
        if before is None or self._unexplained_bytes() > before + judge.EXPLAINED_BYTES:
            return False
        known = [report.covers | report.measured for report in self._reports.values()]
        try:
            nodes = {node.path for node in self._box.nodes(self._lane)}
        except OSError:
            return False
        return nodes <= frozenset[str]().union(*known)

    def _unexplained_bytes(self) -> int:
        kernel_wide = [seen for name in KERNEL_WIDE for seen in self._saw(name)]
        used = sum(gauge.used_bytes for gauge in self._gauges())
        return used - sum(seen.memory_bytes or 0 for seen in kernel_wide)

    def _saw(self, name: str) -> tuple[Sighting, ...]:
        return self._reports[name].sightings if name in self._reports else ()

    def _gauges(self) -> tuple[Gauge, ...]:
        return tuple(gauge for report in self._reports.values() for gauge in report.gauges)

    # Judging

    def _sightings(self) -> list[Sighting]:
        return [seen for report in self._reports.values() for seen in report.sightings]

    def _decide(self) -> frozenset[int]:
        """Say of whom a second sample is needed: of whom not even an earlier one says enough."""
        before, self._memory.samples = self._memory.samples, {}
        open_yet = set()
        for key, seen in judge.together(self._sightings()).items():
            if judge.needs_second(seen):
                self._memory.samples[key] = seen
                if not judge.is_quiet_since(before.get(key), seen):
                    open_yet.add(seen.pid)
        return frozenset(open_yet)

    def _use(self, key: tuple[object, ...], seen: Sighting) -> Use:
        return judge.use_of(Evidence(seen, self._later.get(key), self._elapsed_sec))

    def _owner(self, process: Process, sightings: list[Sighting]) -> Owner:
        joined = judge.together(sightings)
        use = judge.strongest(self._use(key, seen) for key, seen in joined.items())
        return Owner(
            process.pid,
            process.ppid,
            process.comm,
            note=UNTOLD if use is Use.UNKNOWN else "",
            started=process.started,
            unit=self._box.unit(process.pid),
            uid=self._box.uid(process.pid),
            use=use,
            memory_bytes=judge.memory_of(sightings),
            seen=tuple(dict.fromkeys(f"{seen.by}: {seen.what}" for seen in sightings)),
        )

    def _owners(self) -> list[Owner]:
        """Make an owner of each process that was seen and is there yet."""
        by_pid: dict[int, list[Sighting]] = {}
        for seen in self._sightings():
            by_pid.setdefault(seen.pid, []).append(seen)
        unseen = by_pid.pop(0, [])
        found = [self._nobody(seen) for seen in unseen]
        for pid, sightings in by_pid.items():
            if process := self._process(pid):
                found.append(self._owner(process, sightings))
        return found

    def _process(self, pid: int) -> Process | None:
        """Look at a process that was seen; None if it has ended. It may be hidden from us."""
        hidden = Process(pid, 0, UNKNOWN, 0)
        try:
            return self._box.process(pid) or (hidden if self._hides(pid) else None)
        except OSError:
            return hidden

    def _hides(self, pid: int) -> bool:
        if not self._box.is_this or os.path.exists(f"/proc/{pid}"):
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    # Nobody in particular

    def _nobody(self, seen: Sighting) -> Owner:
        """Make an owner of what has no process that could be named."""
        unit = seen.what.split(",")[0][3:] if seen.by == "unit" else ""
        return Owner(0, comm=unit or UNKNOWN, unit=unit, note=seen.what, seen=(seen.by,))

    def _failures(self) -> list[Owner]:
        """Make an owner of each detector that could not tell: then the lane is not free."""
        failed = {name: r.cannot_tell for name, r in self._reports.items() if r.cannot_tell}
        if self._is_blind():
            failed["descriptors"] = "descriptors of some processes may not be looked at"
        return [
            Owner(0, comm=UNKNOWN, use=Use.UNKNOWN, note=f"it can't be told: {why}", seen=(name,))
            for name, why in failed.items()
        ]

    def _strangers(self) -> int:
        return sum(report.strangers for report in self._reports.values())

    def _is_blind(self) -> bool:
        """Say whether processes can't be looked at that could be, and nothing else tells of them.

        Those of others can never be looked at by a user; that is a note and no failure.
        """
        tells_all = self._gauges() or any(report.covers for report in self._reports.values())
        return self._sees_all and self._strangers() > 0 and not tells_all

    def _remainder(self, owners: list[Owner]) -> int:
        return judge.remainder_bytes(self._gauges(), sum(owner.memory_bytes for owner in owners))

    def _rest(self, remainder_bytes: int) -> list[Owner]:
        """Make an owner of memory that nobody has who was seen, where it matters."""
        size = sum(gauge.total_bytes for gauge in self._gauges())
        if self._strangers() and remainder_bytes >= judge.HIDDEN_BYTES:
            return [_rest(Use.UNKNOWN, HIDDEN, remainder_bytes)]
        if not self._strangers() and remainder_bytes >= judge.resident_from(size):
            return [_rest(Use.HOLDER, FLOOR, remainder_bytes)]
        return []

    def _notes(self) -> tuple[str, ...]:
        notes = [note for report in self._reports.values() for note in report.notes]
        if strangers := self._strangers():
            notes.append(f"{strangers} processes of others can't be looked at")
        return tuple(notes)


def _rest(use: Use, note: str, memory_bytes: int) -> Owner:
    return Owner(0, comm=UNKNOWN, use=use, note=note, memory_bytes=memory_bytes, seen=("memory",))
