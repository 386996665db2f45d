"""What the verbs have in common that change jobs: which jobs are meant, what was done to each.

A job's directory is its state and the controller follows the directories, so these verbs change
files, with a controller or without one: of two renames of one file one wins, and the other is told.
"""

from collections.abc import Callable, Mapping, Sequence

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import print_json
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, expand
from sdqueue.cli.safe import safe
from sdqueue.cli.say import remark
from sdqueue.cli.watching import state_of
from sdqueue.spool import moves
from sdqueue.words.errors import NoSuchJob, SdqueueError, WrongState

Effect = str | SdqueueError
Act = Callable[[Place, str, str], str]
"""Change one job of the place, which is in a state (as `DIRECTORY_OF` has it), and say what that
did; NoSuchJob if it has left that state."""

RUNS = "it runs; sdqueue cancel {name} stops it and sets it aside"


def add_jobs(parser: Parser) -> None:
    """Add the jobs that are meant."""
    parser.add_argument("jobs", metavar="JOB", nargs="+", help="names, or globs of names")


def operate(
    args: Arguments,
    act: Act,
    refusals: Mapping[str, str],
    *,
    states: Sequence[str] = (),
    backwards: bool = False,
) -> int:
    """Change the jobs that are meant, one by one, and say what that did to each.

    `refusals` are the states in which that can't be done, each with the words for it; a glob means
    only jobs in `states`, or in all others. `backwards`: the last job is changed first.
    """
    place = Place(system=args.system)
    allowed = [str(state) for state in DIRECTORY_OF if state not in refusals]
    names = _meant(place, args.jobs, states or allowed)
    if backwards:
        names.reverse()
    effects = {name: _changed(place, name, act, refusals) for name in names}
    return print_effects(effects, args.json)


def _meant(place: Place, patterns: Sequence[str], states: Sequence[str]) -> list[str]:
    """Return the names that are meant: a name in any state, a glob in `states` only."""
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            found.update(dict.fromkeys(expand(place, [pattern], states)))
        except NoSuchJob:
            others = expand(place, [pattern], DIRECTORY_OF)
            if pattern.removesuffix(".job") not in others:
                words = " or ".join(states)
                raise NoSuchJob(f"no job that is {words} fits '{safe(pattern)}'.") from None
            found.update(dict.fromkeys(others))
    return list(found)


def _changed(place: Place, name: str, act: Act, refusals: Mapping[str, str]) -> Effect:
    """Change one job; if it was elsewhere by then, say where."""
    state = state_of(place.spool, name)
    if state is None:
        return NoSuchJob(f"{name}: it is gone.")
    if state in refusals:
        return WrongState(f"{name}: {refusals[state].format(name=name)}.")
    try:
        return act(place, name, state)
    except NoSuchJob:
        return _overtaken(place, name)
    except SdqueueError as error:
        return error


def _overtaken(place: Place, name: str) -> SdqueueError:
    now = state_of(place.spool, name)
    if now == "running":
        return WrongState(f"{name}: it has just started; nothing was changed.")
    if now is None:
        return NoSuchJob(f"{name}: somebody has just removed it.")
    return WrongState(f"{name}: it is {now} now; nothing was changed.")


def move_to(place: Place, name: str, state: str, to: str) -> None:
    """Move a job's file, durably; WrongState if there is another one of its name in the way."""
    for other in {to, "queued", "running"} - {state}:
        directory = DIRECTORY_OF[other]
        if directory in moves.states_of(place.spool, name):
            raise WrongState(f"{name}: there is another file of that name in {directory}/.")
    moves.move(place.spool, name, DIRECTORY_OF[state], DIRECTORY_OF[to])


def print_effects(
    effects: Mapping[str, Effect], mode: str, words: Mapping[str, str] | None = None
) -> int:
    """Say what was done to each job; return the status of the worst that could not be done.

    `words` are what people read for an effect, where that is not its own words.
    """
    failed = [effect for effect in effects.values() if isinstance(effect, SdqueueError)]
    if mode != "off":
        print_json([_as_json(name, effect) for name, effect in effects.items()], mode)
    for name, effect in effects.items():
        if isinstance(effect, SdqueueError):
            remark(str(effect))
        elif mode == "off":
            print(f"{safe(name)}: {(words or {}).get(effect, effect)}")
    return max((error.exit_status for error in failed), default=0)


def _as_json(name: str, effect: Effect) -> dict[str, object]:
    failed = isinstance(effect, SdqueueError)
    return {
        "name": name,
        "effect": None if failed else effect,
        "error": str(effect) if failed else None,
    }
