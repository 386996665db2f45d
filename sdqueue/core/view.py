"""The queue as people ask for it: jobs, lanes, the plan, and the chain of reasons. Pure.

Rows are dicts of plain values, the same for `--json`, the bus and tables; a value that does not
apply is None. `core.keys` says what is in them.
"""

from collections.abc import Iterator

from sdqueue.core.foreign import has_by, is_let_be
from sdqueue.core.lease import Lease
from sdqueue.core.model import Code, Job, JobState, LaneState, Phase, QueueState, Reason
from sdqueue.core.owner import Owner, Standing
from sdqueue.core.plan import Plan, reason

Row = dict[str, object]


def reason_row(why: Reason | None) -> Row | None:
    """Give a reason as a row."""
    if why is None:
        return None
    return {
        "code": str(why.code),
        "detail": why.detail,
        "blocker": why.blocker,
        "since": why.since_sec or None,
        "until": why.until_sec or None,
    }


def job_row(state: QueueState, job: Job, planned: Plan) -> Row:
    """Give one queued or running job as a row."""
    return {
        "name": job.name,
        "lane": job.lane,
        "state": str(job.state),
        "reason": reason_row(reason(state, job, planned)),
        "attempt": job.attempt,
        "attempts_max": job.spec.attempts_max if job.spec else 0,
        "rc": job.outcome.rc if job.outcome else None,
        "verified": job.outcome.verified if job.outcome else None,
        "unit": job.unit,
        "since": job.since_sec,
        "run": job.run,
        "invocation": job.invocation,
        "description": job.spec.description if job.spec else job.problem,
    }


def lane_row(state: QueueState, lane: LaneState, planned: Plan) -> Row:
    """Give one lane as a row."""
    name = lane.lane.name
    since = [since_sec for unit in lane.occupants if (since_sec := _since(state, lane, unit))]
    return {
        "name": name,
        "state": str(lane.verdict.word),
        "holder": lane.verdict.holder,
        "detail": lane.verdict.detail,
        "generation": lane.verdict.generation,
        "slots": lane.lane.slots,
        "occupants": list(lane.occupants),
        "holders": [_holder(lane, unit) for unit in lane.occupants],
        "since": min(since, default=None),
        "queued": len(lane.line) + len(lane.gated),
        "requests": [request.lease.who for request in lane.requests],
        "waiters": [" ".join(waiter) for waiter in lane.waiters],
        "next": lane.line.head() or "",
        "reason": reason_row(planned.blocks.get(name)),
        "excludes": sorted(lane.lane.excludes),
    }


# Who uses a lane --------------------------------------------------------------------------------


def owner_rows(state: QueueState, lane: LaneState) -> list[Row]:
    """List who has or uses a lane: units of ours, leases, and whoever was seen on its devices.

    A job or a lease of which nothing was seen on a device is in it all the same: it has the lane.
    """
    seen = [_seen_row(lane, owner) for owner in lane.users]
    units = {row["unit"] for row in seen if row["standing"] == Standing.OURS}
    return [*_unseen_units(state, lane, units), *_unseen_leases(lane), *seen]


def _seen_row(lane: LaneState, owner: Owner) -> Row:
    row = _owner_row(lane, owner)
    if owner.standing is Standing.OURS:
        return row | {"counts": owner.unit in lane.occupants}
    lease = next((lease for lease in lane.leases.values() if has_by(lease, owner)), None)
    return row | _lease_cells(lease) if lease else row


def _owner_row(lane: LaneState, owner: Owner) -> Row:
    return {
        "lane": lane.lane.name,
        "standing": str(owner.standing),
        "counts": owner.counts and not is_let_be(lane, owner),
        "use": str(owner.use),
        "pid": owner.pid or None,
        "comm": owner.comm,
        "unit": owner.unit,
        "uid": owner.uid,
        "memory": owner.memory_bytes or None,
        "since": None,
        "detail": owner.note,
        "seen": list(owner.seen),
    }


def _unseen_units(state: QueueState, lane: LaneState, seen: set[object]) -> Iterator[Row]:
    """Give the units of ours that hold a slot, but for those whose processes were seen."""
    for unit, name in lane.occupants.items():
        if unit not in lane.leases and unit not in seen:
            ours = Owner(0, comm=name, unit=unit, standing=Standing.OURS)
            since_sec = _since(state, lane, unit)
            yield _owner_row(lane, ours) | {"counts": True, "use": None, "since": since_sec}


