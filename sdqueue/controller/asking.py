"""Asking DONE_IF and REQUIRES on real systemd: one oneshot unit in the lane, answers by a pipe.

The script reaches bash through a memory file that is the unit's standard input, the answers come
through a pipe that is its standard output: nothing is left on disk, and EOF says that no process of
the unit holds the pipe any more.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sdqueue.bus.systemd import Systemd
from sdqueue.core.checks import CheckContext
from sdqueue.core.spec import Lane
from sdqueue.core.unit import SHELL, Property, command, lane_properties

ANSWERS_MAX_BYTES = 1 << 20
SLACK_SEC = 10.0


def check_properties(
    lane: Lane, jobs: Sequence[CheckContext], *, user: str, system: bool
) -> list[Property]:
    """Give the properties of a unit that asks the checks of these jobs, without its descriptors."""
    limit = sum(2 * (job.limit_sec + 5) for job in jobs) + SLACK_SEC
    return [
        *lane_properties(lane, system=system),
        ("Description", "s", f"[{lane.name}] checks of {_named(jobs)}"),
        ("SyslogIdentifier", "s", "sdqueue-check"),
        ("CollectMode", "s", "inactive-or-failed"),
        ("StartLimitIntervalUSec", "t", 0),
        ("TimeoutStartUSec", "t", int(limit * 1e6)),
        ("WorkingDirectory", "s", "/"),
        *([("User", "s", user)] if user else []),
        ("ExecStart", "a(sasb)", [command([SHELL, "-s"])]),
    ]


def _named(jobs: Sequence[CheckContext]) -> str:
    first = jobs[0].spec.name
    return first if len(jobs) == 1 else f"{first} and {len(jobs) - 1} more"


async def ask(
    systemd: Systemd, unit: str, properties: Sequence[Property], script: str
) -> list[str]:
    """Start the unit and wait for the lines that it writes; errors of the start are passed on."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    with (
        open(reader, "rb", buffering=0) as answers,
        open(writer, "wb", buffering=0) as unit_end,
        _script_file(script) as source,
    ):
        os.set_blocking(writer, True)
        descriptors: list[Property] = [
            ("StandardInputFileDescriptor", "h", source),
            ("StandardOutputFileDescriptor", "h", unit_end.fileno()),
            ("StandardError", "s", "journal"),
        ]
        await systemd.start_transient(unit, [*properties, *descriptors])
        unit_end.close()
        answer = await _read_to_end(answers.fileno())
    return answer.decode("utf-8", "replace").splitlines()


@contextmanager
def _script_file(script: str) -> Iterator[int]:
    """Put a script into a memory file, and give a descriptor that stands at its beginning."""
    with open(os.memfd_create("sdqueue-checks"), "w+", encoding="utf-8") as file:
        file.write(script)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        yield file.fileno()


async def _read_to_end(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    data = bytearray()

    def on_readable() -> None:
        chunk = os.read(descriptor, 65536)
        data.extend(chunk[: ANSWERS_MAX_BYTES - len(data)])
        if not chunk and not ended.done():
            ended.set_result(None)

    loop.add_reader(descriptor, on_readable)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
    return bytes(data)
