"""Running a coroutine under watch: nothing may block the loop, and no task may be left.

    run_watched(main())        -> what it returns; the fixture `run_async` is this function

It fails when the coroutine leaves a task behind, when an exception went to the loop's exception
handler, when the loop's thread makes a call that is known to wait (time.sleep, a subprocess, a
name look-up: caught as the call is made, whatever it takes), and when one callback waited longer
than BLOCKED_SEC for anything but a processor: a busy machine is not a blocked loop.
"""

import asyncio
import sys
import threading
import time
from asyncio import events
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.harness.waiting import LIMIT_SEC

BLOCKED_SEC = 1.0
WAITING_CALLS = {
    "os.system",
    "subprocess.Popen",
    "socket.getaddrinfo",
    "socket.gethostbyname",
}
T = TypeVar("T")


def run_watched(main: Coroutine[Any, Any, T], *, limit_sec: float = LIMIT_SEC) -> T:
    """Run `main` in asyncio's debug mode under watch, and return its result."""
    trouble: list[str] = []
    with asyncio.Runner(debug=True) as runner:
        loop = runner.get_loop()
        loop.slow_callback_duration = float("inf")  # measured better below
        loop.set_exception_handler(lambda _, context: trouble.append(_describe(context)))
        with _watched_callbacks(trouble.append):
            result = runner.run(_to_the_end(main, limit_sec, trouble))
    assert not trouble, "\n".join(trouble)
    return result


async def _to_the_end(main: Coroutine[Any, Any, T], limit_sec: float, trouble: list[str]) -> T:
    async with asyncio.timeout(limit_sec):
        result = await main
    for _ in range(3):  # what was cancelled or just ended may take its last step
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    trouble += [f"a task was left: {task!r}" for task in left]
    return result


def _describe(context: dict[str, Any]) -> str:
    return f"the loop was told: {context.get('message')}: {context.get('exception')!r}"


@contextmanager
def _watched_callbacks(complain: Callable[[str], None]) -> Iterator[None]:
    """Watch every callback that this thread's loop runs."""
    plain = events.Handle._run
    waited = _Waited()

    def watched(handle: asyncio.Handle) -> None:
        before = waited.total_sec()
        _watching.by_thread[threading.get_ident()] = complain
        try:
            plain(handle)
        finally:
            del _watching.by_thread[threading.get_ident()]
        if waited.total_sec() - before > BLOCKED_SEC:
            complain(f"the loop was blocked by {handle!r}")

    def sleep(seconds: Any) -> None:
        if complaint := _watching.by_thread.get(threading.get_ident()):
            complaint("time.sleep in the loop")
        plain_sleep(seconds)

    plain_sleep, time.sleep = time.sleep, sleep
    events.Handle._run = watched  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        time.sleep = plain_sleep
        events.Handle._run = plain  # type: ignore[method-assign]


class _Waited:
    """How long this thread has waited for anything but a processor."""

    def __init__(self) -> None:
        self._file = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")

    def total_sec(self) -> float:
        ran, queued, _ = self._file.read_text().split()
        return time.monotonic() - (int(ran) + int(queued)) / 1e9


class _Watching:
    """The audit hook's view: which threads are inside a watched callback, and whom to tell."""

    def __init__(self) -> None:
        self.by_thread: dict[int, Callable[[str], None]] = {}
        sys.addaudithook(self._hook)

    def _hook(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if event in WAITING_CALLS and (complain := self.by_thread.get(threading.get_ident())):
            caller = sys._getframe(1)
            if not _of_asyncio(caller):
                complain(f"{event} in the loop, {caller.f_code.co_filename}:{caller.f_lineno}")


def _of_asyncio(frame: Any) -> bool:
    """Return whether asyncio's own subprocess code makes the call, which can't be helped."""
    while frame is not None and frame.f_code.co_filename == subprocess_file:
        frame = frame.f_back
    return frame is not None and "/asyncio/" in frame.f_code.co_filename


subprocess_file = sys.modules["subprocess"].__file__
_watching = _Watching()
