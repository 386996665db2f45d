"""A client that knows nothing of the controller: starts units of a lane, as often as it is told.

Run inside a manager: `python intruder.py COUNT FILE`. Prints how many the manager took and refused;
each unit that runs writes a line into FILE when it begins and one when it ends.
"""

import asyncio
import json
import os
import sys

from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import Systemd
from sdqueue.core.spec import Config
from sdqueue.core.unit import command, lane_properties
from sdqueue.words.errors import RemoteError

RUN = 'echo "begin $EPOCHREALTIME" >>"$0"; sleep 0.02; echo "end $EPOCHREALTIME" >>"$0"'


async def intrude(count: int, file: str) -> dict[str, int]:
    """Start that many units, one after the other, and count the answers."""
    answers: dict[str, int] = {}
    lane = Config().lanes["net"]
    unit = [*lane_properties(lane, system=False), ("CollectMode", "s", "inactive-or-failed")]
    unit.append(("ExecStart", "a(sasb)", [command(["/bin/bash", "-c", RUN, file])]))
    async with await Bus.connect(os.environ["DBUS_SESSION_BUS_ADDRESS"]) as bus:
        systemd = Systemd(bus, lambda _event: None)
        await systemd.subscribe()
        for number in range(count):
            try:
                await systemd.start_transient(f"intruder-{number}.service", unit)
                answer = "taken"
            except RemoteError as error:
                answer = error.name.rpartition(".")[2]
            answers[answer] = answers.get(answer, 0) + 1
            await asyncio.sleep(0.002)
    return answers


if __name__ == "__main__":
    print(json.dumps(asyncio.run(intrude(int(sys.argv[1]), sys.argv[2]))))
