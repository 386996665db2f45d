"""What the end of a run means: from systemd's results to the queue's verdict, by one table.

A run's end is known from the unit's properties while it is loaded, or from the line that the unit
itself wrote (the witness) when it is not; both give a `RunEnd`. `judge` is total: every `RunEnd`
has exactly one `Outcome`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a run came to. `SPENDS` says which of them cost an attempt."""

    DONE = "done"
    LEFT_CHILDREN = "left-children"
    FAILED = "failed"
    UNVERIFIED = "unverified"
    TIMEOUT = "timeout"
    KILLED = "killed"
    NOT_RUN = "not-run"
    UNBUILDABLE = "unbuildable"
    STOPPED = "stopped"
    SHUTDOWN = "shutdown"
    ENVIRONMENT = "environment"


SUCCESSES = frozenset({Verdict.DONE, Verdict.LEFT_CHILDREN})
SPENDS = frozenset(
    {
        Verdict.FAILED,
        Verdict.UNVERIFIED,
        Verdict.TIMEOUT,
        Verdict.KILLED,
        Verdict.NOT_RUN,
        Verdict.UNBUILDABLE,
    }
)
ASK_DONE_IF = frozenset({Verdict.FAILED, Verdict.TIMEOUT, Verdict.KILLED})
"""After these DONE_IF is asked too: what a retry would find before it starts is found now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended, in systemd's words.

    `job_result` is JobRemoved's (empty when known from the witness), or `unbuildable` where the
    manager would not make the unit at all; `service_result` is the unit's Result=, or the manager's
    words then. `main_code` is `exited`, `killed`, `dumped`, or empty where ExecStart= never ran;
    `post_status` is the exit status of ExecStartPost= (the DONE_IF test), None where it did not
    run, was killed, or is not known. `stopping`: the service manager was going down.
    """

    job_result: str = ""
    service_result: str = ""
    main_code: str = ""
    main_status: int = 0
    post_status: int | None = None
    has_done_if: bool = False
    stopping: bool = False
    invocation: str = ""
    ended_sec: float = 0.0

    @property
    def main(self) -> str:
        """Sort the main process's end: `ok`, `nonzero`, `killed`, or `none`."""
        if self.main_code == "exited":
            return "nonzero" if self.main_status else "ok"
        return "killed" if self.main_code else "none"

    @property
    def rc(self) -> int | None:
        """Give the exit status as a shell would: 128+n for a signal, None where nothing ran."""
        if not self.main_code:
            return None
        return self.main_status if self.main_code == "exited" else 128 + self.main_status


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run judged. `verified` is DONE_IF's answer, None where it was not asked."""

    verdict: Verdict
    rc: int | None = None
    verified: bool | None = None
    words: str = ""

    @property
    def success(self) -> bool:
        return self.verdict in SUCCESSES


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `TABLE`; an empty set or None matches anything."""

    verdict: Verdict
    job_results: frozenset[str] = frozenset()
    service_results: frozenset[str] = frozenset()
    mains: frozenset[str] = frozenset()
    stopping: bool | None = None
    confirmed: bool | None = None

    def matches(self, end: RunEnd) -> bool:
        """Say whether this row speaks of that end."""
        confirmed = not end.has_done_if or end.post_status == 0
        return (
            (not self.job_results or end.job_result in self.job_results)
            and (not self.service_results or end.service_result in self.service_results)
            and (not self.mains or end.main in self.mains)
            and self.stopping in (None, end.stopping)
            and self.confirmed in (None, confirmed)
        )


def _set(*words: str) -> frozenset[str]:
    return frozenset(words)


_NEVER_RAN = _set(
    *("dependency", "assert", "skipped", "invalid", "unsupported", "collected", "once", "frozen"),
    "concurrency",
)

TABLE: tuple[Row, ...] = (
    Row(Verdict.UNBUILDABLE, job_results=_set("unbuildable")),
    Row(Verdict.SHUTDOWN, job_results=_set("canceled"), stopping=True),
    Row(Verdict.STOPPED, job_results=_set("canceled")),
    Row(Verdict.ENVIRONMENT, job_results=_NEVER_RAN),
    Row(Verdict.DONE, service_results=_set("success"), mains=_set("ok")),
    Row(Verdict.ENVIRONMENT, service_results=_set("success", "exec-condition"), mains=_set("none")),
    Row(
        Verdict.LEFT_CHILDREN,
        service_results=_set("timeout"),
        mains=_set("ok"),
        confirmed=True,
    ),
    Row(Verdict.TIMEOUT, service_results=_set("timeout")),
    Row(Verdict.NOT_RUN, service_results=_set("resources")),
    Row(Verdict.KILLED, service_results=_set("oom-kill", "watchdog")),
    # What else can fail once both exited 0 is the witness, and the run itself was good.
    Row(Verdict.DONE, mains=_set("ok"), confirmed=True),
    Row(Verdict.UNVERIFIED, mains=_set("ok")),
    Row(Verdict.KILLED, service_results=_set("signal", "core-dump")),
    Row(Verdict.KILLED, mains=_set("killed")),
    Row(Verdict.FAILED, mains=_set("nonzero")),
    Row(Verdict.NOT_RUN),
)
"""The first row that matches decides; the last one matches everything."""

WORDS: dict[Verdict, str] = {
    Verdict.DONE: "done",
    Verdict.LEFT_CHILDREN: "done, but it left processes behind that had to be killed",
    Verdict.FAILED: "exit status {rc}",
    Verdict.UNVERIFIED: "exit status 0, but DONE_IF says it is not done",
    Verdict.TIMEOUT: "TIMEOUT passed",
    Verdict.KILLED: "ended by {result} (status {rc})",
    Verdict.NOT_RUN: "could not be run: {result}",
    Verdict.UNBUILDABLE: "its unit could not be made: {result}",
    Verdict.STOPPED: "stopped by somebody",
    Verdict.SHUTDOWN: "the service manager went down",
    Verdict.ENVIRONMENT: "did not start: {result}",
}

EXEC_STATUS: dict[int, str] = {
    200: "CHDIR: its working directory cannot be entered",
    203: "EXEC: its interpreter does not exist or cannot be executed",
    206: "STDIN: its standard input cannot be set up",
    208: "STDOUT: its standard output cannot be set up",
    216: "GROUP: its group does not exist or may not be taken",
    217: "USER: its user does not exist or may not be taken",
    219: "CGROUP: its control group cannot be set up",
    226: "NAMESPACE: its mount namespace cannot be set up",
}
"""Exit statuses with which systemd says that it could not execute the command at all."""


def judge(end: RunEnd) -> Outcome:
    """Say what the end of a run means."""
    verdict = next(row.verdict for row in TABLE if row.matches(end))
    if verdict is Verdict.FAILED and end.main_status in EXEC_STATUS:
        verdict = Verdict.NOT_RUN
    return Outcome(verdict, end.rc, _verified(verdict, end), _words(verdict, end))


def _verified(verdict: Verdict, end: RunEnd) -> bool | None:
    if not end.has_done_if or verdict not in SUCCESSES | {Verdict.UNVERIFIED}:
        return None
    return verdict in SUCCESSES


def _words(verdict: Verdict, end: RunEnd) -> str:
    if verdict is Verdict.NOT_RUN and end.main_status in EXEC_STATUS:
        return f"could not be run: {end.main_status}/{EXEC_STATUS[end.main_status]}"
    result = end.service_result
    if verdict is Verdict.ENVIRONMENT and end.job_result != "done":
        result = end.job_result or result
    return WORDS[verdict].format(rc=end.rc, result=result or "no result")


def after_done_if(outcome: Outcome, *, holds: bool | None) -> Outcome:
    """Judge again, now that DONE_IF was asked after a failure; `holds` is None if it can't be."""
    if not holds:
        return Outcome(outcome.verdict, outcome.rc, holds, outcome.words)
    return Outcome(Verdict.DONE, outcome.rc, True, f"done by DONE_IF, although {outcome.words}")
