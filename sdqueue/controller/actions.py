"""Doing what the core wants done: one coroutine for each kind of action, joined by `ACTIONS`.

The order of writing is what a crash at any instant depends on:

    start   run directory → file to running/ (durable) → StartTransientUnit → Claimed, Started
    end     run.json (durable) → memory (durable) → file out of running/ (durable) → Settled

Killed between any two of these, the next controller's reconciliation reaches the same end.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from sdqueue.controller import checking, ending, lending, starting
from sdqueue.controller.runner import Runner
from sdqueue.core import actions as act


def do(runner: Runner, action: act.Action) -> Coroutine[object, object, None]:
    """Give the coroutine that does one action to its end; from now on the runner is busy."""
    if isinstance(action, act.Start):
        runner.starting.add(action.name)
    if isinstance(action, act.Grant):
        runner.leases.granting.add(action.lease.backing_unit)
    return ACTIONS[type(action)](runner, action)


async def relook(runner: Runner, action: act.Relook) -> None:
    """Look at a name in queue/ again."""
    runner.relook(action.name)


async def hook(runner: Runner, action: act.Hook) -> None:
    """Start a unit because a job has ended."""
    await runner.hooks.start(runner.systemd, action)


async def look(runner: Runner, action: act.Look) -> None:
    """Look who uses a lane without being ours."""
    if lane := runner.state.lanes.get(action.lane):
        await runner.owners.look(lane.lane)


async def keep_awake(runner: Runner, action: act.KeepAwake) -> None:
    """Keep the box from sleep, or no more."""
    await runner.inhibitor.set(awake=action.awake)


ACTIONS: dict[type, Callable[[Runner, Any], Coroutine[object, object, None]]] = {
    act.Start: starting.start,
    act.Check: checking.check,
    act.Measure: checking.measure,
    act.Verify: checking.verify,
    act.Settle: ending.settle,
    act.Skip: ending.skip,
    act.Park: ending.park,
    act.StopUnit: ending.stop_unit,
    act.Relook: relook,
    act.Hook: hook,
    act.Look: look,
    act.KeepAwake: keep_awake,
    act.Grant: lending.grant,
    act.Deny: lending.deny,
}
