"""What the client says of systemd's manager is so: each claim is asked of a real user manager.

Every test runs with both libraries; pystemd, which shares no code with either, reads what we wrote.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from sdqueue.bus import wire
from sdqueue.bus.connection import Bus
from sdqueue.bus.systemd import Properties, UnitChanged
from sdqueue.words.errors import BusGone
from tests.bus import claims
from tests.bus.busdaemon import marshalling_by
from tests.bus.claims import Client, client_of
from tests.harness.manager import PrivateManager

RunAsync = Callable[..., Any]


@pytest.fixture(autouse=True, params=wire.LIBRARIES)
def _library(request: pytest.FixtureRequest) -> Iterator[None]:
    with marshalling_by(request.param):
        yield


@pytest.fixture(scope="session")
def prepared(shared_manager: PrivateManager) -> PrivateManager:
    """Give the shared manager with the targets that the claims need."""
    directory = shared_manager.runtime_dir / "systemd" / "user"
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in claims.TARGETS.items():
        (directory / name).write_text(text)
    shared_manager.reload()
    return shared_manager


Claim = Callable[[Client], Awaitable[None]]


@pytest.mark.parametrize("claim", claims.ALL, ids=lambda claim: claim.__name__)
def test_a_user_manager_bears_out_that(
    claim: Claim, prepared: PrivateManager, run_async: RunAsync
) -> None:
    async def main() -> None:
        async with client_of(prepared.bus_address) as client:
            await claim(client)

    run_async(main())


WRITTEN: Properties = [
    ("Description", "s", "größer als 1 €"),
    (
        "Environment",
        "as",
        ["A=1", "B=zwei Wörter", 'C="'],
    ),
    ("LogExtraFields", "aay", [b"SDQUEUE_JOB=x", b"SDQUEUE_LANE=gpu"]),
    ("TimeoutStartUSec", "t", 3_600_000_000),
    ("MemoryMax", "t", 2**64 - 2),
    ("Nice", "i", 5),
    ("UMask", "u", 0o027),
    ("IgnoreOnIsolate", "b", True),
    ("SuccessExitStatus", "(aiai)", ([75], [])),
]


def test_pystemd_reads_what_we_wrote(prepared: PrivateManager, run_async: RunAsync) -> None:
    pystemd = pytest.importorskip("pystemd", reason="pystemd is not installed")
    names = [name for name, _, _ in WRITTEN]

    def read() -> dict[str, Any]:
        bus = pystemd.dbuslib.DBusAddress(prepared.bus_address.encode())
        with bus, pystemd.systemd1.Unit(b"sdqtest-witness.service", bus=bus) as unit:
            found = {name: getattr(unit.Unit, name, None) for name in names}
            return {
                name: getattr(unit.Service, name) if value is None else value
                for name, value in found.items()
            } | {"ExecStart": unit.Service.ExecStart}

    async def main() -> None:
        async with client_of(prepared.bus_address) as it:
            job = await it.start("sdqtest-witness.service", "/bin/sleep", "infinity", more=WRITTEN)
            await it.told(UnitChanged, unit="sdqtest-witness.service")
            found = await asyncio.to_thread(read)
            for name, _, value in WRITTEN:
                assert found[name] == as_pystemd(value), name
            assert found["ExecStart"][0][:2] == (b"/bin/sleep", [b"/bin/sleep", b"infinity"])
            await it.stop("sdqtest-witness.service", job)

    run_async(main())


def as_pystemd(value: object) -> object:
    """Say a value as pystemd does: bytes for strings."""
    match value:
        case str():
            return value.encode()
        case bytes():
            return list(value)
        case list():
            return [as_pystemd(each) for each in value]
        case tuple():
            return tuple(as_pystemd(each) for each in value)
        case _:
            return value


def test_a_bus_that_dies_ends_the_client_and_a_new_one_finds_the_unit(
    manager: PrivateManager, run_async: RunAsync
) -> None:
    async def main() -> None:
        first = Client(await Bus.connect(manager.bus_address))
        await first.systemd.subscribe()
        job = await first.start("sdqtest-stays.service", "/bin/sleep", "infinity")
        await first.told(UnitChanged, unit="sdqtest-stays.service")
        await asyncio.to_thread(manager.kill_bus)
        with pytest.raises(BusGone):
            await first.bus.wait_closed()
        with pytest.raises(BusGone):
            await first.systemd.list_unit_jobs()
        await asyncio.to_thread(manager.start_bus)
        async with client_of(manager.bus_address) as second:
            (unit,) = await second.systemd.list_units(["sdqtest-stays.service"])
            assert (unit.job_id, unit.active_state) == (job.id, "activating")
            await second.stop("sdqtest-stays.service", job)

    run_async(main())
