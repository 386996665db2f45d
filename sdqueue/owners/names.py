"""Who uses a lane by the name of the process: the kernel's, and never by command lines.

A search for a name in command lines would find itself there, and others who only search.
"""

from sdqueue.core.lane import Lane
from sdqueue.owners.box import Box
from sdqueue.owners.sighting import Report, Sighting


def look(box: Box, lane: Lane) -> Report:
    """See who is called as the lane's `foreign` says."""
    try:
        comms = box.comms()
    except OSError as error:
        return Report(cannot_tell=f"the processes can't be listed: {error.strerror}")
    return Report(
        tuple(
            Sighting(pid, "name", f"is called {comm}", is_named=True)
            for pid, comm in comms.items()
            if comm in lane.foreign
        )
    )
