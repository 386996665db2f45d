"""The checks of several jobs as one bash script, and its answers understood. Pure.

The script runs as one unit in the lane. For each job in order it asks DONE_IF, and if that says no
REQUIRES, and ends at the first job that may run. Each answer is one line on standard output, the
pipe to the controller; the checks' own output goes to the journal. A check gets no input, its own
time limit, and the job's directory and environment.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sdqueue.core.model import Code, Reason
from sdqueue.core.spec import JobSpec

TIMED_OUT = 124
"""Exit status with which timeout(1) says that it ended the command."""

PRELUDE = """\
ask() {
    tag=$1 limit=$2 dir=$3 text=$4
    shift 4
    (cd -- "$dir" && exec env -- "$@" timeout -k 5 -- "$limit" /bin/bash -c "$text") </dev/null >&2
    set -- $?
    echo "$tag $1"
    return "$1"
}
"""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What one job's checks need besides its spec: its directories, `limit_sec` for each check."""

    spec: JobSpec
    home_dir: str
    state_dir: str
    limit_sec: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What the checks said of one job; `reached` False: an earlier one may run, ask again later."""

    reached: bool
    done: bool = False
    gate: Reason | None = None


UNREACHED = Answer(reached=False)


def script(jobs: Sequence[CheckContext]) -> str:
    """Write the script that asks DONE_IF and REQUIRES of these jobs."""
    return PRELUDE + "".join(_ask_both(number, job) for number, job in enumerate(jobs))


def done_if_script(job: CheckContext) -> str:
    """Write the script that asks only DONE_IF, of one job after a failed run."""
    return PRELUDE + _ask("D0", job, job.spec.done_if) + "\n"


def _ask_both(number: int, job: CheckContext) -> str:
    spec = job.spec
    done_if = _ask(f"D{number}", job, spec.done_if) if spec.done_if else "false"
    requires = _ask(f"R{number}", job, spec.requires) if spec.requires else "true"
    return f"{done_if}\ncase $? in 0 | {TIMED_OUT}) ;; *) {requires} && exit 0 ;; esac\n"


def _ask(tag: str, job: CheckContext, text: str) -> str:
    spec = job.spec
    environment = {
        **dict(spec.env),
        "SDQUEUE_JOB": spec.name,
        "SDQUEUE_LANE": spec.lane,
        "STATE_DIRECTORY": job.state_dir,
    }
    words = [tag, f"{job.limit_sec:g}", spec.cwd or job.home_dir, text]
    words += [f"{key}={value}" for key, value in environment.items()]
    return f"ask {shlex.join(words)}"


def answers(jobs: Sequence[JobSpec], lines: Iterable[str]) -> list[Answer]:
    """Read what the script wrote, one answer for each job; broken lines are as if never written."""
    statuses = dict(filter(None, map(_status, lines)))
    return [_answer(spec, number, statuses) for number, spec in enumerate(jobs)]


def _status(line: str) -> tuple[str, int] | None:
    tag, _, status = line.strip().partition(" ")
    return (tag, int(status)) if tag and status.isascii() and status.isdigit() else None


def _answer(spec: JobSpec, number: int, statuses: dict[str, int]) -> Answer:
    done, requires = statuses.get(f"D{number}"), statuses.get(f"R{number}")
    if done == 0:
        return Answer(True, done=True)
    if done == TIMED_OUT:
        return Answer(True, gate=Reason(Code.CHECK_FAILED, "DONE_IF did not answer in time"))
    if spec.requires and requires is not None:
        return Answer(True, gate=_gate(requires))
    return Answer(done is not None and not spec.requires)


def _gate(status: int) -> Reason | None:
    if status == TIMED_OUT:
        return Reason(Code.CHECK_FAILED, "REQUIRES did not answer in time")
    return Reason(Code.REQUIRES_FALSE, f"REQUIRES exited {status}") if status else None


def verdict(lines: Iterable[str]) -> bool | None:
    """Read what `done_if_script` wrote: None where it said nothing, or not in time."""
    status = dict(filter(None, map(_status, lines))).get("D0")
    return None if status in (None, TIMED_OUT) else status == 0
