"""wanted-by-unreached: enabled into a target that doesn't exist or that boot never reaches."""

from collections.abc import Iterator
from difflib import get_close_matches

from sdqueue.lint.finding import Finding
from sdqueue.lint.rule import Rule
from sdqueue.lint.situation import Situation
from sdqueue.lint.targets import is_of_boot
from sdqueue.unitfile.install import LISTS
from sdqueue.unitfile.unit import Place, Unit

ON_DEMAND = frozenset({"network-online.target"})
"""Wanted by those that wait, so that what makes it true is started only for them."""
KEYS = {key: since for key, since in LISTS.items() if key != "Alias"}
"""The lists that make a link to another unit, and since when."""


def check(situation: Situation) -> Iterator[Finding]:
    for unit in situation.units():
        if not _enabled(situation, unit):
            continue
        for key, since in KEYS.items():
            for name, place in unit.strv("Install", key):
                if not situation.is_new_file(place.file):
                    continue
                if situation.version < since:
                    text = f"{key}= is known from systemd {since} on and does nothing here"
                    yield RULE.at(place, unit.name, text, severity="warning")
                elif "%" not in name:
                    yield from _target(situation, unit, key, name, place)


def _enabled(situation: Situation, unit: Unit) -> bool:
    template = f"{unit.name.partition('@')[0]}@.{unit.type}" if "@" in unit.name else ""
    return not situation.enabled.isdisjoint({*unit.names, template})


def _target(
    situation: Situation, unit: Unit, key: str, name: str, place: Place
) -> Iterator[Finding]:
    if name not in situation.names and name.endswith(".target"):
        near = "default.target" if situation.user else _near(situation, name)
        fix = f"write {key}={near}" if near else "name a target that exists"
        yield RULE.at(place, unit.name, f"{key}={name}: there is no such target", fix=fix)
    elif is_of_boot(name) and name not in ON_DEMAND and not situation.reached(name):
        text = f"{key}={name}: boot never reaches it, so {unit.name} will not be started"
        yield RULE.at(place, unit.name, text, severity="warning")


def _near(situation: Situation, name: str) -> str:
    targets = sorted(one for one in situation.names if one.endswith(".target"))
    return next(iter(get_close_matches(name, targets, 1)), "")


RULE = Rule(
    "wanted-by-unreached",
    "error",
    does="""\
Finds WantedBy=, RequiredBy= and UpheldBy= of enabled units on a target that doesn't exist (an
error), or that the default target doesn't lead to (a warning).""",
    why="""\
systemctl enable makes the link all the same, with a hint at most. The unit then looks enabled and
is never started. User managers have no multi-user.target; theirs is default.target.""",
    example="""\
[Install]
WantedBy=multiuser.target""",
    instead="""\
[Install]
WantedBy=multi-user.target""",
    source="systemd/systemd#2690, kardianos/service#415, dennis-tra/punchr#45",
    check=check,
)
