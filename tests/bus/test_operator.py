"""The operator's verbs against a controller at work: what they do, and what the log says of it."""

import json
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.waiting import eventually

PROGRAM = [sys.executable, "-m", "sdqueue", "--user"]


@pytest.fixture(scope="module")
def module_queue() -> Iterator[Queue]:
    from tests.harness import manager as managers
    from tests.harness.tools import require

    require(managers.missing())
    with PrivateManager() as manager, Queue(manager) as running:
        yield running


@pytest.fixture
def queue(module_queue: Queue) -> Iterator[Queue]:
    """Give the queue of all tests here, with nothing in it."""
    yield module_queue
    module_queue.ask("PauseLane", "sb", "cpu", "false")
    if any(any((module_queue.spool / state).iterdir()) for state in ("queue", "running")):
        call(module_queue, "cancel", "*")
        call(module_queue, "wait", "--all", "--timeout=30")


def call(queue: Queue, *words: str, env: dict[str, str] | None = None) -> str:
    """Call the program; what it printed, after its status."""
    done = queue.manager.run([*PROGRAM, *words], check=False, env=env)
    return f"{done.returncode} {done.stdout}{done.stderr}"


def by_hand(queue: Queue, name: str) -> list[tuple[str, object]]:
    """Say what the log has of people's doing to a job, and by whom."""
    words = ("parked", "released", "moved", "removed", "canceled")
    return [(e["event"], e["by"]) for e in queue.events(name) if e["event"] in words]


UID = os.getuid()


def test_a_waiting_job_is_parked_released_and_removed_each_once_in_the_log(queue: Queue) -> None:
    call(queue, "pause", "cpu")
    queue.put("1-cpu-a", "true")
    queue.wait_reason("1-cpu-a", "paused")
    assert call(queue, "park", "1-cpu-*") == "0 1-cpu-a: set aside: its file is in parked/ now\n"
    eventually(lambda: by_hand(queue, "1-cpu-a") == [("parked", UID)], "the event")
    assert call(queue, "release", "1-cpu-a") == "0 1-cpu-a: back in the queue\n"
    queue.wait_reason("1-cpu-a", "paused")
    assert call(queue, "remove", "1-cpu-a").startswith("0 ")
    wanted = [("parked", UID), ("released", UID), ("removed", UID)]
    eventually(lambda: by_hand(queue, "1-cpu-a") == wanted, "all three events")


def test_a_parked_job_does_not_run_and_a_released_one_does(queue: Queue) -> None:
    call(queue, "pause", "cpu")
    queue.put("1-cpu-b", "true")
    queue.wait_reason("1-cpu-b", "paused")
    call(queue, "park", "1-cpu-b")
    call(queue, "resume", "cpu")
    queue.put("2-cpu-b", "true")
    queue.wait("2-cpu-b", "done")
    assert queue.state("1-cpu-b") == "parked"
    call(queue, "release", "1-cpu-b")
    queue.wait("1-cpu-b", "done")
    assert queue.words("1-cpu-b") == ["parked", "released", "start", "done"]


def test_a_running_job_is_left_alone_by_all_of_them(queue: Queue) -> None:
    queue.put("1-cpu-r", "sleep 1000")
    unit = queue.wait_running("1-cpu-r")
    for verb in ("park", "release", "retry", "remove"):
        assert call(queue, verb, "1-cpu-r").startswith("1 sdqueue: 1-cpu-r: it runs"), verb
    assert call(queue, "move", "1-cpu-r", "--first").startswith("1 ")
    assert queue.manager.show(unit, "ActiveState") == "activating"
    assert queue.words("1-cpu-r") == ["start"]


def test_retry_gives_a_failed_job_all_its_attempts_again(queue: Queue) -> None:
    queue.put("1-cpu-f", "exit 1", "RETRIES: 2")
    queue.wait("1-cpu-f", "failed")
    assert call(queue, "retry", "1-cpu-f").startswith("0 ")
    eventually(lambda: queue.words("1-cpu-f").count("failed") == 2, "it to fail again")
    attempts = ["start", "retry", "start", "failed"]
    assert queue.words("1-cpu-f") == [*attempts, "released", *attempts]


def test_retry_of_a_job_in_its_delay_starts_it_now(queue: Queue) -> None:
    queue.put("1-cpu-d", 'test "$SDQUEUE_ATTEMPT" = 1 && exit 1', "RETRY_DELAY: 1h", "RETRIES: 2")
    queue.wait_reason("1-cpu-d", "retry-delay")
    assert call(queue, "retry", "1-cpu-d").startswith("0 ")
    eventually(lambda: queue.words("1-cpu-d").count("start") == 2, "another start")
    again = queue.events("1-cpu-d", event="start")[1]
    assert again["attempt"] == 1
    call(queue, "cancel", "1-cpu-d")


