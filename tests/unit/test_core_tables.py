"""The core's tables, walked: nothing missing, nothing twice, nothing that can't be reached."""

from collections.abc import Callable

import pytest

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.apply import IGNORED, TRANSITIONS, ImpossibleTransition, apply
from sdqueue.core.lanes import QUEUE_HANDLERS
from sdqueue.core.model import (
    CODE_HELP,
    GATES,
    PASSING,
    RUNNING_PHASES,
    STARTS_MAX,
    Code,
    JobState,
    Phase,
    Reason,
    new_state,
)
from sdqueue.core.owner import Owner
from sdqueue.core.placing import OBSTACLES
from sdqueue.core.plan import _REASONS, RULES
from sdqueue.core.spec import Config, DiskNeed, Lane, MemoryNeed
from tests.unit.core_queue import FAILED, Queue, job, lanes

ALL_PHASES: tuple[Phase | None, ...] = (None, *Phase)
WAITING = (Phase.IN_LINE, Phase.ASIDE, Phase.CHECKING, Phase.MEASURING)

IMPOSSIBLE: dict[str, tuple[tuple[type, ...], tuple[Phase | None, ...]]] = {
    "only a start is claimed, and its task is the only one to say so": (
        (ev.Claimed, ev.NotClaimed),
        tuple({*ALL_PHASES} - {Phase.CLAIMING}),
    ),
    "a refusal answers a start that was claimed, and nothing else ends that": (
        (ev.Refused,),
        tuple({*ALL_PHASES} - {Phase.CLAIMING}),
    ),
    "a start is only asked for when it is claimed, and told at the latest with its end": (
        (ev.Started,),
        (*WAITING, Phase.LEAVING, Phase.UNKNOWN),
    ),
    "a job that waits has no run that could be judged": (
        (ev.Reattached, ev.Lost, ev.Ended),
        (*WAITING, Phase.LEAVING),
    ),
    "DONE_IF is asked after a failure, and nothing but its answer ends that": (
        (ev.Verified,),
        tuple({*Phase} - {Phase.VERIFYING, Phase.SETTLING}),
    ),
    "what is settled was asked for, and waits for it": (
        (ev.Settled,),
        tuple({*Phase} - {Phase.SETTLING, Phase.LEAVING}),
    ),
}
"""Why a pair of phase and event can't happen."""


def impossible() -> set[tuple[Phase | None, type]]:
    return {
        (phase, event)
        for events, phases in IMPOSSIBLE.values()
        for event in events
        for phase in phases
    }


def test_every_phase_and_event_is_a_transition_or_ignored_or_impossible_for_a_reason() -> None:
    events = ev.JobEvent.__args__
    everything = {(phase, event) for phase in ALL_PHASES for event in events}
    assert set(TRANSITIONS) | IGNORED | impossible() == everything


def test_no_pair_of_phase_and_event_is_two_of_these() -> None:
    assert not set(TRANSITIONS) & IGNORED
    assert not set(TRANSITIONS) & impossible()
    assert not IGNORED & impossible()


@pytest.mark.parametrize("pair", sorted(impossible(), key=str))
def test_what_is_impossible_is_refused_loudly(pair: tuple[Phase | None, type]) -> None:
    phase, event = pair
    state = new_state(Config())
    if phase:
        apply(state, ev.FileQueued("a", job("a")), 1.0)
        state.jobs["a"].phase = phase
    samples: dict[type, ev.Event] = {
        ev.Claimed: ev.Claimed("a", 1),
        ev.NotClaimed: ev.NotClaimed("a"),
        ev.Refused: ev.Refused("a", Reason(Code.REFUSED)),
        ev.Started: ev.Started("a", 1),
        ev.Reattached: ev.Reattached("a", 1),
        ev.Lost: ev.Lost("a", "", True),
        ev.Ended: ev.Ended("a", FAILED),
        ev.Verified: ev.Verified("a", True),
        ev.Settled: ev.Settled("a", act.Skip("a")),
    }
    with pytest.raises(ImpossibleTransition, match=event.__name__):
        apply(state, samples[event], 1.0)


def test_every_event_of_the_queue_as_a_whole_is_handled() -> None:
    assert set(QUEUE_HANDLERS) == set(ev.QueueEvent.__args__)
    assert not set(QUEUE_HANDLERS) & set(ev.JobEvent.__args__)


def test_every_phase_is_a_state_and_those_that_wait_have_a_reason() -> None:
    assert set(_REASONS) == set(Phase) - RUNNING_PHASES


def test_every_code_has_help_that_is_one_line() -> None:
    assert set(CODE_HELP) == set(Code)
    assert all(text and "\n" not in text for text in CODE_HELP.values())


def test_gates_and_passing_reasons_are_told_apart() -> None:
    assert not GATES & PASSING


def test_the_rules_of_a_lane_are_asked_from_the_widest_to_the_narrowest() -> None:
    assert [rule.__name__.strip("_") for rule in RULES] == [
        "halted",
        "paused",
        "checking",
        "taken",
        "excluded",
        "refused",
        "before",
        "limited",
        "owed",
    ]


def test_what_keeps_a_job_out_of_the_line_is_asked_in_this_order() -> None:
    assert [obstacle.__name__.strip("_") for obstacle in OBSTACLES] == [
        "bad_file",
        "after",
        "not_before",
        "retry",
    ]


# Each code, reached

