"""A user who calls the machine's queue as much and as large as the bus lets him.

Run in a container: `python flooder.py SECONDS FILE`. Makes FILE when the flood has begun; at its
end it prints how many calls were answered, and with which errors the others were not.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

from sdqueue.bus.address import system_bus_address
from sdqueue.bus.connection import Bus
from sdqueue.words.errors import BusError, RemoteError

NAME, PATH, MANAGER = "org.sdqueue1", "/org/sdqueue1", "org.sdqueue1.Manager"
CONNECTIONS = 8
AT_ONCE = 100
LARGE = ["x" * 200] * 5000

CALLS: list[tuple[str, str, list[object]]] = [
    ("ListJobs", "as", [[]]),
    ("Plan", "", []),
    ("ListJobs", "as", [LARGE]),
    ("CancelJob", "s", ["x" * 200_000]),
    ("AcquireLease", "sssa{sv}", ["gpu", "flood", "", {}]),
    ("PauseLane", "sb", ["gpu", True]),
]


async def flood(bus: Bus, until_sec: float, count: "Counter[str]", began: Path) -> None:
    """Keep calls open, as many as one connection may, until it is time."""
    loop, number = asyncio.get_running_loop(), 0

    async def one() -> None:
        nonlocal number
        while loop.time() < until_sec:
            member, signature, body = CALLS[number % len(CALLS)]
            number += 1
            try:
                await bus.call(NAME, PATH, MANAGER, member, signature, *body, timeout_sec=60)
                count["answered"] += 1
            except RemoteError as error:
                count[error.name] += 1
            except BusError as error:
                count[type(error).__name__] += 1
                return
            if number > len(CALLS):
                began.touch()

    await asyncio.gather(*(one() for _ in range(AT_ONCE)))


async def main(seconds: float, began: Path) -> None:
    """Flood over several connections."""
    count: Counter[str] = Counter()
    until_sec = asyncio.get_running_loop().time() + seconds
    buses = [await Bus.connect(system_bus_address({})) for _ in range(CONNECTIONS)]
    await asyncio.gather(*(flood(bus, until_sec, count, began) for bus in buses))
    print(json.dumps(count))


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), Path(sys.argv[2])))
