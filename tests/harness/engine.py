"""A stand-in for a model server: takes a lease, tells what it hears of it, does as it is told.

As a program it reads one command a line and answers each with lines of JSON:

    acquire LANE [wait]     {"got": PATH} or {"refused": TEXT}
    crowd LANE COUNT        {"crowd": [TEXT, …]}: that many requests at once, "" for what was had
    pester LANE             it asks all the time, and lets go at once, until `rest`
    rest                    {"rested": [REFUSED, HAD]}: how often
    serve SECONDS FILE      it works on for so long once somebody waits, makes a file, and closes:
                            {"served": true}
    name NAME               {"named": true}: its process is called so
    open FILE               {"opened": true}: it has a device open
    listen PORT             {"listening": true}: on that port of this machine
    shut                    {"shut": true}: not any more
    die sent|got LANE       it kills itself when it has asked, or was answered
    close                   {"closed": true}: the descriptor is closed
    release BYTES           {"released": true}: by the bus, the descriptor stays open
    fork                    {"forked": PID}: a child that has the descriptor too, and sleeps
    spawn                   {"spawned": PID}: a child that has not

and tells by itself `{"waiters": […]}`, `{"revoked": TEXT}`, and what its descriptor says when the
lease was taken from it, `{"lost": true}`. `Engine` is the test's side of it.
"""

import asyncio
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
from types import TracebackType
from typing import Any, Self

from sdqueue.bus.address import system_bus_address, user_bus_address
from sdqueue.bus.connection import Bus
from sdqueue.bus.match import Match, Signal
from sdqueue.bus.wire import Variant
from sdqueue.words.errors import BusError
from tests.harness.manager import Manager
from tests.harness.waiting import LIMIT_SEC

NAME, PATH = "org.sdqueue1", "/org/sdqueue1"


class Engine:
    """An engine on a manager's bus; `unit` makes it a service of that manager.

    With `system` it speaks to the machine's queue, whosever it is.
    """

    def __init__(self, manager: Manager, *, unit: str = "", system: bool = False) -> None:
        self.manager = manager
        self.unit = unit
        bus = "--system" if system else manager.scope
        program = [manager.python, "-m", "tests.harness.engine", bus]
        command = ["env", f"PYTHONPATH={manager.pythonpath}", *program]
        if unit:
            env = [f"--setenv={key}={value}" for key, value in manager.env.items()]
            run = ["systemd-run", manager.scope, "--pipe", "--quiet", f"--unit={unit}", *env]
            command = [*run, *command]
        self.process = manager.popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.heard: list[dict[str, Any]] = []
        self._unread: list[dict[str, Any]] = []
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
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
            self.kill()
        self.process.wait(LIMIT_SEC)
        self._reader.join(LIMIT_SEC)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    def say(self, command: str) -> None:
        """Give a command and wait for nothing."""
        assert self.process.stdin
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def next(self, *keys: str) -> Any:
        """Wait for the next line that has one of these keys, and return its value.

        Lines with other keys are kept for those who ask for them.
        """
        for told in self._unread:
            if found := [key for key in keys if key in told]:
                self._unread.remove(told)
                return told[found[0]]
        while line := self._lines.get(timeout=LIMIT_SEC):
            told = json.loads(line)
            self.heard.append(told)
            if found := [key for key in keys if key in told]:
                return told[found[0]]
            self._unread.append(told)
        raise AssertionError(f"the engine is gone, and told no {keys}: {self.heard}")

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

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

    def crowd(self, lane: str, count: int) -> list[str]:
        """Ask so often at once; return the refusals, with an empty text for what was had."""
        self.say(f"crowd {lane} {count}")
        answers = self.next("crowd")
        assert len(answers) == count
        return list(answers)

    def open(self, file: str) -> None:
        """Have it open a device."""
        self.say(f"open {file}")
        self.next("opened")

    def kill(self) -> None:
        """End it by -9."""
        if self.unit:
            self.manager.run(["kill", "-KILL", str(self.pid)])
        else:
            self.process.kill()
        self.process.wait(LIMIT_SEC)


# The program ------------------------------------------------------------------------------------