NO = {
    Code.REQUIRES_FALSE: Reason(Code.REQUIRES_FALSE, "REQUIRES exited 1"),
    Code.CHECK_FAILED: Reason(Code.CHECK_FAILED, "REQUIRES did not answer in time"),
    Code.MEMORY: Reason(Code.MEMORY, "needs 37 G, 5 G usable"),
    Code.DISK: Reason(Code.DISK, "needs 37 G, 5 G free"),
}


def halted(reason: Reason) -> Queue:
    queue = Queue()
    queue.tell(ev.Halted(reason))
    queue.add(job("a"))
    return queue


def behind(other: str, name: str = "a", lane: str = "cpu") -> Queue:
    queue = Queue()
    queue.add(job("0", lane=other))
    queue.add(job(name, lane=lane))
    return queue


def gated(code: Code) -> Queue:
    queue = Queue()
    if code in (Code.MEMORY, Code.DISK):
        memory = MemoryNeed(bytes=1) if code is Code.MEMORY else None
        disk = DiskNeed(1, "/") if code is Code.DISK else None
        queue.add(job("a", memory=memory, disk=disk))
        queue.tell(ev.Measured("a", NO[code]))
    else:
        queue.add(job("a", requires="x"))
        queue.tell(ev.Checked("a", gate=NO[code]), queue.checks_gone("cpu"))
    return queue


def before_lane() -> Queue:
    queue = Queue(lanes(*(Lane(name="gpu", slots=2, excludes=frozenset({"net"})), NET)))
    queue.add(job("0", lane="gpu"))
    queue.add(job("n", lane="net"), job("a", lane="gpu"))
    return queue


NET = Lane(name="net", excludes=frozenset({"gpu"}), before=("gpu",))


def with_one(**keys: object) -> Queue:
    queue = Queue()
    queue.add(job("a", **keys))  # type: ignore[arg-type]
    return queue


def refused() -> Queue:
    queue = with_one()
    queue.tell(ev.Refused("a", Reason(Code.REFUSED, "n1.service runs", "n1.service")))
    return queue


def paused() -> Queue:
    queue = Queue()
    queue.tell(ev.LanePaused("cpu", True))
    queue.add(job("a"))
    return queue


def retried() -> Queue:
    queue = with_one(retry_delay_usec=60_000_000)
    queue.run("a", FAILED)
    return queue


def limited() -> Queue:
    queue = Queue(lanes(Lane(name="cpu", slots=100)))
    queue.add(*(job(f"0-{n}") for n in range(STARTS_MAX)))
    queue.add(job("a"))
    return queue


def earlier() -> Queue:
    queue = Queue(lanes(Lane(name="cpu", slots=1)))
    queue.add(job("0"))
    queue.add(job("1"), job("a"))
    return queue


def starting() -> Queue:
    queue = with_one(done_if="x")
    queue.tell(ev.Checked("a", done=True))
    return queue


def used_by_a_stranger() -> Queue:
    queue = Queue(lanes(Lane(name="cpu", foreign=("llama-server",))))
    queue.add(job("a"))
    queue.tell(ev.OwnersSeen("cpu", (Owner(7, 1, "llama-server"),)))
    return queue


def leased() -> Queue:
    queue = Queue()
    queue.lend("gpu")
    queue.add(job("a", lane="gpu"))
    return queue


REACHED: dict[Code, Callable[[], Queue]] = {
    Code.STARTING: lambda: halted(Reason(Code.STARTING, "the box has not finished starting")),
    Code.TROUBLE: lambda: halted(Reason(Code.TROUBLE, "No space left on device")),
    Code.PAUSED: paused,
    Code.LANE_TAKEN: lambda: behind("cpu"),
    Code.LEASED: leased,
    Code.EXCLUDED_LANE: lambda: behind("net", lane="gpu"),
    Code.BEFORE_LANE: before_lane,
    Code.FOREIGN: used_by_a_stranger,
    Code.REFUSED: refused,
    Code.START_LIMIT: limited,
    Code.EARLIER_JOB: earlier,
    Code.CHECKING: lambda: with_one(requires="x"),
    Code.STARTS_NOW: starting,
    Code.BAD_FILE: lambda: with_one(lane="nowhere"),
    Code.REQUIRES_FALSE: lambda: gated(Code.REQUIRES_FALSE),
    Code.CHECK_FAILED: lambda: gated(Code.CHECK_FAILED),
    Code.AFTER_NOT_DONE: lambda: with_one(after=("nobody",)),
    Code.RETRY_DELAY: retried,
    Code.NOT_BEFORE: lambda: with_one(not_before_sec=2e9),
    Code.MEMORY: lambda: gated(Code.MEMORY),
    Code.DISK: lambda: gated(Code.DISK),
}


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_the_reason_of_some_job(code: Code) -> None:
    queue = REACHED[code]()
    why = queue.why("a")
    assert why
    assert why.code is code
    assert why.detail
    assert queue["a"].state is JobState.QUEUED


@pytest.mark.parametrize("code", [code for code in Code if code not in PASSING])
def test_every_reason_that_lasts_is_told_once(code: Code) -> None:
    queue = REACHED[code]()
    logs = [
        action for action in queue.actions if isinstance(action, act.Log) and action.event == "wait"
    ]
    codes = [log.fields["reason"] for log in logs if log.job in ("a", "-")]
    assert codes.count(str(code)) == 1
    before = len(queue.actions)
    queue.tell(ev.Tick())
    assert len(queue.actions) == before
