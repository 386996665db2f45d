"""Descriptors that hold leases, between the one who gives and the one who asked."""

import asyncio
import os

from sdqueue.controller.leases import give_up, open_process
from sdqueue.controller.offering import row
from sdqueue.owners.box import look_at


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_a_descriptor_that_comes_when_nobody_wants_it_any_more_is_closed() -> None:
    async def scene() -> None:
        reader, writer = os.pipe()
        acquiring = asyncio.get_running_loop().create_future()
        acquiring.set_result(writer)
        give_up(acquiring)
        await asyncio.sleep(0)
        assert not is_open(writer)
        os.close(reader)

    asyncio.run(scene())


def test_what_has_not_come_or_failed_is_given_up_without_a_word() -> None:
    async def scene() -> None:
        waiting, failed = (asyncio.get_running_loop().create_future() for _ in range(2))
        failed.set_exception(OSError("no"))
        give_up(waiting)
        give_up(failed)
        await asyncio.sleep(0)
        assert waiting.cancelled()

    asyncio.run(scene())


def test_a_process_is_opened_only_as_the_one_that_was_meant() -> None:
    us = look_at(os.getpid())
    assert us
    pidfd = open_process(us.pid, us.started)
    assert pidfd is not None
    os.close(pidfd)
    assert open_process(us.pid, us.started + 1) is None
    assert open_process(0, 0) is None


def test_a_number_that_d_bus_has_no_room_for_is_told_as_the_largest_it_has() -> None:
    told = row({"parked_bytes": 2**64 - 1, "least": -(2**70), "flag": True})
    assert {name: each.value for name, each in told.items()} == {
        "parked_bytes": 2**63 - 1,
        "least": -(2**63),
        "flag": True,
    }
    assert told["flag"].signature == "b"
