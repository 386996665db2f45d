"""Lint what is about to be installed, on the box it is for, and say whether it may be."""

import os
import tempfile
from collections.abc import Mapping, Sequence

from sdqueue import generator
from sdqueue.cli.lint_world import Wish, World, look
from sdqueue.cli.shipped import Put, Target
from sdqueue.lint.finding import Finding, at_least
from sdqueue.lint.formats import text
from sdqueue.lint.judge import judge
from sdqueue.lint.report import Report

BASE_WITHOUT_A_BOX = "debian-13"
CYCLES = frozenset({"ordering-cycle", "fatal-cycle"})
"""Rules that count whatever files they are about: in such a boot nothing is sure to be started."""


def prove(target: Target, puts: Sequence[Put], environ: Mapping[str, str]) -> str:
    """Return the findings that stand against the installation, as text; "" where none does."""
    return "".join(_of_side(target, puts, environ, side) for side in target.sides[:1])


def _of_side(target: Target, puts: Sequence[Put], environ: Mapping[str, str], side: str) -> str:
    with tempfile.TemporaryDirectory(prefix="sdqueue-install-") as stage:
        _stage(stage, target, puts, environ, side)
        root, base = _box(target.root)
        wish = Wish(paths=(stage,), root=root, base=base, user=side == "user", everything=True)
        world = look(wish)
        found = [each for each in judge(world.situation) if _stands_against(each, stage)]
        return _told(world, found, f"{stage}/", target.unit_dir(side)) if found else ""


def _stage(
    stage: str, target: Target, puts: Sequence[Put], environ: Mapping[str, str], side: str
) -> None:
    """Put the units and what the generator will make of the configuration into one directory."""
    directory = f"{target.unit_dir(side)}/"
    for put in puts:
        if put.file.startswith(directory):
            place = f"{stage}/{put.file.removeprefix(directory)}"
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(put.data)
    made = generator.units(
        environ, system=side == "system", program=target.program, messages=[], root=target.root
    )
    generator.write(stage, made)


def _box(root: str) -> tuple[str, str]:
    """Say what box that is: this one, that root, or where the root is no system yet a plain one."""
    if not root:
        return "", ""
    has_systemd = any(
        os.path.isdir(f"{root}{each}/systemd/system") for each in ("/usr/lib", "/lib")
    )
    whole = has_systemd and os.path.exists(f"{root}/usr/lib/systemd/system/default.target")
    return (root, "") if whole else ("", BASE_WITHOUT_A_BOX)


def _stands_against(finding: Finding, stage: str) -> bool:
    if not at_least(finding.severity, "error"):
        return False
    ours = finding.file.startswith(f"{stage}/") or finding.unit.startswith("sdqueue")
    return ours or finding.rule in CYCLES


def _told(world: World, found: Sequence[Finding], stage: str, directory: str) -> str:
    report = Report(tuple(found), world.version, world.base, (), 0, world.situation.graph)
    placed = report.placed(lambda file: file.replace(stage, f"{directory}/"))
    return text.render(placed, colour=False)
