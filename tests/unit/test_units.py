"""The units that are shipped: no finding, nothing of jobs, and a policy that fits the interface."""

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from sdqueue.cli.lint_world import Wish, look
from sdqueue.controller.offering import MANAGER, NAME
from sdqueue.controller.service import INTERFACE
from sdqueue.lint.judge import judge
from sdqueue.unitbase import BASES
from tests.harness.tools import needs

UNITS = Path(__file__).parents[2] / "units"
CHANGING = {"CancelJob", "PauseLane"}
"""Methods of the interface that change something: root's on the system bus."""


def settings(side: str) -> dict[str, str]:
    lines = (UNITS / side / "sdqueue.service").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("side", ["system", "user"])
def test_lint_has_nothing_to_say_about_them(side: str, base: str) -> None:
    world = look(Wish(paths=(str(UNITS / side),), base=base, user=side == "user"))
    assert (world.looked, world.problems) == (True, ())
    assert judge(world.situation) == []


@pytest.mark.parametrize("side", ["system", "user"])
def test_the_controller_is_ordered_after_nothing_and_touches_no_job(side: str) -> None:
    unit = settings(side)
    ordering = {"After", "Before", "Requires", "Wants", "BindsTo", "PartOf", "Conflicts"}
    assert not ordering & set(unit)
    assert "KillMode" not in unit, "jobs are in no cgroup of ours, so the default is right"
    assert unit["Type"] == "notify"
    assert unit["ExecStart"] == f"sdqueue --{side} daemon"
    assert unit["WantedBy"] == {"system": "multi-user.target", "user": "default.target"}[side]


def test_what_the_users_unit_has_the_systems_has_too() -> None:
    system, user = settings("system"), settings("user")
    ours = {"ExecStart", "WantedBy", "Description"}
    differing = {key for key, value in user.items() if system.get(key) != value}
    assert differing == ours


def test_everybody_may_look_and_only_root_may_change() -> None:
    policy = ET.parse(UNITS / "dbus-1" / "org.sdqueue1.conf").getroot()
    root, everybody = policy.findall("policy")
    assert root.attrib == {"user": "root"}
    assert everybody.attrib == {"context": "default"}
    assert [rule.get("own") for rule in policy.iter("allow") if rule.get("own")] == [NAME]
    allowed = {
        rule.get("send_member")
        for rule in everybody.findall("allow")
        if rule.get("send_interface") == MANAGER
    }
    assert None not in allowed
    assert allowed | CHANGING == {method.name for method in INTERFACE.methods}
    assert not allowed & CHANGING


@needs("systemd-analyze")
def test_systemd_finds_the_exposure_of_the_machines_controller_small() -> None:
    unit = UNITS / "system" / "sdqueue.service"
    argv = ["systemd-analyze", "--offline=true", "--threshold=30", "security", str(unit)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