class _Program:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._fd = -1
        self._path = ""
        self._device = -1
        self._wanted = asyncio.Event()
        self._is_resting = False
        self._answers = [0, 0]

    async def acquire(self, lane: str, *options: str) -> None:
        try:
            self._wanted.clear()  # what was heard of an earlier lease says nothing of this one
            self._path, self._fd = await self._ask(lane, wait=bool(options))
        except BusError as error:
            tell(refused=str(error))
        else:
            asyncio.get_running_loop().add_reader(self._fd, self._lose)
            tell(got=self._path)

    def _lose(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        tell(lost=True)

    def _let_go(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    async def _ask(self, lane: str, *, wait: bool = False) -> tuple[str, int]:
        wanted = {"wait": Variant("b", True)} if wait else {}
        manager = (NAME, PATH, f"{NAME}.Manager")
        body = (lane, "stand-in engine", "to serve", wanted)
        path, fd = await self._bus.call(
            *manager, "AcquireLease", "sssa{sv}", *body, timeout_sec=600, reply_fds=True
        )
        assert isinstance(fd, int)
        return str(path), fd

    async def crowd(self, lane: str, count: str) -> None:
        asked = (self._ask(lane) for _ in range(int(count)))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        tell(crowd=["" if isinstance(answer, tuple) else str(answer) for answer in answers])
        for answer in answers:
            if isinstance(answer, tuple):
                os.close(answer[1])

    async def pester(self, lane: str) -> None:
        self._pestering = asyncio.ensure_future(self._pester(lane))

    async def _pester(self, lane: str) -> None:
        while not self._is_resting:
            try:
                _, fd = await self._ask(lane)
            except BusError as error:
                if "LaneBusy" not in str(error):
                    raise
                self._answers[0] += 1
            else:
                self._answers[1] += 1
                os.close(fd)
            await asyncio.sleep(random.expovariate(500))

    async def rest(self) -> None:
        self._is_resting = True
        await self._pestering
        tell(rested=self._answers)
        self._is_resting, self._answers = False, [0, 0]

    async def serve(self, seconds: str, file: str) -> None:
        await self._wanted.wait()
        await asyncio.sleep(float(seconds))
        with open(file, "x", encoding="ascii"):
            self._let_go()
        tell(served=True)

    async def open(self, file: str) -> None:
        self._device = os.open(file, os.O_RDWR | os.O_NOCTTY)
        tell(opened=True)

    async def name(self, name: str) -> None:
        with open("/proc/self/comm", "w", encoding="ascii") as comm:
            comm.write(name)
        tell(named=True)

    async def listen(self, port: str) -> None:
        await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", int(port))
        tell(listening=True)

    async def shut(self) -> None:
        os.close(self._device)
        tell(shut=True)

    async def die(self, when: str, lane: str) -> None:
        asked = asyncio.ensure_future(self._ask(lane))
        await (asyncio.sleep(0) if when == "sent" else asked)
        os.kill(os.getpid(), signal.SIGKILL)

    async def close(self) -> None:
        self._let_go()
        tell(closed=True)

    async def release(self, parked: str) -> None:
        lease = (NAME, self._path, f"{NAME}.Lease")
        await self._bus.call(*lease, "Release", "t", int(parked))
        tell(released=True)

    async def fork(self) -> None:
        os.set_inheritable(self._fd, True)
        tell(forked=sleep(self._fd))

    async def spawn(self) -> None:
        tell(spawned=sleep())

    def heard(self, signal: Signal) -> None:
        if signal.member == "Revoked":
            tell(revoked=signal.body[0])
        elif signal.member == "PropertiesChanged" and signal.body[0] == f"{NAME}.Lease":
            changed = signal.body[1]
            assert isinstance(changed, dict)
            waiters = getattr(changed["Waiters"], "value", changed["Waiters"])
            (self._wanted.set if waiters else self._wanted.clear)()
            tell(waiters=waiters)


def sleep(*fds: int) -> int:
    return subprocess.Popen(["sleep", "1000"], pass_fds=fds, start_new_session=True).pid


def tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


async def main() -> None:
    """Do what standard input says until it ends."""
    loop = asyncio.get_running_loop()
    address = system_bus_address if sys.argv[1] == "--system" else user_bus_address
    async with await Bus.connect(address(os.environ)) as bus:
        program = _Program(bus)
        await bus.add_match(Match(sender=NAME, path_namespace=f"{PATH}/lease"), program.heard)
        tell(pid=os.getpid())
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            verb, *arguments = line.split()
            await getattr(program, verb)(*arguments)


if __name__ == "__main__":
    asyncio.run(main())