def _unseen_leases(lane: LaneState) -> Iterator[Row]:
    """Give the leases but for those whose holders were seen."""
    for lease in lane.leases.values():
        if not any(has_by(lease, owner) for owner in lane.users):
            told: Row = {"use": None, "comm": lease.who, "detail": lease.why}
            yield _owner_row(lane, lease.owner) | _lease_cells(lease) | told


def _lease_cells(lease: Lease) -> Row:
    detail = f"{lease.who}: {lease.why}" if lease.why else lease.who
    since_sec = lease.since_sec or None
    return {"standing": str(Standing.LEASED), "counts": True, "since": since_sec, "detail": detail}


def _holder(lane: LaneState, unit: str) -> str:
    """Name whose unit it is that holds a slot."""
    lease = lane.leases.get(unit)
    return lease.who if lease else lane.occupants[unit] or unit


def _since(state: QueueState, lane: LaneState, unit: str) -> float | None:
    """Say since when a unit holds its slot; None where that is not known."""
    if lease := lane.leases.get(unit):
        return lease.since_sec or None
    job = state.jobs.get(lane.occupants[unit])
    return (job.started_sec or None) if job else None


def aside_rows(state: QueueState, planned: Plan) -> list[Row]:
    """Give the queued and running jobs, but for those that only stand behind their lane's head."""
    heads = {lane.line.head() for lane in state.lanes.values()}
    return [
        job_row(state, job, planned)
        for job in state.jobs.values()
        if job.phase is not Phase.IN_LINE or job.name in heads
    ]


def plan_rows(state: QueueState, planned: Plan) -> list[Row]:
    """List every queued job in the order in which the lanes would take them, with its reason."""
    in_line = [state.jobs[name] for lane in state.lanes.values() for name in lane.line]
    named = {job.name for job in in_line}
    aside = [
        job for job in state.jobs.values() if job.state is JobState.QUEUED and job.name not in named
    ]
    return [job_row(state, job, planned) for job in (*in_line, *aside)]


def why(state: QueueState, job: Job, planned: Plan) -> list[Row]:
    """Follow the reasons of a job to what must end first: one row for each step of the way."""
    chain: list[Row] = []
    seen: set[str] = set()
    present: Job | None = job
    cause: Reason | None = None
    while present and present.name not in seen:
        seen.add(present.name)
        cause = reason(state, present, planned)
        since_sec = present.started_sec or present.since_sec
        link: Row = {"name": present.name, "state": str(present.state), "since": since_sec}
        chain.append(link | _cause(cause))
        present = _next(state, cause)
    lease = _lease_of(state, cause)
    return [*chain, _lease_link(lease)] if lease else chain


def _lease_of(state: QueueState, cause: Reason | None) -> Lease | None:
    """Find the lease whose unit a reason's blocker is."""
    leases = (lane.leases.get(cause.blocker) for lane in state.lanes.values() if cause)
    return next(filter(None, leases), None)


def _lease_link(lease: Lease) -> Row:
    """Give what ends a chain whose last job waits for a lease."""
    detail = f"leased to {lease}"
    held: Row = {"name": lease.backing_unit, "state": "leased", "since": lease.since_sec or None}
    return held | {"code": "", "detail": detail, "blocker": ""}


def _cause(cause: Reason | None) -> Row:
    if cause is None:
        return {"code": "", "detail": "it runs", "blocker": ""}
    return {"code": str(cause.code), "detail": cause.detail, "blocker": cause.blocker}


def _next(state: QueueState, cause: Reason | None) -> Job | None:
    """Find the job that a reason's blocker stands for: named itself, or by its unit."""
    if cause is None or not cause.blocker or cause.code is Code.FOREIGN:
        return None
    if cause.code is Code.AFTER_NOT_DONE and cause.blocker not in state.jobs:
        return None
    by_name = state.jobs.get(cause.blocker)
    if by_name:
        return by_name
    for lane in state.lanes.values():
        holder = lane.occupants.get(cause.blocker)
        if holder:
            return state.jobs.get(holder)
    return None
