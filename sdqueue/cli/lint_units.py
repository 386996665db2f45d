"""sdqueue lint-units: prove, before deploy, that unit files will be started at boot."""

import gc
import os
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from sdqueue.cli.lint_world import Wish, World, look
from sdqueue.lint.finding import SEVERITIES, Finding, at_least
from sdqueue.lint.formats import FORMATS, render, text
from sdqueue.lint.judge import judge
from sdqueue.lint.report import Report
from sdqueue.lint.rule import Rule, explain
from sdqueue.lint.rules import BY_NAME, RULES
from sdqueue.unitbase import BASES
from sdqueue.words.errors import UsageError

CLEAN, FINDINGS, COULD_NOT_LOOK = 0, 1, 2
EXIT_STATUS: dict[int, str] = {
    CLEAN: "no finding as bad as --fail-on",
    FINDINGS: "findings at or above --fail-on",
    COULD_NOT_LOOK: "nothing could be looked at, or the command line is wrong",
}


_MANY: dict[str, Any] = {"action": "append", "default": []}
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "--enable": (
        "enable this unit, one of the box's or of the files, an instance too; repeatable "
        "(default: each of the files that has an [Install] section)",
        {**_MANY, "metavar": "NAME"},
    ),
    "--mask": ("mask this unit; repeatable", {**_MANY, "metavar": "NAME"}),
    "--default-target": (
        "boot into this target (default: the box's default.target)",
        {"default": "", "metavar": "TARGET"},
    ),
    "--root": ("the box is the tree in DIR, not this one", {"default": "", "metavar": "DIR"}),
    "--base": (
        "the box is a plain one whose facts are built in, such as debian-12",
        {"default": "", "metavar": "NAME"},
    ),
    "--generators": (
        "a directory with generator, generator.early and generator.late, to look at instead of "
        "those in /run/systemd",
        {"metavar": "DIR"},
    ),
    "--systemd-version": (
        "the version whose rules count (default: the box's)",
        {"type": int, "metavar": "N"},
    ),
    "--all": (
        "report what is wrong with everything that boot starts, not only what the files bring",
        {"action": "store_true"},
    ),
    "--ignore": ("leave this rule out; repeatable", {**_MANY, "metavar": "RULE"}),
    "--fail-on": (
        "how bad a finding must be to make the exit status 1 (default: error)",
        {"default": "error", "choices": SEVERITIES},
    ),
    "--format": (
        "how to print the report (default: text)",
        {"default": "", "choices": tuple(FORMATS)},
    ),
    "--color": (
        "whether text has colours (default: on a terminal)",
        {"default": "auto", "choices": ("auto", "always", "never")},
    ),
    "--seed": (
        "simulate another series of boots (default: 1)",
        {"type": int, "default": 1, "metavar": "N"},
    ),
    "--explain": ("explain a rule, or with the word all each of them", {"metavar": "RULE"}),
}
"""Every option of the verb: what the help and the manual say, and how argparse takes it."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add what only this verb understands; it looks at system units unless --user is given."""
    parser.set_defaults(system=True)
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        help="unit files, or directories like /etc/systemd/system",
    )
    for name, (help_, how) in OPTIONS.items():
        add(name, help=help_, **how)


def run(args: Namespace) -> int:
    """Look, judge, print; the exit status is of EXIT_STATUS."""
    if args.explain:
        return _explain(args.explain)
    for name in args.ignore:
        _known(name)
    # Nothing is garbage before the end, and looking for it costs more the more units there are.
    gc.disable()
    world = look(_wish(args))
    if not world.looked:
        for problem in world.problems:
            print(f"sdqueue: {problem}", file=sys.stderr)
        return COULD_NOT_LOOK
    found = judge(world.situation, ignore=args.ignore)
    report = _report(world, found)
    _print(report, args)
    return FINDINGS if any(at_least(one.severity, args.fail_on) for one in found) else CLEAN


def _wish(args: Namespace) -> Wish:
    return Wish(
        paths=tuple(_side(path, "system" if args.system else "user") for path in args.paths),
        enable=tuple(args.enable),
        mask=tuple(args.mask),
        root=args.root,
        base=args.base,
        generators=args.generators,
        user=not args.system,
        version=args.systemd_version,
        target=args.default_target,
        everything=args.all,
        seed=args.seed,
    )


def _side(path: str, side: str) -> str:
    """Of a directory with units of both managers, such as /etc/systemd, take the side meant."""
    below = os.path.join(path, side)
    return below if os.path.isdir(below) else path


def _report(world: World, found: list[Finding]) -> Report:
    report = Report(
        tuple(found),
        world.version,
        world.base,
        world.unknown,
        len(world.situation.new_files or ()),
        world.situation.graph,
    )
    return report.placed(_shown)


def _shown(file: str) -> str:
    """A path as short as it can be from here; that of a named base without its first slash."""
    if not file.startswith("/"):
        return file
    if file.split("/")[1].removesuffix(":") in BASES:
        return file[1:]
    here = os.path.relpath(file)
    return here if len(here) < len(file) and not here.startswith("../..") else file


def _print(report: Report, args: Namespace) -> None:
    name = args.format or ("json" if getattr(args, "json", "off") != "off" else "text")
    if name == "text":
        colour = args.color == "always" or (args.color == "auto" and sys.stdout.isatty())
        out = text.render(report, colour=colour and "NO_COLOR" not in os.environ)
    else:
        out = render(name, report)
    sys.stdout.flush()
    sys.stdout.buffer.write(out.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def _explain(name: str) -> int:
    rules = RULES if name == "all" else (_known(name),)
    print("\n".join(explain(rule) for rule in rules), end="")
    return CLEAN


def _known(name: str) -> Rule:
    rule = BY_NAME.get(name)
    if rule is None:
        raise UsageError(f"there is no rule {name}. The rules: {', '.join(BY_NAME)}.")
    return rule


def main() -> int:
    """Run as a program of its own: python -m sdqueue.cli.lint_units."""
    parser = ArgumentParser(prog="sdqueue lint-units")
    parser.add_argument("--user", dest="system", action="store_false")
    add_arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
