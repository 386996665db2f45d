"""Putting a controller together and running it: what `sdqueue daemon` does."""

import asyncio
import os
import signal
from collections.abc import Mapping
from functools import partial

from sdqueue.bus.address import system_bus_address, user_bus_address
from sdqueue.config_files import read_config
from sdqueue.controller.controller import Controller, Options
from sdqueue.controller.journal import Journal
from sdqueue.controller.places import Places
from sdqueue.controller.reloading import DEFAULTS, SOURCE, trouble_in
from sdqueue.core.events import Noticed
from sdqueue.spool.eventlog import Clock, EventLog
from sdqueue.spool.layout import Spool, default_root, lock, open_spool
from sdqueue.words.errors import SdqueueError


def run(*, system: bool, environ: Mapping[str, str] = os.environ) -> int:
    """Run the controller until SIGTERM; raise SdqueueError where it can't begin."""
    options = _options(environ, system=system)
    spool = open_spool(Spool(default_root(dict(environ), system=system), system=system))
    held = lock(spool)
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # see moves.is_being_written
    try:
        asyncio.run(_run(options, spool, environ))
    except ExceptionGroup as group:
        raise _first_of_ours(group) from None
    finally:
        held.close()
    return 0


def _first_of_ours(group: ExceptionGroup) -> Exception:
    """Pick what a person should read: our own error if there is one, else all of them."""
    ours, _ = group.split(SdqueueError)
    while ours is not None:
        first = ours.exceptions[0]
        if not isinstance(first, ExceptionGroup):
            return first
        ours = first
    return group


def _options(environ: Mapping[str, str], *, system: bool) -> Options:
    if system:
        return Options(
            address=system_bus_address(environ),
            system=True,
            runtime_unit_dir="/run/systemd/system",
        )
    runtime_dir = environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    return Options(
        address=user_bus_address(environ),
        system=False,
        runtime_unit_dir=f"{runtime_dir}/systemd/user",
    )


async def _run(options: Options, spool: Spool, environ: Mapping[str, str]) -> None:
    read = partial(read_config, environ, system=options.system)
    config, problems = read()
    what = trouble_in(problems)
    clock = Clock()
    places = Places(spool, config.lanes)
    places.boot = clock.boot_id()
    events = EventLog(spool, clock=clock, max_bytes=config.log_max_bytes)
    controller = Controller(options, config, places, Journal(events), read)
    controller.post(Noticed(SOURCE, what and f"{what}; {DEFAULTS}", is_error=True))
    try:
        await controller.run()
    finally:
        events.close()
