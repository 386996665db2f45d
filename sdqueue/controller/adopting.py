"""What was started by hand and is to occupy a lane: found, and a descriptor that tells its end.

A process is told by its descriptor, a unit by its control group's cgroup.events, which also covers
what its main process leaves behind; where that can't be had, by its main process.
"""

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sdqueue.bus.service import Credentials
from sdqueue.cgroup import UNIFIED_DIRS
from sdqueue.core.lease import Lease
from sdqueue.core.reconcile import RUNNING_STATES
from sdqueue.words.errors import SdqueueError, UsageError, WrongState
from sdqueue.words.names import shown

if TYPE_CHECKING:
    from sdqueue.controller.runner import Runner

OWN_PREFIXES = ("sdqueue-", "sdqueue.")
"""Units of the queue itself: what waits for their end is in them, and would wait for itself."""


class Adopted(NamedTuple):
    """A process to wait for; `descriptor` is the caller's to close."""

    what: str
    pid: int
    descriptor: int

    def holds(self, lease: Lease) -> Lease:
        """Give the lease as held by it."""
        return replace(lease, pid=self.pid, adopted=self.what)


async def find_adopted(runner: "Runner", what: str, caller: Credentials, queue_uid: int) -> Adopted:
    """Find a unit of the queue's own manager, or a process by its pid; raise where it is none."""
    if what.isascii() and what.isdecimal():
        return _process(what, caller, queue_uid)
    if caller.uid not in (0, queue_uid):
        raise SdqueueError("only root and the queue's owner can have a unit adopted")
    return await _unit(runner, what)


def _process(what: str, caller: Credentials, queue_uid: int) -> Adopted:
    try:
        pid = int(what)
        descriptor = os.pidfd_open(pid)
    except (OSError, OverflowError, ValueError):
        raise WrongState(f"there is no process {shown(what)}") from None
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        os.close(descriptor)
        raise WrongState(f"process {what} has just ended") from None
    if caller.uid not in (0, queue_uid, owner):
        os.close(descriptor)
        raise SdqueueError(f"process {what} is of uid {owner}, and not yours to have adopted")
    return Adopted(what, pid, descriptor)


async def _unit(runner: "Runner", what: str) -> Adopted:
    if what.startswith(OWN_PREFIXES) or "/" in what or "." not in what:
        raise UsageError(f"{shown(what)} is neither a pid nor the full name of a unit to adopt")
    found = await runner.manager().unit_properties(what) or {}
    if found.get("ActiveState") not in RUNNING_STATES:
        state = found.get("ActiveState", "not there")
        raise WrongState(f"unit {what} is {state}; only what runs can be adopted")
    pid = _number(found.get("MainPID"))
    group = str(found.get("ControlGroup", ""))
    for directory in UNIFIED_DIRS if group else ():
        with suppress(OSError):
            first = pid or _first_pid(f"{directory}{group}")
            events = os.open(f"{directory}{group}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
            return Adopted(what, first, events)
    if not pid:
        raise WrongState(f"the end of unit {what} could not be told: it has no main process")
    try:
        return Adopted(what, pid, os.pidfd_open(pid))
    except OSError:
        raise WrongState(f"unit {what} has just ended") from None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _first_pid(group_dir: str) -> int:
    """Name one process of a control group, 0 where they are all further below."""
    with suppress(OSError), open(f"{group_dir}/cgroup.procs", encoding="ascii") as file:
        return int(next(iter(file), "0"))
    return 0
