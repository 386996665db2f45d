"""doctor on a user's manager: nothing wrong once installed; each trouble named, and mended."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sdqueue.cli.doctor import CHECKS
from tests.harness.manager import PrivateManager

ENGINE = "[Unit]\nConflicts=sdqueue-lane-gpu.target\n[Service]\nExecStart=/bin/true\n"
LATE = """\
[Unit]
After=default.target
Before=sdqueue.service
[Service]
ExecStart=/bin/true
[Install]
WantedBy=default.target
"""


class Box:
    """A manager with an installed queue, and the places where things go wrong."""

    def __init__(self, manager: PrivateManager) -> None:
        self.manager = manager
        self.units = Path(manager.env["XDG_CONFIG_HOME"]) / "systemd" / "user"
        self.config = Path(manager.env["XDG_CONFIG_HOME"]) / "sdqueue"
        self.spool = Path(manager.env["XDG_STATE_HOME"]) / "sdqueue"
        for each in (self.units, self.config):
            each.mkdir(parents=True)

    def unit(self, name: str, text: str) -> None:
        (self.units / name).parent.mkdir(exist_ok=True)
        (self.units / name).write_text(text)
        self.manager.reload()

    def systemctl(self, *words: str) -> None:
        self.manager.run(["systemctl", "--user", *words])

    def problems(self) -> dict[str, str]:
        """Return the checks that found a problem, with the commands that mend it."""
        done = self.manager.run(["sdqueue", "--user", "doctor", "--json=short"], check=False)
        found = json.loads(done.stdout)
        assert {each["check"] for each in found} | {"linger", "devices"} == set(CHECKS), found
        problems = {each["check"]: each["mend"] for each in found if each["level"] == "problem"}
        assert done.returncode == (1 if problems else 0)
        # A home on a tmpfs is this machine's, and not the test's.
        return {check: mend for check, mend in problems.items() if check != "disk"}


Hurt = Callable[[Box], object]
TROUBLES: dict[str, Hurt] = {
    "controller": lambda box: box.systemctl("stop", "sdqueue.service"),
    "dropins": lambda box: box.unit(
        "sdqueue-job-.service.d/50-mine.conf", "[Service]\nNice=5\nKillMode=process\n"
    ),
    "queue": lambda box: (box.spool / "queue/x.sh").write_text("true\n"),
    "spool": lambda box: (box.spool / "queue").chmod(0o777),
}


@pytest.fixture
def box(manager: PrivateManager) -> Box:
    found = Box(manager)
    manager.run(["sdqueue", "--user", "install"])
    return found


def test_an_installed_queue_has_no_problem_and_each_trouble_is_named_and_mended(box: Box) -> None:
    assert box.problems() == {}
    for check, hurt in TROUBLES.items():
        hurt(box)
        problems = box.problems()
        assert set(problems) == {check}
        box.manager.run(["bash", "-c", problems[check]])
        assert box.problems() == {}, f"after {problems[check]}"


def test_units_of_others_that_stop_jobs_and_a_boot_that_drops_units(box: Box) -> None:
    box.unit("engine.service", ENGINE)
    assert set(box.problems()) == {"strangers"}
    box.unit("late.service", LATE)
    box.systemctl("enable", "late.service")
    assert set(box.problems()) == {"strangers", "boot"}
    said = box.manager.run(["sdqueue", "--user", "doctor"], check=False).stdout
    assert f"{box.units}/engine.service:2: starting engine.service stops whatever job" in said


def test_a_bad_configuration_is_told_with_its_line(box: Box) -> None:
    (box.config / "sdqueue.toml").write_text("\nslots = 2\n")
    said = box.manager.run(["sdqueue", "--user", "doctor"], check=False).stdout
    assert f"{box.config}/sdqueue.toml:2: error: there is no setting" in said
    assert "→ ${EDITOR:-vi} +2 " in said


def test_a_manager_without_a_queue(manager: PrivateManager) -> None:
    done = manager.run(["sdqueue", "--user", "doctor"], check=False)
    assert done.returncode == 1
    assert "→ sdqueue --user install" in done.stdout
    assert not os.path.exists(Path(manager.env["XDG_STATE_HOME"]) / "sdqueue")
