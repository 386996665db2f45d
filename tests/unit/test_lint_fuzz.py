"""Sets of unit files that nobody would write: whatever they are, there is a report, in each format.

A slice of them; make soak plays thousands. A set that fails is known by its seed.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from sdqueue.cli.lint_world import Wish, look
from sdqueue.lint.formats import FORMATS, render
from sdqueue.lint.judge import judge
from sdqueue.lint.report import Report
from sdqueue.unitbase import BASES
from sdqueue.unitfile.directives import directives
from tests.harness.tools import SOAK

SETS = 5000 if SOAK else 25
STEMS = (
    "a", "b", "c", "d@", "d@x", "e-f", "\\x2d", "-", "multi-user", "basic", "sysinit", "shutdown",
    "srv", "srv-x", "sdqueue-lane-gpu",
)  # fmt: skip
TYPES = ("service", "socket", "target", "timer", "path", "mount", "automount", "swap", "slice")
NAMES = tuple(f"{stem}.{kind}" for stem in STEMS for kind in (*TYPES, "scope", "device"))
VALUES = (
    "", "yes", "no", "%i", "%", "%Z", "%%", '"', "a b", "/x", "-/x", "/x/../y", "~", "0", "\t",
    "999999999999999999999", "infinity", "\x00", "\udcff", "é", "; x", "/bin/true", "@/bin/x -",
    "/bin/true | x", "$(x)", "`", "\\", '/bin/sh -c "x"', "*", "oneshot", "dbus", "[Unit]", "=",
    "%n.service", "a@%i.service", "default.target", "graphical.target",
)  # fmt: skip
LISTS = (
    "After", "Before", "Requires", "Wants", "BindsTo", "Requisite", "Conflicts", "PartOf",
    "Upholds", "WantedBy", "RequiredBy", "Alias", "Also", "DefaultInstance", "OnFailure",
    "PropagatesStopTo", "JoinsNamespaceOf", "DefaultDependencies", "RequiresMountsFor", "Sockets",
    "Unit", "Service", "ExecStart", "Where", "What",
)  # fmt: skip
SECTIONS = ("Unit", "Install", "X-a", "Foo", "", *(kind.capitalize() for kind in TYPES))
ODD = (
    "garbage", "# sdqueue-lint: ignore", "; sdqueue-lint: ignore x y", "\\", "a=\\", "=x", " ",
    "# sdqueue-lint: ignore ordering-cycle why", "[",
)  # fmt: skip
KEYS = tuple(key for _, key in directives())


def lines(luck: Random) -> Iterator[str]:
    for _ in range(luck.randrange(25)):
        kind = luck.random()
        if kind < 0.15:
            yield f"[{luck.choice(SECTIONS)}]"
        elif kind < 0.2:
            yield luck.choice(ODD)
        elif kind < 0.7:
            words = (luck.choice(NAMES + VALUES) for _ in range(luck.randrange(4)))
            yield f"{luck.choice(LISTS)}={' '.join(words)}"
        else:
            yield f"{luck.choice(KEYS)}={luck.choice(VALUES + NAMES)}"


def put(luck: Random, directory: Path) -> None:
    """Put one more file, link, drop-in or entry into a directory of units; what is there stays."""
    name, kind = luck.choice(NAMES), luck.random()
    text = "\n".join(lines(luck)).encode("utf-8", "surrogateescape")
    at = directory / name
    if kind >= 0.85:
        folder = directory / f"{name}{luck.choice(('.d', '.wants', '.requires', '.upholds'))}"
        folder.mkdir(exist_ok=True)
        at = folder / luck.choice(("x.conf", "y.conf", luck.choice(NAMES)))
    if at.is_symlink() or at.exists():
        return
    if kind < 0.75 or luck.random() < 0.5:
        at.write_bytes(text)
    else:
        at.symlink_to(luck.choice((*NAMES, "/dev/null", "/nonexistent", "../x")))


@pytest.mark.parametrize("seed", range(SETS))
def test_there_is_a_report_for_any_set_of_files(seed: int, tmp_path: Path) -> None:
    luck = Random(seed)
    for _ in range(luck.randrange(1, 14)):
        put(luck, tmp_path)
    world = look(
        Wish(
            paths=(str(tmp_path),),
            base=luck.choice(tuple(BASES)),
            user=luck.random() < 0.2,
            enable=tuple(luck.choice(NAMES) for _ in range(luck.randrange(3))),
            mask=tuple(luck.choice(NAMES) for _ in range(luck.randrange(2))),
            target=luck.choice(("", "", "graphical.target", "a.target", "x")),
        )
    )
    found = tuple(judge(world.situation))
    report = Report(found, world.version, world.base, world.unknown, 0, world.situation.graph)
    assert all(0.0 <= job.p_deleted <= job.p_lost <= 1.0 for one in found for job in one.lost)
    assert all(render(name, report) or name == "github" for name in FORMATS)
