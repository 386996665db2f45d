"""`sdqueue why`: the chain of reasons, from a job to what must end first."""

import time
from collections.abc import Sequence

from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import Column, colours, print_json, print_lines, table
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF, Row, completed, expand, expand_told, file_rows, matcher
from sdqueue.cli.times import ago

COLUMNS = (
    Column("JOB", "name"),
    Column("STATE", "state"),
    Column("SINCE", "since"),
    Column("REASON", "code"),
    Column("", "detail", flexible=True),
)
ENDED = {
    "done": "it is done",
    "failed": "it has failed: put its file back into queue/ to try again",
    "parked": "it is set aside: move its file back into queue/ to let it run",
}


def add_arguments(parser: Parser) -> None:
    """Add the options of `why`."""
    parser.add_argument("jobs", metavar="JOB", nargs="+", help="names, or globs of names")


def run(args: Arguments) -> int:
    """Say why."""
    place = Place(system=args.system)
    if place.is_readable:
        names = expand(place, args.jobs, DIRECTORY_OF)
        chains = chains_of(place, names)
    else:
        told = _told(place, expand_told(place, args.jobs))
        names, chains = list(told), list(told.values())
    if args.json != "off":
        print_json(
            [{"name": name, "chain": chain} for name, chain in zip(names, chains, strict=True)],
            args.json,
        )
        return 0
    lines: list[str] = []
    for chain in chains:
        lines += [*([""] if lines else []), *chain_lines(chain, legend=not args.no_legend)]
    print_lines(lines, pager=not args.no_pager)
    return 0


def chain_lines(chain: Sequence[Row], *, legend: bool) -> list[str]:
    """Return the lines of one chain."""
    cells = [{key: str(link[key]) for key in ("name", "state", "code", "detail")} for link in chain]
    now_sec = time.time()
    for cell, link in zip(cells, chain, strict=True):
        cell["since"] = ago(link.get("since"), now_sec)
    return table(COLUMNS, cells, legend=legend, paint=colours())


def chains_of(place: Place, names: Sequence[str]) -> list[list[Row]]:
    """Return the chain of each job: of what waits or runs from the controller, else from files."""
    rows: dict[str, Row] = {}
    for row in file_rows(place, wanted=matcher(names)):
        rows.setdefault(str(row["name"]), row)
    alive = [name for name in names if rows[name]["state"] in ("queued", "running")]
    told = _told(place, alive) if alive and place.has_controller() else {}
    return [told.get(name) or [_link(place, rows[name])] for name in names]


def _told(place: Place, names: Sequence[str]) -> dict[str, list[Row]]:
    from sdqueue.cli.client import Client, ask_if_there
    from sdqueue.words.errors import NoSuchJob, WrongState

    async def question(client: Client) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for name in names:
            try:
                found[name] = await client.why(name)
            except (NoSuchJob, WrongState):
                continue  # it came or ended at this moment: its file says so
        return found

    return ask_if_there(place, question) or {}


def _link(place: Place, row: Row) -> Row:
    """Return the chain's one link as files know it."""
    (told,) = completed([row], None, place)
    reason = told["reason"]
    code, detail = "", ENDED.get(str(row["state"]), "it runs")
    if isinstance(reason, dict):
        code, detail = str(reason["code"]), str(reason["detail"])
    return {
        "name": row["name"],
        "state": row["state"],
        "since": row["since"],
        "code": code,
        "detail": detail,
        "blocker": "",
    }
