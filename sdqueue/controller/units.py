"""What PID 1 says of our units, turned into what the queue needs to know.

For each start one `Run` collects what the bus brings: the answer to the call, the properties that
change, JobRemoved. They come in any order, and the answer often last; `Started` and `Ended` leave
here in the order in which the core expects them, once each. Knows systemd's words; decides nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sdqueue.bus.systemd import JobRemoved, UnitChanged
from sdqueue.core.results import RunEnd

CODES = {1: "exited", 2: "killed", 3: "dumped"}
"""CLD_EXITED and its like, as systemd numbers them in ExecMainCode=."""

STOPPED = -1
"""In the place of a unit job's id, where that unit job was canceled before we could learn it."""

AT_REST = frozenset({"inactive", "failed"})


@dataclass(slots=True)
class Run:
    """One unit between its start and its end, as far as we were told.

    `unit_job` is 0 until the call is answered. `removed` holds JobRemoved results by unit job id,
    since that signal may come before the answer. `on_started(pid, invocation)` and
    `on_ended(result)` are called once each, in this order.
    """

    unit: str
    on_started: Callable[["Run"], None]
    on_ended: Callable[["Run", str], None]
    unit_job: int = 0
    removed: dict[int, str] = field(default_factory=dict)
    is_started: bool = False
    is_ended: bool = False
    _properties: dict[str, object] = field(default_factory=dict)
    _unread: dict[str, UnitChanged] = field(default_factory=dict)

    @property
    def properties(self) -> Mapping[str, object]:
        """All properties that changed, read only now."""
        for event in self._unread.values():
            self._properties.update(event.properties)
        self._unread.clear()
        return self._properties

    @property
    def pid(self) -> int:
        found = self.properties
        return _number(found.get("MainPID")) or _number(found.get("ExecMainPID"))

    @property
    def invocation(self) -> str:
        raw = self.properties.get("InvocationID", b"")
        return raw.hex() if isinstance(raw, bytes) else ""

    def accepted(self, unit_job: int) -> None:
        """Take the manager's answer to the start."""
        self.unit_job = unit_job
        self._advance()

    def changed(self, event: UnitChanged) -> None:
        """Take properties that changed."""
        self._unread[event.interface] = event
        self._advance()

    def job_removed(self, event: JobRemoved) -> None:
        """Take the end of a unit job, of ours or of another for the same unit."""
        self.removed[event.job_id] = event.result
        self._advance()

    def stopped(self) -> None:
        """Take note that somebody stopped the unit, and its start job is gone already."""
        self.unit_job = STOPPED
        self.removed[STOPPED] = "canceled"
        self._advance()

    def gone(self) -> None:
        """Take note that the manager has forgotten the unit: it is at rest now."""
        if not self.is_ended:
            self._properties = {**self.properties, "ActiveState": "inactive"}
        self._advance()

    def _advance(self) -> None:
        result = self.removed.get(self.unit_job)
        if not self.unit_job or self.is_ended:
            return
        if not self.is_started and ((self.pid and self.invocation) or result):
            self.is_started = True
            self.on_started(self)
        if result and (result != "canceled" or self._is_at_rest()):
            self.is_ended = True
            self.on_ended(self, result)

    def _is_at_rest(self) -> bool:
        """Say whether a stopped unit's processes are gone: its start job ends before they do."""
        return self.properties.get("ActiveState") in AT_REST


def run_end(properties: Mapping[str, object], job_result: str, *, has_done_if: bool) -> RunEnd:
    """Read a unit's results from its properties: all of them, or those that changed."""
    raw = properties.get("InvocationID", b"")
    return RunEnd(
        job_result=job_result,
        service_result=str(properties.get("Result", "")),
        main_code=CODES.get(_number(properties.get("ExecMainCode")), ""),
        main_status=_number(properties.get("ExecMainStatus")),
        post_status=_post_status(properties.get("ExecStartPost")),
        has_done_if=has_done_if,
        invocation=raw.hex() if isinstance(raw, bytes) else "",
        ended_sec=_number(properties.get("ExecMainExitTimestamp")) / 1e6,
    )


def _post_status(commands: object) -> int | None:
    """Read the exit status of the last ExecStartPost= from `a(sasbttttuii)`."""
    if not isinstance(commands, list) or not commands:
        return None
    *_, code, status = commands[-1]
    return int(status) if CODES.get(int(code)) == "exited" else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