def test_retry_of_a_job_before_its_time_starts_it_now(queue: Queue) -> None:
    queue.put("1-cpu-n", "true", "NOT_BEFORE: +1h")
    queue.wait_reason("1-cpu-n", "not-before")
    assert call(queue, "retry", "1-cpu-n").startswith("0 ")
    queue.wait("1-cpu-n", "done")


def test_move_changes_the_order_and_the_lane_and_is_logged(queue: Queue) -> None:
    call(queue, "pause", "cpu")
    for name in ("1-cpu-m", "2-cpu-m", "3-cpu-m"):
        queue.put(name, "true")
    queue.wait_reason("3-cpu-m", "earlier-job")
    assert call(queue, "move", "3-cpu-m", "--first").startswith("0 ")
    queue.wait_reason("3-cpu-m", "paused")
    assert call(queue, "move", "1-cpu-m", "--lane", "net") == "0 1-cpu-m: LANE is net now\n"
    queue.wait("1-cpu-m", "done")
    call(queue, "resume", "cpu")
    queue.wait("2-cpu-m", "done")
    starts = [e["job"] for e in queue.events(event="start") if str(e["job"]).endswith("-m")]
    assert starts == ["1-cpu-m", "3-cpu-m", "2-cpu-m"]
    (moved,) = queue.events("1-cpu-m", event="moved")
    assert (moved["from"], moved["lane"], moved["by"]) == ("cpu", "net", UID)


def test_an_edit_of_a_running_job_counts_from_its_next_attempt(queue: Queue) -> None:
    go = queue.manager.home / "go"
    queue.put("1-cpu-e", f"until [ -e {go} ]; do sleep 0.05; done; exit 1", "RETRIES: 2")
    queue.wait_running("1-cpu-e")
    editor = queue.manager.home / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/^until.*/exit 0/" "$1"\n')
    editor.chmod(0o755)
    done = call(queue, "edit", "1-cpu-e", env={"EDITOR": str(editor)})
    assert done == "0 1-cpu-e: changed; it counts from the next attempt\n"
    go.touch()
    queue.wait("1-cpu-e", "done")
    assert queue.words("1-cpu-e") == ["start", "retry", "start", "done"]


def test_an_edit_of_a_waiting_job_counts_at_once(queue: Queue) -> None:
    queue.put("1-cpu-w", "true", "REQUIRES: false")
    queue.wait_reason("1-cpu-w", "requires-false")
    editor = queue.manager.home / "editor2"
    editor.write_text('#!/bin/sh\nsed -i /REQUIRES/d "$1"\n')
    editor.chmod(0o755)
    assert call(queue, "edit", "1-cpu-w", env={"EDITOR": str(editor)}).startswith("0 ")
    queue.wait("1-cpu-w", "done")


def test_a_parked_predecessor_keeps_its_successor_waiting(queue: Queue) -> None:
    call(queue, "pause", "cpu")
    queue.put("1-cpu-p", "true")
    queue.put("2-cpu-p", "true", "AFTER: 1-cpu-p")
    queue.wait_reason("2-cpu-p", "after-not-done")
    call(queue, "park", "1-cpu-p")
    call(queue, "resume", "cpu")
    eventually(lambda: by_hand(queue, "1-cpu-p") == [("parked", UID)], "the event")
    queue.wait_reason("2-cpu-p", "after-not-done")
    assert "parked" in queue.ask("ListJobs", "as", "1", "2-cpu-p")[0]["reason"]["detail"]
    call(queue, "release", "1-cpu-p")
    queue.wait("2-cpu-p", "done")


def test_verbs_that_race_with_starts_either_win_or_say_so_and_nothing_is_lost(
    queue: Queue,
) -> None:
    """20 short jobs go through the lane while four hands pull at them."""
    names = [f"{n}-cpu-race" for n in range(20)]
    verbs = [["park"], ["move", "--priority", "3"], ["retry", "--state=queued"], ["release"]]
    stop = threading.Event()
    said: list[str] = []

    def pull(verb: list[str]) -> None:
        while not stop.is_set():
            said.append(call(queue, verb[0], "*-cpu-race", *verb[1:], "--json=short"))

    hands = [threading.Thread(target=pull, args=(verb,)) for verb in verbs]
    for name in names:
        queue.put(name, "true")
    for hand in hands:
        hand.start()
    try:
        eventually(lambda: sum(queue.state(name) == "done" for name in names) > 8, "many to end")
    finally:
        stop.set()
        for hand in hands:
            hand.join()
    call(queue, "release", "*-cpu-race")
    for name in names:
        queue.wait(name, "done")
        assert queue.words(name).count("start") == 1, name
        assert "removed" not in queue.words(name), "a move is no removal"
    answers = [text[2:].split("\n")[0] for text in said if text[2:3] == "["]
    effects = [row for answer in answers for row in json.loads(answer)]
    assert any(row["effect"] for row in effects)
