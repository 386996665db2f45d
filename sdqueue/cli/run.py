"""`sdqueue run`: submit one job and follow it; its status is ours. Ctrl-C leaves it running."""

import os
import time
from contextlib import ExitStack

from sdqueue.cli import journal
from sdqueue.cli.compose import add_job_options, drafts
from sdqueue.cli.exits import FAILED, NOT_DONE, OK, SET_ASIDE, TIMED_OUT
from sdqueue.cli.journalread import Output
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.records import last_record
from sdqueue.cli.say import remark
from sdqueue.cli.submit import submit
from sdqueue.cli.watching import Watch, settled_state_of
from sdqueue.cli.within import refuse_deadlock
from sdqueue.spool.eventread import Follower, Record
from sdqueue.words.errors import UsageError
from sdqueue.words.names import SUFFIX

ALIVE = ("running", "queued")


def add_arguments(parser: Parser) -> None:
    """Add the options of `run`: those of `submit`."""
    add_job_options(parser)


def run(args: Arguments) -> int:
    """Submit, follow, and return the job's status."""
    if args.json != "off":
        raise UsageError("run prints what the job prints, and that is no JSON.")
    place = Place(system=args.system)
    jobs = drafts(args, place)
    if len(jobs) != 1:
        raise UsageError("run follows one job; submit takes many.")
    refuse_deadlock(place, "run", jobs[0].lane)
    place.open()
    with ExitStack() as stack:
        watch = stack.enter_context(Watch(place.spool, log=True))
        follower = Follower(place.spool)
        stack.callback(follower.close)
        began_sec = time.time()
        (name,) = submit(place, jobs)
        remark(f"{name} is in the queue")
        try:
            state = _follow(place, name, watch, follower, began_sec)
        except KeyboardInterrupt:
            remark(_left_alone(place, name))
            raise
    return exit_status(place, name, state)


def _follow(place: Place, name: str, watch: Watch, follower: Follower, began_sec: float) -> str:
    """Copy the job's output and say its events until it has ended; return how."""
    output = _output(place, name, began_sec)
    try:
        while True:
            for event in follower.read():
                if str(event.get("job", "")).removesuffix(SUFFIX) == name:
                    _say(event)
            if output:
                output.copy()
            state = settled_state_of(place.spool, name, watch)
            if state not in ALIVE:
                break
            watch.wait(None, *([output.fd] if output and output.is_open else []))
        if output:
            output.finish()
        return state or "removed"
    finally:
        if output:
            output.close()


def _output(place: Place, name: str, since_sec: float) -> Output | None:
    try:
        return Output(journal.output_of(place, name), since_sec)
    except OSError:
        remark(str(journal.missing()))
        return None


SAYINGS = {
    "start": "attempt {attempt} starts",
    "wait": "waits: {detail}",
    "gpu-wait": "waits for {cmd} (pid {pid})",
    "retry": "attempt {attempt} has failed ({result}, exit status {rc}); it is tried again",
    "skipped": "there is nothing to do: DONE_IF holds",
    "recovered": "was interrupted: {note}",
}
"""What of the event log is said while following; how it ends is said at the end."""


class _Blank(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return "?"


def _say(event: Record) -> None:
    saying = SAYINGS.get(str(event.get("event")))
    if saying:
        remark(saying.format_map(_Blank(event)))


def _left_alone(place: Place, name: str) -> str:
    option = " --system" if place.system and os.geteuid() else ""
    return (
        f"{name} goes on without us; see: sdqueue{option} logs -f {name};"
        f" stop it: sdqueue{option} cancel {name}"
    )


def exit_status(place: Place, name: str, state: str) -> int:
    """Return the status of a job that has ended, and say on stderr what it stands for."""
    if state == "done":
        remark(f"{name} is done")
        return OK
    if state != "failed":
        remark(f"{name} was set aside" if state == "parked" else f"{name} was removed")
        return SET_ASIDE
    record = last_record(place.spool, name)
    rc, result = record.get("rc"), record.get("result")
    if result == "timeout":
        remark(f"{name} has failed: its TIMEOUT passed")
        return TIMED_OUT
    if rc == 0 and record.get("verified") is False:
        remark(f"{name} has failed: exit status 0, but DONE_IF says it is not done")
        return NOT_DONE
    remark(f"{name} has failed: {record.get('note') or result or 'see sdqueue show'}")
    return rc if isinstance(rc, int) and 0 < rc < 256 else FAILED
