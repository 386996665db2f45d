"""The service manager itself: which one it is, and whether it and the box have finished starting.

A start job that is queued while the machine boots keeps `systemctl is-system-running` at
`starting` for as long as the job runs, and what runs while a box boots is not a clean measurement.
"""

from sdqueue.bus.address import system_bus_address
from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import Systemd
from sdqueue.words.errors import BusError


async def manager_id(systemd: Systemd, boot: str) -> str:
    """Name this service manager among all there ever were: its boot, and when it began.

    The boot id alone does not tell a soft-reboot, or a user manager that was started anew.
    """
    properties = await systemd.manager_properties()
    return f"{boot}/{properties.get('UserspaceTimestamp', 0)}"


async def still_starting(systemd: Systemd, *, system: bool) -> str | None:
    """Say who has not finished starting: the service manager, the box, or None."""
    if await _is_starting(systemd):
        return "the service manager"
    if not system and await _box_is_starting():
        return "the box"
    return None


async def _is_starting(systemd: Systemd) -> bool:
    return (await systemd.manager_properties()).get("FinishTimestamp", 1) == 0


async def _box_is_starting() -> bool:
    """Ask PID 1; where it can't be asked, there is nothing to wait for."""
    try:
        async with await Bus.connect(system_bus_address({}), timeout_sec=5) as bus:
            return await _is_starting(Systemd(bus, lambda _event: None))
    except BusError:
        return False
