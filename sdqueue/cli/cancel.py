"""`sdqueue cancel`: waiting jobs are set aside, running ones stopped; it says which."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sdqueue.cli.operating import Effect, add_jobs, print_effects
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, expand, expand_told
from sdqueue.cli.watching import state_of
from sdqueue.spool.layout import lock
from sdqueue.spool.moves import move
from sdqueue.words.errors import AccessDenied, NoSuchJob, SdqueueError, SpoolBusy, WrongState
from sdqueue.words.names import unit_of_job

if TYPE_CHECKING:
    from sdqueue.cli.client import Client

EFFECTS = {
    "parked": "set aside: its file is in parked/ now",
    "stopping": "being stopped, and set aside then",
}
ALIVE = ("running", "queued")


def add_arguments(parser: Parser) -> None:
    """Add the options of `cancel`."""
    add_jobs(parser)


def run(args: Arguments) -> int:
    """Cancel, and say what that did; the status of the worst that could not be done."""
    place = Place(system=args.system)
    names = _meant(place, args.jobs)
    effects = _cancel_all(place, names)
    return print_effects(effects, args.json, EFFECTS)


def _meant(place: Place, patterns: Sequence[str]) -> list[str]:
    """Return the waiting and running jobs that are meant; a name of an ended one is WrongState."""
    if not place.is_readable:
        return expand_told(place, patterns)
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            found.update(dict.fromkeys(expand(place, [pattern], ALIVE)))
        except NoSuchJob:
            (ended, *_) = expand(place, [pattern], DIRECTORY_OF)
            state = state_of(place.spool, ended)
            raise WrongState(f"{ended} is {state} already; there is nothing to cancel.") from None
    return list(found)


def _cancel_all(place: Place, names: Sequence[str]) -> dict[str, Effect]:
    if place.is_readable and not place.has_controller():
        try:
            return _without_controller(place, names)
        except SpoolBusy:
            pass  # one has just started
    from sdqueue.cli.client import ask

    async def question(client: "Client") -> dict[str, Effect]:
        return {name: await _cancel(client, name) for name in names}

    return ask(place, question)


async def _cancel(client: "Client", name: str) -> Effect:
    try:
        return await client.cancel(name)
    except (NoSuchJob, WrongState, AccessDenied) as error:
        return error


def _without_controller(place: Place, names: Sequence[str]) -> dict[str, Effect]:
    """Set waiting jobs aside, with the spool held so that no controller starts in between."""
    held = lock(place.open())
    try:
        return {name: _set_aside(place, name) for name in names}
    finally:
        held.close()


def _set_aside(place: Place, name: str) -> Effect:
    if state_of(place.spool, name) == "running":
        return SdqueueError(
            f"{name} runs, and no controller does; stop it with:"
            f" systemctl {place.manager_option} stop {unit_of_job(name)}"
        )
    try:
        move(place.spool, name, "queue", "parked")
    except NoSuchJob as error:
        return error
    return "parked"
