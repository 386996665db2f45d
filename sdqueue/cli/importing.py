"""`sdqueue import`: takes over the jobs of another directory queue; none is lost, none runs twice.

What is done with each file is decided before anything is touched; `--dry-run` ends there. Works
with a controller or without one, and goes on where an import was killed.
"""

import os
import signal
from collections.abc import Iterator, Mapping

from sdqueue.cli.oldfile import File, Wish
from sdqueue.cli.oldlog import Ends, read_ends
from sdqueue.cli.oldqueue import check, survey
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.output import Column, print_json, print_lines, table
from sdqueue.cli.place import Place
from sdqueue.cli.say import remark
from sdqueue.jobtext import JOB_MAX_BYTES, render_script
from sdqueue.spool import takeover
from sdqueue.spool.files import aside_name, discard, sync_dir, telling
from sdqueue.spool.layout import Spool
from sdqueue.spool.rewrite import write_like
from sdqueue.spool.takeover import THE_LOG, staged_file
from sdqueue.words.errors import SdqueueError
from sdqueue.words.names import SUFFIX

_COLUMNS = (
    Column("FILE", "file"),
    Column("GOES TO", "to"),
    Column("NOTE", "note", optional=True, flexible=True),
)
_TOGETHER = 256
"""So many files are taken before they are placed: a directory is synced once for all of them."""


def add_arguments(parser: Parser) -> None:
    """Add the options of `import`."""
    add = parser.add_argument
    add("directory", metavar="DIR", help="where queue/, running/, done/ and failed/ are")
    add("--dry-run", action="store_true", help="say what would be done, and do nothing")
    add("--lane", metavar="LANE", help="the lane of jobs that name none; else the default lane")
    add(
        "--requeue",
        action="store_true",
        help="queue what was running and has no process now, instead of setting it aside",
    )
    add(
        "--beside",
        action="store_true",
        help="also jobs that could start beside one that runs still",
    )


def run(args: Arguments) -> int:
    """Import; 1 if something stays behind that is, or could be, a job."""
    place = Place(system=args.system)
    lane = place.check_lane(args.lane) if args.lane else place.default_lane()
    # A lease that is asked for is told by this signal, whose default is to end the process.
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    directory = os.path.abspath(args.directory)
    wish = Wish(lane, bool(args.requeue), bool(args.beside))
    check(directory, place)
    look = survey if args.dry_run else _take_over
    files = look(directory, place, wish)
    _print(files, args)
    return int(any(each.is_lost for each in files))


def _take_over(directory: str, place: Place, wish: Wish) -> list[File]:
    """Take over what can be, and return what came of each file."""
    spool = place.open()
    with takeover.importing(spool):
        files = survey(directory, place, wish)
        ends = read_ends(f"{directory}/{takeover.LOG}", directory)
        done: list[File] = []
        for some in _chunks(files):
            done += _placed(spool, _taken(spool, some), ends)
        if not any(each.is_lost for each in done):
            _take_log(spool, directory)
    if not place.has_controller() and any(each.to == "queue" for each in done):
        remark(f"no controller is running, so the jobs wait; {place.start_hint()}.")
    return done


def _chunks(files: list[File]) -> Iterator[list[File]]:
    return (files[at : at + _TOGETHER] for at in range(0, len(files), _TOGETHER))


def _taken(spool: Spool, files: list[File]) -> list[File]:
    """Take some files, durably; those that could not be say why and stay."""
    found = [_take(spool, each) for each in files]
    taken = [each for each in found if each.to and not each.is_staged]
    # The new names first: at the worst a power cut leaves both, never none.
    _sync({takeover.staging_dir(spool, each.staged.state) for each in taken})
    _sync({os.path.dirname(each.file) for each in taken})
    return found


def _sync(directories: set[str]) -> None:
    for directory in directories:
        with telling("sync", directory):
            sync_dir(directory)


def _take(spool: Spool, each: File) -> File:
    if not each.to or each.is_staged or each.seen is None:
        return each
    try:
        takeover.take(each.file, staged_file(spool, each.staged), each.seen, spool.aside_dir)
    except FileNotFoundError:
        return each._replace(to="", note="it has gone meanwhile", is_lost=True)
    except FileExistsError:
        return each._replace(to="", note="another file stands for that job too", is_lost=True)
    except OSError as error:
        note = f"can't be taken over: {error.strerror}"
        return each._replace(to="", note=note, is_lost=True)
    except SdqueueError as error:
        return each._replace(to="", note=str(error), is_lost=True)
    return each


def _placed(spool: Spool, files: list[File], ends: Ends) -> list[File]:
    """Give what was taken its places, durably."""
    found = [_place(spool, each, ends) if each.to else each for each in files]
    _sync({spool.state_dir(each.to) for each in found if each.to})
    _sync({takeover.staging_dir(spool, each.staged.state) for each in found if each.to})
    return found


def _place(spool: Spool, each: File, ends: Ends) -> File:
    staged, name = staged_file(spool, each.staged), each.staged.name
    if each.lane:
        _add_lane(spool, staged, each.lane)
    if each.to != "queue":
        ends.record(spool, each.staged.state, name)
    with telling("place", staged):
        try:
            target = spool.job_file(each.to, name)
            at = takeover.place(staged, target, beside=each.to in ("done", "failed"))
        except FileExistsError:
            note = "its name was taken meanwhile; import again when it is free"
            return each._replace(to="", note=note, is_lost=True)
    if at != f"{name}{SUFFIX}":
        return each._replace(note="; ".join(filter(None, (each.note, f"kept as {at}"))))
    return each


def _add_lane(spool: Spool, file: str, lane: str) -> None:
    """Add the lane to a taken file's header; nothing else of it changes."""
    with telling("write", file):
        with open(file, "rb") as old:
            status = os.fstat(old.fileno())
            data = render_script([("LANE", lane)], old.read(JOB_MAX_BYTES))
        aside = aside_name(spool.aside_dir)
        write_like(aside, data, status)
        try:
            os.rename(aside, file)
        except BaseException:
            discard(aside)
            raise


def _take_log(spool: Spool, directory: str) -> None:
    """Keep the other queue's log beside this one's, once it tells of no job that is left there."""
    file, staged = f"{directory}/{takeover.LOG}", staged_file(spool, THE_LOG)
    for each in (f"{file}{takeover.CLAIMED}", file):
        with telling("take over", each):
            if os.path.isfile(each) and not os.path.islink(each):
                takeover.take(each, staged, os.lstat(each), spool.aside_dir)
                sync_dir(directory)
    if os.path.lexists(staged):
        with telling("place", staged):
            at = takeover.place(staged, f"{spool.root}/{takeover.KEPT_LOG}", beside=True)
            sync_dir(spool.root)
        remark(f"its event log is {spool.root}/{at} now")


def _print(files: list[File], args: Arguments) -> None:
    if args.json != "off":
        print_json([_as_json(each) for each in files], args.json)
        return
    rows = [{"file": each.shown, "to": each.to or "-", "note": each.note} for each in files]
    lines = table(_COLUMNS, rows, legend=not args.no_legend) if rows else []
    if not args.no_legend:
        came = sum(bool(each.to) for each in files)
        verb = "would be taken over" if args.dry_run else "taken over"
        lines += ["", f"{came} {verb}, {len(files) - came} left."]
    print_lines(lines, pager=not args.no_pager)


def _as_json(each: File) -> Mapping[str, object]:
    return {
        "file": each.shown,
        "name": each.staged.name or None,
        "state": {"queue": "queued"}.get(each.to, each.to) or None,
        "lane": each.lane or None,
        "note": each.note,
        "left": each.is_lost,
    }
