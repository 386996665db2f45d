"""Types of unit jobs: which of them merge, which are redundant, which of two runs first.

Re-enacts src/core/job.c, v252 to v262. Must not know transactions.
"""

from typing import Literal, get_args

from sdqueue.boot.graph import ActiveState, Node

JobType = Literal[
    "start",
    "verify-active",
    "stop",
    "reload",
    "restart",
    "nop",
    "try-restart",
    "try-reload",
    "reload-or-start",
]

JOB_TYPES: tuple[JobType, ...] = get_args(JobType)
MERGING: tuple[JobType, ...] = JOB_TYPES[:5]
"""The types that a transaction may hold and that take part in merging."""

MERGE: dict[frozenset[JobType], JobType] = {
    frozenset({"start", "verify-active"}): "start",
    frozenset({"start", "reload"}): "reload-or-start",
    frozenset({"verify-active", "reload"}): "reload",
    frozenset({"start", "restart"}): "restart",
    frozenset({"verify-active", "restart"}): "restart",
    frozenset({"reload", "restart"}): "restart",
}
"""What two different jobs of one unit become; a pair that isn't here can't be merged."""

REDUNDANT: dict[JobType, frozenset[ActiveState]] = {
    "start": frozenset({"active", "reloading"}),
    "verify-active": frozenset({"active", "reloading"}),
    "stop": frozenset({"inactive", "failed"}),
    "reload": frozenset({"reloading"}),
    "restart": frozenset({"activating"}),
    "nop": frozenset(get_args(ActiveState)),
}
"""The states of a unit in which a job of that type would do nothing."""

COLLAPSE: dict[JobType, tuple[JobType, JobType]] = {
    "try-restart": ("restart", "nop"),
    "try-reload": ("reload", "nop"),
    "reload-or-start": ("reload", "start"),
}
"""What a conditional type becomes on an active unit, and on one that isn't."""


def lookup_merge(a: JobType, b: JobType) -> JobType | None:
    """The type of two jobs of one unit merged, None if they can't be.

    Re-enacts job_type_lookup_merge(), src/core/job.c, v252.
    """
    return a if a == b else MERGE.get(frozenset({a, b}))


def is_mergeable(a: JobType, b: JobType) -> bool:
    """Re-enacts job_type_is_mergeable(), src/core/job.h, v252."""
    return lookup_merge(a, b) is not None


def is_conflicting(a: JobType, b: JobType) -> bool:
    """Re-enacts job_type_is_conflicting(), src/core/job.h, v252."""
    return a != "nop" and b != "nop" and not is_mergeable(a, b)


def is_redundant(job: JobType, state: ActiveState) -> bool:
    """Re-enacts job_type_is_redundant(), src/core/job.c, v252."""
    return state in REDUNDANT.get(job, ())


def collapse(job: JobType, node: Node) -> JobType:
    """Re-enacts job_type_collapse(), src/core/job.c, v252."""
    if job not in COLLAPSE:
        return job
    if_active, otherwise = COLLAPSE[job]
    return if_active if node.active else otherwise


def merge_and_collapse(a: JobType, b: JobType, node: Node) -> JobType | None:
    """Re-enacts job_type_merge_and_collapse(), src/core/job.c, v252."""
    merged = lookup_merge(a, b)
    return None if merged is None else collapse(merged, node)


def is_applicable(job: JobType, node: Node) -> bool:
    """Re-enacts unit_job_is_applicable(), src/core/unit.c, v252.

    Differs: reload is granted to services only, whatever their settings; at boot nothing reloads.
    """
    if job in ("stop", "restart", "try-restart"):
        return not node.perpetual
    if job in ("reload", "try-reload"):
        return node.type == "service"
    return True


STOPS: frozenset[JobType] = frozenset({"stop", "restart"})


def runs_before(a: JobType, b: JobType) -> bool:
    """Tell, for two units ordered "A Before= B", whether A's job really runs before B's.

    Re-enacts job_compare(), src/core/job.c, v252: a stop always comes first, and of two stops that
    of the later unit.
    """
    return a != "nop" and b != "nop" and b not in STOPS


def runs_before_after(a: JobType, b: JobType) -> bool:
    """Tell, for two units ordered "A After= B", whether A's job runs before B's all the same."""
    return a != "nop" and b != "nop" and a in STOPS
