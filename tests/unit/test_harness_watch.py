"""The harness itself: what `run_async` and the leftovers check catch."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Coroutine

import pytest

from tests.harness.leftovers import no_child_left, no_file_left_open
from tests.harness.loop import run_watched
from tests.harness.waiting import eventually


async def returns() -> int:
    await asyncio.sleep(0)
    return 7


async def sleeps_in_the_loop() -> None:
    time.sleep(0)


async def runs_a_program_in_the_loop() -> None:
    subprocess.run(["true"], check=True)


async def waits_in_a_thread() -> None:
    await asyncio.to_thread(time.sleep, 0.01)


async def runs_a_program_properly() -> None:
    program = await asyncio.create_subprocess_exec("true")
    assert await program.wait() == 0


async def leaves_a_task() -> None:
    asyncio.get_running_loop().create_task(asyncio.Event().wait(), name="the forgotten one")


async def loses_an_error() -> None:
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0)


async def never_ends() -> None:
    await asyncio.Event().wait()


def test_a_result_comes_back() -> None:
    assert run_watched(returns()) == 7


@pytest.mark.parametrize("good", [runs_a_program_properly, waits_in_a_thread])
def test_waiting_properly_is_fine(good: Callable[[], Coroutine[None, None, None]]) -> None:
    run_watched(good())


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (sleeps_in_the_loop, "time.sleep in the loop"),
        (runs_a_program_in_the_loop, "subprocess.Popen in the loop"),
        (leaves_a_task, "the forgotten one"),
        (loses_an_error, "division by zero"),
    ],
)
def test_it_fails_for(bad: Callable[[], Coroutine[None, None, None]], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        run_watched(bad())


def test_a_blocking_read_in_the_loop_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.harness.loop.BLOCKED_SEC", 0.1)

    async def blocks() -> None:
        with subprocess.Popen(["sleep", "0.3"], stdout=subprocess.PIPE) as program:
            assert program.stdout is not None
            program.stdout.read()

    with pytest.raises(AssertionError, match="the loop was blocked by"):
        run_watched(blocks())


def test_a_coroutine_that_never_ends_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        run_watched(never_ends(), limit_sec=0.01)


def test_a_child_that_is_left_is_named() -> None:
    program = None
    try:
        with pytest.raises(AssertionError, match="sleep infinity"), no_child_left():
            program = subprocess.Popen(["sleep", "infinity"])
    finally:
        if program:
            program.kill()
            program.wait()


def test_an_open_file_that_is_left_is_named() -> None:
    with pytest.raises(AssertionError, match="/dev/null"), no_file_left_open():
        fd = os.open("/dev/null", os.O_RDONLY)
    os.close(fd)


def test_eventually_shows_what_was_not_yet_so() -> None:
    def never() -> bool:
        raise AssertionError("still raining")

    with pytest.raises(AssertionError, match="sunshine") as caught:
        eventually(never, "sunshine", limit_sec=0)
    assert "still raining" in str(caught.value.__cause__)
