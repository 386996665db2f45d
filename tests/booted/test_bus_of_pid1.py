"""What the bus client says of systemd is so of PID 1 too, of every version."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sdqueue.bus.systemd import UnitChanged
from tests.bus import claims
from tests.bus.claims import Client, client_of
from tests.harness.container import Container

RunAsync = Callable[..., Any]
Claim = Callable[[Client], Awaitable[None]]

NARROW = "[Slice]\nConcurrencyHardMax=1\n"


@pytest.fixture(scope="module")
def address(shared_container: Container) -> str:
    """Give the address of a container's system bus, once the units that claims need are there."""
    units = shared_container.root / "etc/systemd/system"
    for name, text in {**claims.TARGETS, "sdqtest-narrow.slice": NARROW}.items():
        (units / name).write_text(text)
    shared_container.run(["systemctl", "daemon-reload"])
    return f"unix:path={shared_container.root}/run/dbus/system_bus_socket"


@pytest.mark.parametrize("claim", claims.ALL, ids=lambda claim: claim.__name__)
def test_pid_1_bears_out_that(claim: Claim, address: str, run_async: RunAsync) -> None:
    async def main() -> None:
        async with client_of(address) as client:
            await claim(client)

    run_async(main())


def test_a_full_slice_refuses_one_unit_more_as_occupied_where_systemd_counts(
    address: str, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with client_of(address) as it:
            if await it.systemd.version() < 258:
                pytest.skip("ConcurrencyHardMax= is of systemd 258")
            more = [("Slice", "s", "sdqtest-narrow.slice")]
            job = await it.start("sdqtest-n1.service", "/bin/sleep", "infinity", more=more)
            await it.told(UnitChanged, unit="sdqtest-n1.service")
            assert await it.refusal("sdqtest-n2.service", more=more) == "occupied"
            await it.stop("sdqtest-n1.service", job)
            again = await it.start("sdqtest-n2.service", "/bin/true", more=more)
            assert await it.ended(again) == "done"

    run_async(main())
