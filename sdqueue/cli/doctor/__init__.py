"""`sdqueue doctor`: what is wrong with this box and this queue, and the command that mends it."""

from sdqueue.cli.doctor import machine, store, unitfiles
from sdqueue.cli.doctor.verdict import OK, PROBLEM, Check, Patient, Verdict
from sdqueue.cli.exits import FAILED
from sdqueue.cli.exits import OK as NOTHING_WRONG
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import print_json, print_lines
from sdqueue.cli.place import Place
from sdqueue.cli.safe import safe
from sdqueue.words.errors import SdqueueError

CHECKS: dict[str, tuple[Check, str]] = {
    "systemd": (machine.systemd, "its version, and what it means for lanes"),
    "cgroups": (machine.cgroups, "the layout of the cgroup tree"),
    "controller": (machine.controller, "whether it is enabled, runs, answers and is well"),
    "rivals": (machine.rivals, "other controllers on this machine"),
    "linger": (machine.lingering, "whether a user's queue runs without a session"),
    "configuration": (store.configuration, "errors in it"),
    "lanes": (unitfiles.lanes, "the lanes' units: there, from the generator, up to date"),
    "strangers": (unitfiles.strangers, "units that stop jobs, such as by a lane in Conflicts="),
    "dropins": (unitfiles.dropins, "drop-ins of jobs that change what makes them safe"),
    "boot": (unitfiles.boot, "ordering cycles in the boot, whoever is in them"),
    "spool": (store.spool, "its owner, modes and schema"),
    "disk": (store.disk, "its file system, and the space that is left"),
    "queue": (store.strays, "what lies in queue/ and is no job"),
    "devices": (machine.devices, "whether a user's jobs can open the lanes' devices"),
    "clock": (machine.clock, "whether it can be right"),
}
"""The checks in their order: each a function, and what the manual says of it."""


def add_arguments(parser: Parser) -> None:
    """Add the options of `doctor`."""
    parser.add_argument("--all", action="store_true", help="also say what is well")


def run(args: Arguments) -> int:
    """Look at everything; the exit status is 1 if there is a problem."""
    patient = Patient(Place(system=args.system))
    found = [(name, verdict) for name in CHECKS for verdict in examine(name, patient)]
    if args.json != "off":
        rows = [{"check": name, **verdict._asdict()} for name, verdict in found]
        print_json(rows, args.json)
    else:
        print_lines(list(_lines(found, everything=args.all)), pager=not args.no_pager)
    return FAILED if any(verdict.level == PROBLEM for _, verdict in found) else NOTHING_WRONG


def examine(name: str, patient: Patient) -> list[Verdict]:
    """Return what one check says; one that can't look is a problem too."""
    check, _ = CHECKS[name]
    try:
        return list(check(patient))
    except (OSError, SdqueueError) as error:
        return [Verdict(PROBLEM, f"it can't be looked at: {error}")]


def _lines(found: list[tuple[str, Verdict]], *, everything: bool) -> list[str]:
    lines: list[str] = []
    for name, verdict in found:
        if everything or verdict.level != OK:
            lines.append(f"{verdict.level:8} {name:14} {safe(verdict.text)}")
            if verdict.mend:
                lines.append(f"{'':23} → {safe(verdict.mend)}")
    return lines or ["nothing is wrong"]
