"""Reading the configuration anew, at SIGHUP: all of it takes effect, or none.

With an error in it the configuration before it stays in force, and an event says what is wrong and
where. The lanes' units are there before the queue hears of the lanes.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sdqueue.core import events as ev
from sdqueue.core.lane import Config
from sdqueue.notify import notify
from sdqueue.words.errors import BusError, SpoolError
from sdqueue.words.problem import Problem

if TYPE_CHECKING:
    from sdqueue.controller.controller import Controller

log = logging.getLogger(__name__)

SOURCE = "configuration"
Reader = Callable[[], tuple[Config, tuple[Problem, ...]]]


class Reloading:
    """Reads with `read`, one time after the other."""

    def __init__(self, controller: "Controller", read: Reader) -> None:
        self._controller = controller
        self._read = read
        self._one_at_a_time = asyncio.Lock()

    async def reload(self) -> None:
        """Read the configuration anew and take it on, or say why not."""
        async with self._one_at_a_time:
            notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
            config, problems = await asyncio.to_thread(self._read)
            what = trouble_in(problems) or await self._take(config)
            self._controller.post(ev.Noticed(SOURCE, what and f"{what}; {KEPT}", is_error=True))
            notify("READY=1")

    async def _take(self, config: Config) -> str:
        """Put a good configuration into force; say what kept that from being done."""
        controller = self._controller
        try:
            await controller.make_lane_units(config)
        except (BusError, SpoolError) as error:
            return f"the lanes' units could not be made: {error}"
        controller.places.lanes = config.lanes
        controller.journal.resize(config.log_max_bytes)
        controller.post(ev.ConfigRead(config))
        controller.pausing.tell()
        controller.files.relook_queued()
        return ""


KEPT = "the configuration before it stays in force"
DEFAULTS = "the default lanes are in force"


def trouble_in(problems: Iterable[Problem]) -> str:
    """Log what is wrong with a configuration; return the errors, "" where it can be used."""
    found = list(problems)
    for problem in found:
        log.warning("%s", problem)
    return "; ".join(str(problem) for problem in found if problem.severity == "error")
