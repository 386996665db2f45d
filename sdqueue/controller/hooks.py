"""Starting the units of ON_SUCCESS and ON_FAILURE, and hearing what became of them.

They are started in job mode `fail`, as everything is that the queue starts, and are not waited for:
JobRemoved says how the start ended. What happens to a hook is told to the core and changes nothing
else.
"""

from collections.abc import Callable

from sdqueue.bus.systemd import JobRemoved, Systemd
from sdqueue.core import events as ev
from sdqueue.core.actions import Hook
from sdqueue.words.errors import BusError, BusGone, RemoteError

RESULTS: dict[str, str] = {
    "done": "",
    "skipped": "",
    "failed": "it failed",
    "timeout": "its start took too long",
    "canceled": "its start was canceled",
    "dependency": "a unit that it requires could not be started",
    "assert": "an assertion of it does not hold",
}
"""What JobRemoved says of a hook's start, in words; empty where nothing is wrong."""


class Hooks:
    """The hooks that were started and whose start has not ended."""

    def __init__(self, post: Callable[[ev.Event], None]) -> None:
        self._post = post
        self._open: dict[int, list[Hook]] = {}
        self._removed: dict[int, str] = {}
        self._asking = 0
        self._held_back: list[Hook] = []

    def take_held_back(self) -> list[Hook]:
        """Give the hooks that could not be started while there was no bus."""
        held_back, self._held_back = self._held_back, []
        return held_back

    async def start(self, systemd: Systemd | None, hook: Hook) -> None:
        """Start one hook's unit; without a bus it is kept until there is one."""
        self._asking += 1
        try:
            await self._start(systemd, hook)
        except BusGone:
            self._held_back.append(hook)
        except BusError as error:
            words = error.text or error.name if isinstance(error, RemoteError) else str(error)
            self._failed(hook, f"it could not be started: {words}")
        finally:
            self._asking -= 1
            if not self._asking:
                self._removed.clear()

    async def _start(self, systemd: Systemd | None, hook: Hook) -> None:
        if systemd is None:
            raise BusGone("there is no connection to the service manager now")
        unit_job = await systemd.start_unit(hook.unit)
        if unit_job.id in self._removed:
            self._ended(hook, self._removed[unit_job.id])
        else:
            # Two hooks of one unit may share a start.
            self._open.setdefault(unit_job.id, []).append(hook)

    def job_removed(self, event: JobRemoved) -> None:
        """Take the end of a unit job; it may be told before the answer to the start is here."""
        if self._asking:
            self._removed[event.job_id] = event.result
        for hook in self._open.pop(event.job_id, ()):
            self._ended(hook, event.result)

    def _ended(self, hook: Hook, result: str) -> None:
        words = RESULTS.get(result, f"its start ended with {result!r}")
        if words:
            self._failed(hook, f"{words}; see systemctl status {hook.unit}")

    def _failed(self, hook: Hook, what: str) -> None:
        self._post(ev.HookFailed(hook.unit, hook.job, what))
