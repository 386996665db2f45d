"""`sdqueue status`: the queue at one look; or jobs, with their reasons and last words."""

import time

from sdqueue.cli.exits import FAILED, OK
from sdqueue.cli.listing import cells
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import (
    Column,
    Style,
    colours,
    paint_line,
    print_json,
    print_lines,
    table,
)
from sdqueue.cli.overall import Overall, overall
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, Row, texts
from sdqueue.cli.safe import safe
from sdqueue.cli.times import ago

LOG_LINES = 10
DROPPED = "{} lines of running jobs were dropped by journald's rate limit; see journald.conf(5)"

LANE_COLUMNS = (
    Column("LANE", "name"),
    Column("IS", "state"),
    Column("HOLDER", "holder"),
    Column("SINCE", "since"),
    Column("WAITING", "queued", right=True),
    Column("NEXT", "next", optional=True),
    Column("WHY", "why", optional=True, flexible=True),
)
WAITING_COLUMNS = (
    Column("WAITING", "name"),
    Column("LANE", "lane"),
    Column("SINCE", "since"),
    Column("ATTEMPT", "attempt", optional=True),
    Column("WHY", "detail", flexible=True),
)


def add_arguments(parser: Parser) -> None:
    """Add the options of `status`."""
    parser.add_argument("jobs", metavar="JOB", nargs="*", help="jobs to show, or globs of names")
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit 1 while a job runs, 0 when it is safe to reboot",
    )


def run(args: Arguments) -> int:
    """Show the queue, or the jobs that are named."""
    place = Place(system=args.system)
    if args.jobs:
        return _jobs(place, args)
    answer = overall(place)
    if args.json != "off":
        print_json(answer.as_json(), args.json)
    else:
        lines = _lines(answer, legend=not args.no_legend, style=colours())
        print_lines(lines, pager=not args.no_pager)
    return FAILED if args.exit_code and answer.counts["running"] else OK


# As text ----------------------------------------------------------------------------------------


def _lines(answer: Overall, *, legend: bool, style: Style | None) -> list[str]:
    now_sec = time.time()
    lanes = [_lane_cells(lane, now_sec) for lane in answer.lanes]
    lines = [*_head(answer, style), ""] if legend else []
    lines += table(LANE_COLUMNS, lanes, legend=legend, paint=style)
    waiting = [_waiting_cells(row, now_sec) for row in answer.waiting]
    if waiting:
        lines += ["", *table(WAITING_COLUMNS, waiting, legend=legend, paint=style)]
    more = answer.counts["queued"] - len(waiting)
    if more > 0 and legend:
        lines.append(f"… and {more} more: sdqueue list --state=queued")
    return lines


def _head(answer: Overall, style: Style | None) -> list[str]:
    health = answer.controller
    owner = "the machine's" if answer.system else "your"
    good = health.running and not health.halted and not health.trouble
    bullet = paint_line("●", "active" if good else "bad", style)
    counts = ", ".join(f"{answer.counts[state]} {state}" for state in DIRECTORY_OF)
    facts = [("Jobs", counts, "")]
    if health.running:
        version = f", version {health.version}" if health.version else ""
        facts.append(("Controller", f"running{version}", ""))
    else:
        facts.append(("Controller", f"not running, so nothing starts; {health.start}", "bad"))
    facts += [("Halted", health.halted, "notice")] if health.halted else []
    facts += [("Trouble", trouble, "bad") for trouble in health.trouble]
    facts += [("Notice", notice, "notice") for notice in health.notices]
    if answer.dropped:
        facts.append(("Journal", DROPPED.format(answer.dropped), "notice"))
    lines = [f"{bullet} sdqueue, {owner} queue in {safe(answer.spool)}"]
    return lines + [
        paint_line(f"{head:>12}: {safe(text)}", colour, style) for head, text, colour in facts
    ]


def _lane_cells(lane: Row, now_sec: float) -> dict[str, str]:
    state = str(lane["state"] or "-")
    return {
        "name": str(lane["name"]),
        "state": state,
        "holder": ", ".join(texts(lane["holders"] or lane["occupants"])) or _stranger(lane) or "-",
        "since": ago(lane["since"], now_sec),
        "queued": "?" if lane["queued"] is None else str(lane["queued"]),
        "next": str(lane["next"] or "") or ", ".join(texts(lane["requests"])),
        "why": _why(lane),
        "paint": {"running": "good", "leased": "good", "free": ""}.get(state, "notice"),
    }


TOLD_OF_ANY = frozenset({"leased", "foreign", "excluded", "unknown"})
"""States whose cause is told also where no job waits for the lane."""


def _stranger(lane: Row) -> str:
    return str(lane["holder"] or "") if lane["state"] == "foreign" else ""


def _why(lane: Row) -> str:
    """Say why the lane's next job does not start yet, or why nobody else can have it."""
    reason = lane["reason"]
    if isinstance(reason, dict) and lane["next"]:
        return str(reason["detail"])
    return str(lane["detail"] or "") if lane["state"] in TOLD_OF_ANY or lane["requests"] else ""


def _waiting_cells(row: Row, now_sec: float) -> dict[str, str]:
    return {**cells(row, now_sec), "paint": "", "detail": reason_text(row["reason"])}


def reason_text(reason: object) -> str:
    """Return a reason in a line: its code and its words."""
    if not isinstance(reason, dict):
        return ""
    detail = str(reason["detail"] or reason["blocker"] or "")
    return f"{reason['code']}: {detail}" if detail else str(reason["code"])


# One job ----------------------------------------------------------------------------------------


def _jobs(place: Place, args: Arguments) -> int:
    from sdqueue.cli.detail import lines_of
    from sdqueue.cli.journal import last_lines
    from sdqueue.cli.show import details
    from sdqueue.cli.why import chain_lines, chains_of

    jobs = details(place, args.jobs)
    chains = chains_of(place, [str(job["name"]) for job in jobs])
    if args.json != "off":
        print_json(
            [{**job, "chain": chain} for job, chain in zip(jobs, chains, strict=True)], args.json
        )
    else:
        lines: list[str] = []
        for job, chain in zip(jobs, chains, strict=True):
            lines += [*([""] if lines else []), *lines_of(job, style=colours())]
            lines += ["", *chain_lines(chain, legend=True)] if job["state"] == "queued" else []
            log = last_lines(place, str(job["name"]), LOG_LINES)
            lines += ["", *map(safe, log)] if log else []
        print_lines(lines, pager=not args.no_pager)
    busy = any(job["state"] == "running" for job in jobs)
    return FAILED if args.exit_code and busy else OK
