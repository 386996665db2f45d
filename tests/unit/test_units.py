"""The units that are shipped: no finding, nothing of jobs, and a policy that fits the interface."""

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from sdqueue.bus.service import STANDARD
from sdqueue.cli.lint_world import Wish, look
from sdqueue.controller.offering import JOB, LANE, MANAGER, NAME
from sdqueue.controller.permission import ACTIONS, PREFIX
from sdqueue.lint.judge import judge
from sdqueue.unitbase import BASES
from tests.harness.tools import needs

UNITS = Path(__file__).parents[2] / "units"
REMOTE = ("allow_any", "allow_inactive")
"""Who does not sit at the box."""


def settings(side: str) -> dict[str, str]:
    lines = (UNITS / side / "sdqueue.service").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("side", ["system", "user"])
def test_lint_has_nothing_to_say_about_them(side: str, base: str) -> None:
    world = look(Wish(paths=(str(UNITS / side),), base=base, user=side == "user"))
    assert (world.looked, world.problems) == (True, ())
    assert judge(world.situation) == []


@pytest.mark.parametrize("base", BASES)
def test_lint_has_nothing_to_say_about_the_examples(base: str) -> None:
    world = look(Wish(paths=(str(UNITS / "examples"),), base=base, user=True))
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
    ours = {"ExecStart", "WantedBy", "Description", "RestrictAddressFamilies"}
    differing = {key for key, value in user.items() if system.get(key) != value}
    assert differing == ours


def test_only_root_may_have_the_name_and_everybody_may_speak_to_each_interface() -> None:
    policy = ET.parse(UNITS / "dbus-1" / "org.sdqueue1.conf").getroot()
    root, everybody = policy.findall("policy")
    assert root.attrib == {"user": "root"}
    assert everybody.attrib == {"context": "default"}
    assert [rule.get("own") for rule in policy.iter("allow") if rule.get("own")] == [NAME]
    rules = everybody.findall("*")
    assert {rule.tag for rule in rules} == {"allow"}
    assert {rule.get("send_destination") for rule in rules} == {NAME}
    ours = {rule.get("send_interface") for rule in rules}
    assert ours >= {MANAGER, LANE, JOB, *(each.name for each in STANDARD)}


def test_polkit_is_told_of_each_action_that_is_asked_for_and_of_no_other() -> None:
    policy = ET.parse(UNITS / "polkit-1" / "org.sdqueue1.policy").getroot()
    told = {action.get("id", ""): action for action in policy.findall("action")}
    assert set(told) == {PREFIX + action for action in ACTIONS}
    for name, guarded in ACTIONS.items():
        defaults = told[PREFIX + name].find("defaults")
        assert defaults is not None
        answers = {each.tag: each.text for each in defaults}
        assert answers == dict.fromkeys(REMOTE, "auth_admin") | {"allow_active": guarded.default}
        text = told[PREFIX + name].findtext("description", "")
        assert text.lower() == guarded.help


@needs("systemd-analyze")
def test_systemd_finds_the_exposure_of_the_machines_controller_small() -> None:
    unit = UNITS / "system" / "sdqueue.service"
    argv = ["systemd-analyze", "--offline=true", "--threshold=30", "security", str(unit)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
