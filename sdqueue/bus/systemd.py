"""The manager's D-Bus interface, typed: what it can be asked, and what it tells.

Knows org.freedesktop.systemd1 on systemd 252 and later, of the system and of a user alike; it must
not know lanes or jobs of ours, and decides nothing. No proxies and no introspection: calls have
literal signatures, and three match rules bring every signal.

Theory of operation. `subscribe()` comes first: AddMatch, then Subscribe, and only then may anything
be started, or its end could be missed. Signals become values and go to `on_event` in the order of
the wire; what a unit reports before its JobRemoved is all that will be known of it, since its
object path answers for a unit that is gone with the defaults of an empty one (`Result=success`).
When the manager loses its bus it forgets who had subscribed, and ends of unit jobs meanwhile are
lost; so after `ManagerBack` subscribe again and reconcile. Between `Reloading(True)` and
`Reloading(False)` UnitRemoved and UnitNew come for every unit and mean nothing.

A PropertiesChanged carries all that can change of an interface, so the last one says everything.
Of those that are read in one go only the last is unmarshalled and told, and it is told before the
unit's JobRemoved: ten of them come with the shortest job, and reading one is dear.

Every unit job that came over a bus costs the manager a match rule of its own until it ends, of 512
in all on the system bus; past that it loses its connection. So at most 64 starts are open, from the
call to their JobRemoved, and at most 100 calls wait for an answer (the bus allows 128).

What a refused call means is in the name of the RemoteError, never in its text: see `REFUSALS`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from sdqueue.bus.connection import Bus
from sdqueue.bus.match import BUS_NAME, Match, Signal
from sdqueue.bus.systemd_words import (
    MANAGER,
    NAME,
    PATH,
    REFUSALS,
    SERVICE,
    UNIT,
    UNIT_PATHS,
    JobRemoved,
    ManagerBack,
    ManagerGone,
    Reaction,
    Reloading,
    SystemdEvent,
    UnitChanged,
    UnitJob,
    UnitJobListed,
    UnitListed,
    UnitNew,
    UnitRemoved,
    reaction,
    unit_of_path,
    version_number,
)
from sdqueue.bus.window import STARTS_MAX, StartWindow
from sdqueue.bus.wire import Variant
from sdqueue.pidfd import has_ended
from sdqueue.words.errors import RemoteError

__all__ = [
    "CALLS_MAX",
    "NAME",
    "REFUSALS",
    "STARTS_MAX",
    "JobRemoved",
    "ManagerBack",
    "ManagerGone",
    "Properties",
    "Reaction",
    "Reloading",
    "Systemd",
    "SystemdEvent",
    "UnitChanged",
    "UnitJob",
    "UnitJobListed",
    "UnitListed",
    "UnitNew",
    "UnitRemoved",
    "reaction",
    "unit_of_path",
    "version_number",
]

PROPERTIES = "org.freedesktop.DBus.Properties"
NO_UNIT_OF_PROCESS = (
    f"{NAME}.NoUnitForPID",
    f"{NAME}.NoSuchProcess",
    "org.freedesktop.DBus.Error.UnixProcessIdUnknown",
)
CALLS_MAX = 100

Properties = Sequence[tuple[str, str, object]]
"""(name, D-Bus signature, plain value), in the order in which the manager is to apply them."""


class Systemd:
    """A client of one manager. `prefixes` say of which units' signals are wanted ("" is all)."""

    def __init__(
        self, bus: Bus, on_event: Callable[[SystemdEvent], None], *, prefixes: Sequence[str] = ("",)
    ) -> None:
        self.bus = bus
        self._on_event = on_event
        self._prefixes = tuple(prefixes)
        self._window = StartWindow()
        self._calls = asyncio.Semaphore(CALLS_MAX)
        self._is_matched = False
        self._knows_pidfds = True
        self._loop = asyncio.get_running_loop()
        self._changes: dict[str, dict[str, Signal]] = {}

    @property
    def open_starts(self) -> int:
        """How many unit jobs that we started have not ended, as far as we were told."""
        return self._window.open_starts

    async def subscribe(self) -> None:
        """Have signals delivered; call it before anything else, and again after ManagerBack."""
        if not self._is_matched:
            await self.bus.add_match(Match(NAME, MANAGER, path=PATH), self._on_manager_signal)
            changes = Match(NAME, PROPERTIES, "PropertiesChanged", path_namespace=UNIT_PATHS)
            await self.bus.add_match(changes, self._on_properties_changed)
            owner = Match(BUS_NAME, BUS_NAME, "NameOwnerChanged", arg0=NAME)
            await self.bus.add_match(owner, self._on_owner_changed)
            self._is_matched = True
        try:
            await self._call("Subscribe")
        except RemoteError as error:
            if error.name != f"{NAME}.AlreadySubscribed":
                raise

    async def start_transient(
        self, name: str, properties: Properties, *, mode: str = "fail"
    ) -> UnitJob:
        """Create a unit and queue its start job. Descriptors (`h`) stay the caller's.

        Waits while 64 starts are open. A time-out, BusGone or "later" leaves the outcome open.
        """
        wanted = [(key, Variant(signature, value)) for key, signature, value in properties]
        return await self._start("StartTransientUnit", "ssa(sv)a(sa(sv))", name, mode, wanted, [])

    async def start_unit(self, name: str, mode: str = "fail") -> UnitJob:
        """Queue a start job for a unit that has a file; counts as `start_transient` does."""
        return await self._start("StartUnit", "ss", name, mode)

    async def stop_unit(self, name: str, mode: str = "replace") -> UnitJob:
        """Queue a stop job; never waits for a place, or a full queue could not be cancelled."""
        (path,) = await self._call("StopUnit", "ss", name, mode)
        return _unit_job(path)

    async def kill_unit(self, name: str, signal: int, *, who: str = "all") -> None:
        """Send a signal to a unit's processes: "main", "control" or "all"."""
        await self._call("KillUnit", "ssi", name, who, signal)

    async def reset_failed(self, name: str) -> None:
        """Let go of a unit that is kept because it failed."""
        await self._call("ResetFailedUnit", "s", name)

    async def reload(self) -> None:
        """Have the manager read its unit files again, and wait until it has."""
        await self._call("Reload", timeout_sec=120.0)

    async def list_units(
        self, patterns: Sequence[str], states: Sequence[str] = ()
    ) -> list[UnitListed]:
        """Return the loaded units whose name fits one of the globs, and their state if given."""
        (rows,) = await self._call("ListUnitsByPatterns", "asas", list(states), list(patterns))
        return [UnitListed(*row) for row in _rows(rows)]

    async def list_unit_jobs(self) -> list[UnitJobListed]:
        """Return all queued unit jobs."""
        (rows,) = await self._call("ListJobs")
        return [UnitJobListed(*row[:4]) for row in _rows(rows)]

    async def unit_properties(self, name: str) -> dict[str, object] | None:
        """Return all properties of a unit, of all its interfaces; None where it is not loaded.

        A unit that goes in between is told by its LoadState: its path answers for it still.
        """
        try:
            (path,) = await self._call("GetUnit", "s", name)
            (found,) = await self._get("GetAll", str(path), "s", "")
        except RemoteError as error:
            if error.name in (f"{NAME}.NoSuchUnit", "org.freedesktop.DBus.Error.UnknownObject"):
                return None
            raise
        properties = _properties(found)
        return None if properties.get("LoadState") == "not-found" else properties

    async def unit_by_pid(self, pid: int) -> str | None:
        """Return the unit that a process belongs to, None where it is in none or is gone."""
        try:
            (path,) = await self._call("GetUnitByPID", "u", pid)
        except RemoteError as error:
            if error.name in NO_UNIT_OF_PROCESS:
                return None
            raise
        return unit_of_path(str(path))

    async def unit_of_pid(self, pidfd: int, pid: int) -> str | None:
        """Return the unit that the process of a descriptor belongs to; it can't be another's.

        None where it is in none, or has ended. A manager before systemd 253 is asked by pid, and
        its answer counts if the process is there still.
        """
        if self._knows_pidfds:
            try:
                _, unit, _ = await self._call("GetUnitByPIDFD", "h", pidfd)
            except RemoteError as error:
                if error.name in NO_UNIT_OF_PROCESS:
                    return None
                if error.name != "org.freedesktop.DBus.Error.UnknownMethod":
                    raise
                self._knows_pidfds = False
            else:
                return str(unit)
        unit_name = await self.unit_by_pid(pid)
        return None if has_ended(pidfd) else unit_name

    async def unit_pids(self, name: str) -> list[int]:
        """Return the processes of a unit."""
        (rows,) = await self._call("GetUnitProcesses", "s", name)
        return [pid for _, pid, _ in _rows(rows)]

    async def active_state(self, name: str) -> str:
        """Return the state of a unit: active, activating, failed…, "" where it is not loaded."""
        try:
            (path,) = await self._call("GetUnit", "s", name)
        except RemoteError as error:
            if error.name == f"{NAME}.NoSuchUnit":
                return ""
            raise
        (state,) = await self._get("Get", str(path), "ss", UNIT, "ActiveState")
        return str(state)

    async def control_group(self) -> str:
        """Return the control group below which the manager has its units, "" for the root."""
        (path,) = await self._get("Get", PATH, "ss", MANAGER, "ControlGroup")
        return str(path)

    async def manager_properties(self) -> dict[str, object]:
        """Return the manager's own properties: Version, SystemState, FinishTimestamp…"""
        (found,) = await self._get("GetAll", PATH, "s", MANAGER)
        return _properties(found)

    async def version(self) -> int:
        """Return systemd's major version: 252 for "252.39-1~deb12u1"."""
        (text,) = await self._get("Get", PATH, "ss", MANAGER, "Version")
        return version_number(str(text))

    # -- calls -------------------------------------------------------------------------------------

    async def _call(
        self, member: str, signature: str = "", *body: object, timeout_sec: float = 25.0
    ) -> tuple[object, ...]:
        async with self._calls:
            return await self.bus.call(
                NAME, PATH, MANAGER, member, signature, *body, timeout_sec=timeout_sec
            )

    async def _get(
        self, member: str, path: str, signature: str, *body: object
    ) -> tuple[object, ...]:
        async with self._calls:
            return await self.bus.call(NAME, path, PROPERTIES, member, signature, *body)

    async def _start(self, member: str, signature: str, *body: object) -> UnitJob:
        await self._window.wait_place()
        with self._window.starting() as started:
            (path,) = await self._call(member, signature, *body)
            job = _unit_job(path)
            started(job.id)
        return job

    # -- signals -----------------------------------------------------------------------------------

    def _on_manager_signal(self, signal: Signal) -> None:
        make = _MANAGER_SIGNALS.get(signal.member)
        if make is None:
            return
        event = make(*signal.body)
        match event:
            case JobRemoved(job_id, unit, _):
                self._window.ended(job_id)
                self._tell_changes(unit)
            case UnitRemoved(unit):
                # What it still said after its unit job ended is of no use to anybody.
                self._changes.pop(unit, None)
                if not self._is_wanted(unit):
                    return
            case UnitNew(unit) if not self._is_wanted(unit):
                return
            case Reloading():
                self._tell_all_changes()
        self._on_event(event)

    def _on_properties_changed(self, signal: Signal) -> None:
        unit = unit_of_path(signal.path)
        if signal.arg0 in (UNIT, SERVICE) and self._is_wanted(unit):
            if not self._changes:
                self._loop.call_soon(self._tell_all_changes)
            self._changes.setdefault(unit, {})[signal.arg0] = signal

    def _tell_changes(self, unit: str) -> None:
        for interface, signal in self._changes.pop(unit, {}).items():
            self._on_event(UnitChanged(unit, interface, partial(_changed, signal)))

    def _tell_all_changes(self) -> None:
        for unit in list(self._changes):
            self._tell_changes(unit)

    def _on_owner_changed(self, signal: Signal) -> None:
        _, old, new = signal.body
        self._tell_all_changes()
        if old:
            self._window.forget()
            self._on_event(ManagerGone())
        if new:
            self._on_event(ManagerBack())

    def _is_wanted(self, unit: str) -> bool:
        return unit.startswith(self._prefixes)


_MANAGER_SIGNALS: Mapping[str, Callable[..., SystemdEvent]] = {
    "JobRemoved": lambda job_id, _path, unit, result: JobRemoved(job_id, unit, result),
    "UnitNew": lambda unit, _path: UnitNew(unit),
    "UnitRemoved": lambda unit, _path: UnitRemoved(unit),
    "Reloading": lambda active: Reloading(active),
}


def _unit_job(path: object) -> UnitJob:
    return UnitJob(int(str(path).rpartition("/")[2]), str(path))


def _rows(rows: object) -> list[tuple[Any, ...]]:
    """Take what the bus says is an array of structs for one: the signature was checked there."""
    return cast("list[tuple[Any, ...]]", rows)


def _changed(signal: Signal) -> dict[str, object]:
    return _properties(signal.body[1])


def _properties(found: object) -> dict[str, object]:
    return cast("dict[str, object]", found)
