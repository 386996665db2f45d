"""The controller killed at some of its durable system calls; tests/soak/crash_matrix.py has all.

strace injects the kill: there is no hook in the code. The end must be that of an undisturbed run.
"""

import pytest

from tests.bus.crash_scenario import Round, injected
from tests.harness.manager import PrivateManager
from tests.harness.tools import needs

pytestmark = needs("strace")

POINTS = (
    *(("rename", number) for number in (6, 21)),
    *(("fsync", number) for number in (12, 40)),
    ("mkdir", 9),
    ("unlink", 2),
    ("write", 30),
    ("sendto", 25),
)


def test_the_scenario_comes_to_its_end_undisturbed(shared_manager: PrivateManager) -> None:
    played = Round(shared_manager)
    played.play()
    assert played.faults() == []


@pytest.mark.parametrize(("call", "number"), POINTS)
def test_a_controller_that_is_killed_there_loses_doubles_and_spends_nothing(
    shared_manager: PrivateManager, call: str, number: int
) -> None:
    played = Round(shared_manager)
    played.play(injected(call, f"signal=SIGKILL:when={number}"))
    assert played.deaths == 1, "the scenario never made that call"
    assert played.faults() == []
