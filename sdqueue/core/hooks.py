"""Units that are to start when a job ends: ON_SUCCESS and ON_FAILURE. Pure.

A job that is done has done its work, whether it ran or DONE_IF held before it started (as it does
after a power cut at the wrong moment): both start ON_SUCCESS. ON_FAILURE is started when the job
has failed for good, not at each attempt. What becomes of a hook changes nothing for the job.
"""

from sdqueue.core import events as ev
from sdqueue.core.actions import Action, Hook, Log, Park, Settle, Skip
from sdqueue.core.model import Job, JobState, QueueState
from sdqueue.core.spec import JobSpec
from sdqueue.words import unitname


def hooks_of(state: QueueState, job: Job, action: Settle | Skip | Park) -> list[Action]:
    """Say which units are to be started now that this is on disk."""
    if job.spec is None or isinstance(action, Park):
        return []
    to = JobState.DONE if isinstance(action, Skip) else action.to
    units = {JobState.DONE: job.spec.on_success, JobState.FAILED: job.spec.on_failure}.get(to, ())
    return [_hook(state, job, job.spec, unit) for unit in units]


def _hook(state: QueueState, job: Job, spec: JobSpec, unit: str) -> Action:
    """Start a unit, unless it is another user's job that names one of our manager's units."""
    lane = state.config.lanes.get(spec.lane)
    if spec.uid == state.uid or (lane and unit in (*lane.on_success, *lane.on_failure)):
        return Hook(hook_unit(unit, job.name), job.name)
    what = f"hook {unit} is not started: uid {spec.uid} has no say over units of the machine"
    return Log("error", job.name, {"what": what, "unit": unit})


def hook_unit(unit: str, job: str) -> str:
    """Give a template the job's name as its instance, escaped as systemd-escape does."""
    return unit.replace("@.", f"@{unitname.escape(job)}.", 1)


def hook_failed(state: QueueState, event: ev.HookFailed, _now_sec: float) -> list[Action]:
    """Count a hook that failed, and say so."""
    state.hooks_failed += 1
    what = f"hook {event.unit} of {event.job}: {event.what}"
    count = "a hook has failed" if state.hooks_failed == 1 else f"{state.hooks_failed} hooks failed"
    state.notices["hooks"] = f"{count}, the last one {event.unit} of {event.job}: {event.what}"
    return [Log("error", event.job, {"what": what, "unit": event.unit})]


def noticed(state: QueueState, event: ev.Noticed, _now_sec: float) -> list[Action]:
    """Keep for `status` what is not as it should be and stops nothing; log it when it is new."""
    before = state.notices.pop(event.source, None)
    if not event.what:
        return []
    state.notices[event.source] = event.what
    if event.what == before:
        return []
    return [Log("error" if event.is_error else "notice", "-", {"what": event.what})]
