"""Asking whose processes are, in the place of a queue: `python3 -m tests.harness.whose`.

    ask(run, PID…, system=…, ours=…, yielding=…)        -> a Belonging for each process, or None

`run` runs an interpreter inside a manager's or a container's world, given its arguments. What is
asked is the product's own `whose`, by a process where the queue's controller would be.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict

from sdqueue.bus.address import system_bus_address, user_bus_address
from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import Systemd
from sdqueue.controller.whose import Asker, Belonging, whose
from sdqueue.core.owner import Standing


async def main(*, system: bool, ours: list[str], yielding: list[str], pids: list[int]) -> None:
    """Print what each of these processes is to that queue."""
    address = system_bus_address(os.environ) if system else user_bus_address(os.environ)
    async with await Bus.connect(address) as bus:
        asker = Asker(Systemd(bus, lambda _event: None), system, ours, yielding)
        found = [await one(asker, pid) for pid in pids]
    print(json.dumps([each and asdict(each) for each in found]))


async def one(asker: Asker, pid: int) -> Belonging | None:
    """Ask of one process."""
    pidfd = os.pidfd_open(pid)
    try:
        return await whose(asker, pid, pidfd)
    finally:
        os.close(pidfd)


def ask(
    run: Callable[[list[str]], "subprocess.CompletedProcess[str]"],
    *pids: int,
    system: bool = False,
    ours: Sequence[str] = (),
    yielding: Sequence[str] = (),
) -> list[Belonging | None]:
    """Ask from inside; see the module."""
    words = {"system": system, "ours": ours, "yielding": yielding, "pids": pids}
    answer = json.loads(run(["-m", "tests.harness.whose", json.dumps(words)]).stdout)
    return [
        each and Belonging(**{**each, "standing": Standing(each["standing"])}) for each in answer
    ]


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
