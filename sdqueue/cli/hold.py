"""`sdqueue hold`: a command by hand that has a lane, by a lease.

Once the lane is had, this process becomes the command: its pid, its terminal, its signals and its
exit status are the command's, and who kills one has killed the other. The descriptor that holds the
lease goes with it, so the lane is held as long as anything of the command runs that has it open. A
process beside it (`beside`) holds the lease too, for commands that close what they did not open,
and hears who waits.
"""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sdqueue.cli.exits import NOT_EXECUTABLE, NOT_FOUND, NOT_HAD
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.say import remark
from sdqueue.cli.within import refuse_deadlock
from sdqueue.notify import notify
from sdqueue.words.errors import LaneBusy, SdqueueError, UsageError
from sdqueue.words.spans import INFINITY_USEC, parse_timespan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sdqueue.cli.client import Client

FOR_EVER = float("inf")
AGAIN_SEC = 1.0
"""How soon to look for a controller again that went away while we waited."""
WHO_MAX = 128
COMM = "sdqueue-hold"
RESTORED = ("SIGPIPE", "SIGXFSZ")
"""Signals that Python ignores, and that a command is not to find ignored."""


class Wanted(NamedTuple):
    """What is asked for; `wait_sec` is how long to wait for it."""

    lane: str
    who: str
    why: str
    wait_sec: float


class Held(NamedTuple):
    """A lease that we have: its object's path, and the descriptor that holds it."""

    path: str
    descriptor: int


def add_arguments(parser: Parser) -> None:
    """Add the options of `hold`."""
    parser.add_argument("lane", metavar="LANE", help="the lane's name")
    parser.add_argument("command", metavar="COMMAND", nargs="+", help="what to run")
    parser.add_argument(
        "--yield",
        dest="yields",
        metavar="GRACE",
        nargs="?",
        const="0",
        help="when somebody waits for the lane, send the command SIGTERM, after this time if given",
    )
    parser.add_argument(
        "--wait-timeout",
        metavar="SPAN",
        default="infinity",
        help="give up if the lane is not had in this time; 0: do not wait",
    )
    parser.add_argument("--why", metavar="TEXT", default="", help="what it is for, for people")
    parser.add_argument(
        "--notify",
        action="store_true",
        help="in a unit of Type=notify: have it started once the lane is had",
    )


def run(args: Arguments) -> int:
    """Have the lane, and become the command."""
    if args.json != "off":
        raise UsageError("hold prints what the command prints, and that is no JSON.")
    grace_sec = None if args.yields is None else _seconds("--yield", args.yields)
    wait_sec = _seconds("--wait-timeout", args.wait_timeout)
    wanted = Wanted(args.lane, _name(args.command), args.why, wait_sec)
    if shutil.which(args.command[0]) is None:
        remark(f"there is no program {args.command[0]} that can be run.")
        return NOT_FOUND
    place = Place(system=args.system)
    _be_called(COMM)
    try:
        if wanted.wait_sec == FOR_EVER:
            refuse_deadlock(place, "hold", wanted.lane)
        held = acquire(place, wanted)
    except UsageError:
        raise
    except SdqueueError as error:
        notify(f"STATUS={error}")
        remark(str(error))
        return NOT_HAD
    if args.notify:
        notify(f"READY=1\nSTATUS=has lane {wanted.lane}")
    from sdqueue.cli.beside import accompany

    accompany(place, held, wanted.lane, grace_sec)
    return become(args.command, held)


def _seconds(option: str, text: str) -> float:
    try:
        usec = parse_timespan(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}.") from None
    return FOR_EVER if usec == INFINITY_USEC else usec / 1e6


def _name(command: "Sequence[str]") -> str:
    """Name the holder after its program."""
    name = "".join(filter(str.isprintable, os.path.basename(command[0])))
    return name.strip()[:WHO_MAX] or "hold"


def _be_called(name: str) -> None:
    """Have the kernel call this process so, until it is the command.

    As what waits for a lane, and as what goes along with a command, it must have no name that the
    lane's `foreign` has: neither that of an engine nor that of an interpreter.
    """
    with suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write(name)


# Having the lane


def acquire(place: Place, wanted: Wanted) -> Held:
    """Have a lease, waiting for it if that is wanted; say once whom it waits for.

    Raise LaneBusy if it was not had in time, or what else kept us from it.
    """
    until_sec = time.monotonic() + wanted.wait_sec
    try:
        return _ask(place, wanted, None)
    except LaneBusy as busy:
        if wanted.wait_sec <= 0:
            raise
        remark(f"{_reason(busy, wanted.lane)}; waits for it")
    return _wait(place, wanted, until_sec)


def _reason(busy: LaneBusy, lane: str) -> str:
    return str(busy).removeprefix(f"lane {lane} can't be had: ")


def _wait(place: Place, wanted: Wanted, until_sec: float) -> Held:
    """Wait for the lease, also through a restart of the controller."""
    from sdqueue.cli.client import NoController

    is_told = False
    while True:
        left_sec = until_sec - time.monotonic()
        try:
            return _ask(place, wanted, max(0.0, left_sec))
        except TimeoutError:
            raise LaneBusy(f"lane {wanted.lane} was not had in time.") from None
        except NoController:
            if left_sec <= 0:
                raise
            if not is_told:
                remark("the controller is gone; waits for another one")
                is_told = True
            time.sleep(min(AGAIN_SEC, left_sec))


def _ask(place: Place, wanted: Wanted, wait_sec: float | None) -> Held:
    """Ask for the lease; wait for it so long, or not at all for None. TimeoutError, LaneBusy."""
    import asyncio

    from sdqueue.cli.client import ask

    async def question(client: "Client") -> Held:
        limit_sec = None if wait_sec in (None, FOR_EVER) else wait_sec
        async with asyncio.timeout(limit_sec):
            path, descriptor = await client.acquire(
                wanted.lane, wanted.who, wanted.why, wait=wait_sec is not None
            )
        return Held(path, descriptor)

    return ask(place, question)


# Becoming the command


def become(command: "Sequence[str]", held: Held) -> int:
    """Become the command; return only if that can't be done, with its exit status."""
    os.set_inheritable(held.descriptor, True)
    os.environ["SDQUEUE_LEASE"] = held.path
    sys.stdout.flush()
    sys.stderr.flush()
    for name in RESTORED:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        remark(f"{command[0]} can't be run: {error.strerror}.")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
