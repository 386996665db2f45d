"""Reported shapes, whole, as a person would lint them: files in, verdict out, on a plain Debian 12.

`expected.json` is what systemd 252 did in 100 runs on a smaller box; odds hang on how much else is
started, so only their order of magnitude is compared here. tests/oracle compares them closely.
"""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from sdqueue.cli.lint_world import Wish, World, look
from sdqueue.lint.finding import Finding
from sdqueue.lint.judge import judge

CASES = sorted(path.parent for path in (Path(__file__).parent / "lint").glob("*/case.json"))
CYCLES = frozenset({"ordering-cycle", "fatal-cycle", "shutdown-cycle", "latent-cycle"})
FIXES_TRIED = 2
Linted = tuple[World, list[Finding], Path]
OTHERWISE = {
    "01-after-multiuser-alone": {"after-default-target"},
    "05-cloud-final-defused": {"after-default-target"},
    "29-after-default-target-multiuser": {"after-default-target"},
    "30-after-graphical-on-server": {"latent-cycle"},
    "31-conflicts-both-enabled": {"enabled-conflict"},
    "32-conflicts-mutual": {"enabled-conflict"},
    "33-requisite-plus-conflicts": {"requirement-without-ordering", "enabled-conflict"},
    "34-requires-missing-unit": {"requires-missing"},
    "35-wants-missing-and-masked": {"requires-missing"},
    "42-partof-no-default-order": {"after-default-target"},
    "43-default-dependencies-no-on-member": {"after-default-target", "no-shutdown-ordering"},
    "52-stop-side-socket-user": {"shutdown-cycle", "early-socket-after-late-service"},
}
"""What is found where no cycle of the boot is: all of it."""


@pytest.fixture(scope="module")
def linted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Linted]:
    """Lint a case, once; its files lie in the third of the three."""

    @cache
    def once(case: Path) -> Linted:
        folder = tmp_path_factory.mktemp("case")
        return *lint(case, folder), folder

    return once


def lint(case: Path, tmp_path: Path, base: str = "debian-12") -> tuple[World, list[Finding]]:
    wanted = json.loads((case / "case.json").read_text())
    units = tmp_path / "units"
    shutil.copytree(case / "units", units, symlinks=True)
    missing = (
        pair for pair in wanted.get("links", {}).items() if not (units / pair[0]).is_symlink()
    )
    for link, to in missing:
        (units / link).parent.mkdir(exist_ok=True)
        (units / link).symlink_to(to)
    wish = Wish(
        paths=(str(units),),
        enable=tuple(wanted.get("enable", ())),
        mask=tuple(wanted.get("mask", ())),
        target=wanted["default"],
        base=base,
    )
    world = look(wish)
    return world, judge(world.situation)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_on_a_reported_shape(case: Path, linted: Callable[[Path], Linted]) -> None:
    expected = json.loads((case / "expected.json").read_text())
    _, found, _ = linted(case)
    rules = {one.rule for one in found}
    if case.name in OTHERWISE:
        assert rules == OTHERWISE[case.name]
        return
    fatal = expected["unbreakable"] == 1.0
    assert rules & CYCLES >= {"fatal-cycle" if fatal else "ordering-cycle"}
    lost = {job.job.rpartition("/")[0]: job.p_lost for one in found for job in one.lost}
    for job, share in expected["deleted"].items():
        if share >= 0.3:
            assert lost.get(job.rpartition("/")[0], 0.0) >= share / 5, job


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_cycle_is_closed_and_every_edge_has_an_origin(
    case: Path, linted: Callable[[Path], Linted]
) -> None:
    world, found, _ = linted(case)
    graph = world.situation.graph
    for one in found:
        for edge, after in zip(one.cycle, [*one.cycle[1:], *one.cycle[:1]], strict=True):
            assert edge.other == after.unit
            assert graph.has(edge.unit, "After", edge.other)
            assert bool(edge.file) or edge.origin in ("default", "implicit")
        assert bool(one.cycle) == (one.rule in CYCLES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fix_that_is_said_to_break_a_cycle_alone_does(
    case: Path, linted: Callable[[Path], Linted], tmp_path: Path
) -> None:
    """Remove the lines that are named, lint again, and the finding is gone."""
    _, found, folder = linted(case)
    cycles = [one for one in found if one.rule in ("ordering-cycle", "fatal-cycle")]
    fixes = [fix for one in cycles for fix in one.fixes if fix.breaks == "alone"]
    removals = [fix for fix in fixes if fix.text.startswith("remove ")]
    for number, fix in enumerate(removals[:FIXES_TRIED]):
        copy = tmp_path / f"mended-{number}"
        shutil.copytree(folder / "units", copy / "units", symlinks=True)
        shutil.copy(case / "case.json", copy / "case.json")
        _remove(copy / "units" / Path(fix.file).relative_to(folder / "units"), fix.line, fix.text)
        _, after = lint(copy, tmp_path / f"again-{number}")
        assert len(cycles) > 1 or not {one.rule for one in after} & {
            "ordering-cycle",
            "fatal-cycle",
        }


def _remove(file: Path, line: int, text: str) -> None:
    name = text.removeprefix("remove ").partition("=")[2]
    lines = file.read_text().splitlines()
    key, _, value = lines[line - 1].partition("=")
    kept = [word for word in value.split() if word != name]
    assert len(kept) < len(value.split()), (text, lines[line - 1])
    lines[line - 1] = f"{key}={' '.join(kept)}"
    file.write_text("\n".join(lines) + "\n")
