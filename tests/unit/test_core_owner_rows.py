"""Who has or uses a lane, as it is told: jobs, holders of leases, users that were seen."""

from dataclasses import replace

import pytest

from sdqueue.core import events as ev
from sdqueue.core.keys import LANE_KEYS, OWNER_KEYS
from sdqueue.core.lane import Lane
from sdqueue.core.owner import Owner, Standing, Use
from sdqueue.core.plan import plan
from sdqueue.core.view import Row, lane_row, owner_rows, why
from tests.unit.core_queue import Queue, job, lanes

GPU = Lane(name="gpu", excludes=frozenset({"net"}), devices=("/dev/dri/renderD*",))
NET = Lane(name="net", excludes=frozenset({"gpu"}))
STRANGER = Owner(5, comm="ollama", unit="ollama.service", started=3, uid=1000, seen=("kfd",))


def rows(queue: Queue, lane: str = "gpu") -> list[Row]:
    return owner_rows(queue.state, queue.state.lanes[lane])


def standings(queue: Queue) -> list[tuple[object, object, object]]:
    return [(row["standing"], row["comm"], row["counts"]) for row in rows(queue)]


def gpu_queue(*users: Owner) -> Queue:
    queue = Queue(lanes(GPU, NET))
    queue.tell(ev.OwnersSeen("gpu", users))
    return queue


def running(queue: Queue) -> Queue:
    queue.add(job("g", lane="gpu"))
    queue.begin("g")
    return queue


def test_a_user_is_told_with_all_that_was_seen_of_it() -> None:
    (row,) = rows(gpu_queue(replace(STRANGER, memory_bytes=7, note="odd")))
    assert row == {
        "lane": "gpu",
        "standing": "foreign",
        "counts": True,
        "use": "active",
        "pid": 5,
        "comm": "ollama",
        "unit": "ollama.service",
        "uid": 1000,
        "memory": 7,
        "since": None,
        "detail": "odd",
        "seen": ["kfd"],
    }
    assert list(row) == list(OWNER_KEYS)


def test_a_job_has_its_lane_also_where_nothing_is_seen_of_it_on_a_device() -> None:
    queue = running(gpu_queue())
    (row,) = rows(queue)
    assert (row["standing"], row["unit"], row["since"]) == (
        "ours",
        "sdqueue-job-g.service",
        queue.now,
    )
    assert (row["use"], row["pid"], row["counts"]) == (None, None, True)


def test_a_job_that_is_seen_is_told_once_for_each_of_its_processes() -> None:
    queue = running(gpu_queue())
    ours = replace(STRANGER, unit="sdqueue-job-g.service", standing=Standing.OURS)
    queue.tell(ev.OwnersSeen("gpu", (ours, replace(ours, pid=6))))
    assert [(row["pid"], row["standing"], row["counts"]) for row in rows(queue)] == [
        (5, "ours", True),
        (6, "ours", True),
    ]


def test_a_stranger_whose_unit_has_the_name_of_a_job_is_no_job_of_ours() -> None:
    queue = running(gpu_queue())
    other = replace(STRANGER, unit="sdqueue-job-g.service", standing=Standing.UNTOUCHABLE, uid=2)
    queue.tell(ev.OwnersSeen("gpu", (other,)))
    assert standings(queue) == [("ours", "g", True), ("untouchable", "ollama", True)]


def test_who_holds_a_lease_is_leased_seen_or_not() -> None:
    queue = gpu_queue()
    queue.lend("gpu")
    (row,) = rows(queue)
    assert (row["standing"], row["comm"], row["detail"]) == ("leased", "engine", "to serve")
    assert (row["use"], row["since"]) == (None, queue.now)
    holder = replace(STRANGER, pid=77, started=5, comm="engine")
    queue.tell(ev.OwnersSeen("gpu", (holder, STRANGER)))
    assert standings(queue) == [("leased", "engine", True), ("foreign", "ollama", True)]
    assert (rows(queue)[0]["use"], rows(queue)[0]["detail"]) == ("active", "engine: to serve")


def test_what_the_holder_starts_has_the_lane_by_the_lease_and_is_a_stranger_after_it() -> None:
    queue = gpu_queue()
    queue.lend("gpu")
    child = replace(STRANGER, pid=78, ppid=77, unit="session-1.scope")
    queue.tell(ev.OwnersSeen("gpu", (child, replace(STRANGER, ppid=0))))
    assert standings(queue) == [("leased", "ollama", True), ("foreign", "ollama", True)]
    queue.let_go("gpu")
    queue.tell(ev.OwnersSeen("gpu", (child,)))
    assert standings(queue) == [("foreign", "ollama", True)]
    assert queue.state.lanes["gpu"].verdict.word == "foreign"


def test_who_only_has_the_device_open_is_listed_and_does_not_count() -> None:
    queue = gpu_queue(replace(STRANGER, use=Use.HOLDER))
    assert standings(queue) == [("foreign", "ollama", False)]
    assert queue.state.lanes["gpu"].verdict.word == "free"


@pytest.mark.parametrize("lane", ["gpu", "net"])
def test_a_lane_tells_who_holds_it_since_when_and_who_waits(lane: str) -> None:
    queue = gpu_queue()
    queue.lend("gpu")
    queue.ask("gpu", "other", wait=True)
    queue.add(job("n", lane=lane))
    row = lane_row(queue.state, queue.state.lanes["gpu"], plan(queue.state, queue.now))
    assert list(row) == list(LANE_KEYS)
    assert (row["holders"], row["since"], row["requests"]) == (["engine"], queue.now, ["other"])
    assert sorted(row["waiters"]) == ["job n", "lease other"]  # type: ignore[call-overload]
    running = lane_row(queue.state, queue.state.lanes["net"], plan(queue.state, queue.now))
    assert (running["holders"], running["since"]) == ([], None)


@pytest.mark.parametrize("lane", ["gpu", "net"])
def test_why_ends_with_who_holds_the_lease(lane: str) -> None:
    queue = gpu_queue()
    queue.lend("gpu")
    queue.wait(5)
    queue.add(job("w", lane=lane))
    first, last = why(queue.state, queue["w"], plan(queue.state, queue.now))
    assert (first["name"], first["state"], first["since"]) == ("w", "queued", queue.now)
    assert (last["name"], last["state"]) == ("sdqueue-lease-gpu-engine.service", "leased")
    assert last["detail"] == "leased to engine, pid 77 (to serve)"
    assert last["since"] == queue.now - 5
