"""Who uses a lane is told to readers of the log, whether a job waits or runs or neither."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from sdqueue.core import actions as act
from sdqueue.core import events as ev
from sdqueue.core.lane import Lane
from sdqueue.core.owner import Owner, Standing, Use
from tests.unit.core_queue import Queue, job, lanes, logged, only

GPU = Lane(name="gpu", foreign=("llama-server",))
LLAMA = Owner(77, comm="llama-server", unit="llm.service", started=5, uid=1000)


def told(actions: Iterable[act.Action]) -> list[tuple[str, object]]:
    logs = [each for each in only(act.Log, actions) if each.event.startswith("owner")]
    return [(each.event, each.fields["pid"]) for each in logs]


@pytest.fixture
def queue() -> Queue:
    return Queue(lanes(GPU))


def test_somebody_who_comes_while_nothing_waits_is_told_and_that_he_went(queue: Queue) -> None:
    assert told(queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))) == [("owner", 77)]
    assert told(queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))) == []
    assert told(queue.tell(ev.OwnersSeen("gpu", ()))) == [("owner-end", 77)]


def test_somebody_who_comes_while_a_job_runs_is_told_when_he_does(queue: Queue) -> None:
    """As reported: a model was loaded in mid-run, which a look at the start can't see."""
    queue.tell(ev.OwnersSeen("gpu", ()))
    queue.add(job("1", lane="gpu"))
    queue.begin("1")
    (log,) = logged("owner", queue.tell(ev.OwnersSeen("gpu", (LLAMA,))))
    assert (log.fields["unit"], log.fields["cmd"]) == ("llm.service", "llama-server")


def test_another_process_of_the_same_pid_is_another(queue: Queue) -> None:
    queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))
    other = replace(LLAMA, started=6)
    actions = queue.tell(ev.OwnersSeen("gpu", (other,)))
    assert told(actions) == [("owner-end", 77), ("owner", 77)]


def test_what_he_does_is_told_again_where_it_is_something_else(queue: Queue) -> None:
    queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))
    idle = replace(LLAMA, use=Use.RESIDENT, memory_bytes=1 << 30)
    (log,) = logged("owner", queue.tell(ev.OwnersSeen("gpu", (idle,))))
    assert log.fields["use"] == "resident"
    assert told(queue.tell(ev.OwnersSeen("gpu", (replace(idle, memory_bytes=2 << 30),)))) == []


@pytest.mark.parametrize("other", [{"use": Use.HOLDER}, {"standing": Standing.OURS}])
def test_who_is_in_nobodys_way_is_not_told(queue: Queue, other: dict[str, str]) -> None:
    assert told(queue.tell(ev.OwnersSeen("gpu", (replace(LLAMA, **other),)))) == []  # type: ignore[arg-type]


def test_who_has_a_lease_is_told_when_he_stays_after_it(queue: Queue) -> None:
    queue.tell(ev.OwnersSeen("gpu", ()))
    queue.lend("gpu")
    assert told(queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))) == []
    assert told(queue.let_go("gpu")) == [("owner", 77)]


def test_a_device_that_gives_memory_back_is_told_as_nobody_in_particular(queue: Queue) -> None:
    queue.tell(ev.OwnersSeen("gpu", (LLAMA,)))
    actions = queue.tell(ev.OwnersSeen("gpu", (), settling=True))
    assert told(actions) == [("owner-end", 77), ("owner", 0)]
    assert told(queue.tell(ev.OwnersSeen("gpu", ()))) == [("owner-end", 0)]
