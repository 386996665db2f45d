"""A stand-in for a model server: takes a lease, tells what it hears of it, does as it is told.

As a program it reads one command a line and answers each with lines of JSON:

    acquire LANE [wait]     {"got": PATH} or {"refused": TEXT}
    close                   {"closed": true}: the descriptor is closed
    release BYTES           {"released": true}: by the bus, the descriptor stays open
    fork                    {"forked": PID}: a child that has the descriptor too, and sleeps

and tells by itself `{"waiters": […]}` and `{"revoked": TEXT}`. `Engine` is the test's side of it.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sdqueue.bus.connection import Bus
from sdqueue.bus.match import Match, Signal
from sdqueue.bus.wire import Variant
from sdqueue.words.errors import BusError
from tests.harness.manager import Manager
from tests.harness.waiting import LIMIT_SEC

ROOT = Path(__file__).parents[2]
NAME, PATH = "org.sdqueue1", "/org/sdqueue1"


class Engine:
    """An engine on a manager's bus; `unit` makes it a service of that manager."""

    def __init__(self, manager: Manager, *, unit: str = "", argv0: str = sys.executable) -> None:
        self.manager = manager
        self.unit = unit
        command = ["env", f"PYTHONPATH={ROOT}", argv0, "-m", "tests.harness.engine"]
        if unit:
            env = [f"--setenv={key}={value}" for key, value in manager.env.items()]
            run = ["systemd-run", "--user", "--pipe", "--quiet", f"--unit={unit}", *env]
            command = [*run, *command]
        self.process = manager.popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.heard: list[dict[str, Any]] = []
        self.pid = int(self.next("pid"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT_SEC)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    def say(self, command: str) -> None:
        """Give a command and wait for nothing."""
        assert self.process.stdin
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def next(self, *keys: str) -> Any:
        """Wait for the next line that has one of these keys, and return its value."""
        assert self.process.stdout
        for line in self.process.stdout:
            told = json.loads(line)
            self.heard.append(told)
            for key in keys:
                if key in told:
                    return told[key]
        raise AssertionError(f"the engine is gone, and told no {keys}: {self.heard}")

    def acquire(self, lane: str, *, wait: bool = False) -> str:
        """Ask for a lease; return its path, or fail with the text of the refusal."""
        self.say(f"acquire {lane}{' wait' if wait else ''}")
        answer = self.next("got", "refused")
        assert str(answer).startswith("/"), answer
        return str(answer)

    def refused(self, lane: str) -> str:
        """Ask for a lease that is refused; return the text."""
        self.say(f"acquire {lane}")
        answer = self.next("got", "refused")
        assert not str(answer).startswith("/"), f"it was granted: {answer}"
        return str(answer)

    def close(self) -> None:
        """Have the descriptor closed."""
        self.say("close")
        self.next("closed")

    def kill(self) -> None:
        """End it by -9."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(LIMIT_SEC)


# The program ------------------------------------------------------------------------------------


class _Program:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._fd = -1
        self._path = ""

    async def acquire(self, lane: str, *options: str) -> None:
        wanted = {"wait": Variant("b", True)} if options else {}
        body = (lane, "stand-in engine", "to serve", wanted)
        manager = (NAME, PATH, f"{NAME}.Manager")
        try:
            path, fd = await self._bus.call(
                *manager, "AcquireLease", "sssa{sv}", *body, timeout_sec=600, reply_fds=True
            )
        except BusError as error:
            tell(refused=str(error))
            return
        assert isinstance(fd, int)
        self._fd, self._path = fd, str(path)
        tell(got=path)

    async def close(self) -> None:
        os.close(self._fd)
        tell(closed=True)

    async def release(self, parked: str) -> None:
        lease = (NAME, self._path, f"{NAME}.Lease")
        await self._bus.call(*lease, "Release", "t", int(parked))
        tell(released=True)

    async def fork(self) -> None:
        os.set_inheritable(self._fd, True)
        child = subprocess.Popen(["sleep", "1000"], pass_fds=(self._fd,), start_new_session=True)
        tell(forked=child.pid)

    def heard(self, signal: Signal) -> None:
        if signal.member == "Revoked":
            tell(revoked=signal.body[0])
        elif signal.member == "PropertiesChanged" and signal.body[0] == f"{NAME}.Lease":
            changed = signal.body[1]
            assert isinstance(changed, dict)
            tell(waiters=getattr(changed["Waiters"], "value", changed["Waiters"]))


def tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


async def main() -> None:
    """Do what standard input says until it ends."""
    loop = asyncio.get_running_loop()
    async with await Bus.connect(os.environ["DBUS_SESSION_BUS_ADDRESS"]) as bus:
        program = _Program(bus)
        await bus.add_match(Match(sender=NAME, path_namespace=f"{PATH}/lease"), program.heard)
        tell(pid=os.getpid())
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            verb, *arguments = line.split()
            await getattr(program, verb)(*arguments)


if __name__ == "__main__":
    asyncio.run(main())
