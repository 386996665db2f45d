"""`sdqueue edit`: a job's file in an editor, checked, and put in place if the job is still there.

What was written is never lost: where it can't be put in place it stays in the copy, whose name is
said.
"""

import os
import shlex
import subprocess
import sys
from tempfile import mkdtemp

from sdqueue.cli.operating import add_jobs, operate
from sdqueue.cli.options import Arguments, Parser
from sdqueue.cli.place import Place
from sdqueue.cli.rows import DIRECTORY_OF
from sdqueue.cli.say import remark
from sdqueue.cli.written import read_file, say_problems
from sdqueue.jobfile import parse
from sdqueue.spool.rewrite import Content, read_content, rewrite
from sdqueue.words.errors import NoSuchJob, SdqueueError, UsageError
from sdqueue.words.names import SUFFIX

EDITORS = ("SUDO_EDITOR", "VISUAL", "EDITOR")
DEFAULT_EDITORS = ("editor", "nano", "vi")
WHEN = {
    "running": "changed; it counts from the next attempt",
    "queued": "changed",
}


def add_arguments(parser: Parser) -> None:
    """Add the options of `edit`."""
    add_jobs(parser)


def run(args: Arguments) -> int:
    """Edit jobs, one after the other."""
    if args.json != "off":
        raise UsageError("edit is for people: it prints no JSON.")
    return operate(args, _edit, {}, states=tuple(map(str, DIRECTORY_OF)))


def _edit(place: Place, name: str, state: str) -> str:
    old = read_content(place.spool, name, DIRECTORY_OF[state])
    directory = mkdtemp(prefix="sdqueue-edit-")
    copy = f"{directory}/{name}{SUFFIX}"
    with open(copy, "xb") as file:
        file.write(old.data)
    try:
        effect = _edit_copy(place, name, state, old, copy)
    except NoSuchJob:
        raise SdqueueError(f"{name}: it has left {DIRECTORY_OF[state]}/; {_kept(copy)}.") from None
    except SdqueueError as error:
        raise SdqueueError(f"{str(error).rstrip('.')}; {_kept(copy)}.") from None
    os.unlink(copy)
    os.rmdir(directory)
    return effect


def _kept(copy: str) -> str:
    return f"what you wrote is in {copy}"


def _edit_copy(place: Place, name: str, state: str, old: Content, copy: str) -> str:
    """Have the copy edited until it is good, and put it in place."""
    while True:
        _run_editor(copy)
        data = read_file(copy)
        if data == old.data:
            return "left as it was"
        found = parse(name, data, lanes=place.config.lanes)
        say_problems(found)
        if found.spec is not None:
            rewrite(place.spool, name, DIRECTORY_OF[state], old, data)
            return WHEN.get(state, f"changed; it counts if it is tried again from {state}")
        if not _again():
            raise SdqueueError(f"{name} was not changed, mend what is said above")


def _again() -> bool:
    """Ask whether to edit once more; no, where nobody can be asked."""
    if not sys.stdin.isatty():
        return False
    remark("edit it again? [Y/n]")
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def _run_editor(file: str) -> None:
    """Run the editor that is asked for, or the first one there is."""
    chosen = next((os.environ[key] for key in EDITORS if os.environ.get(key)), "")
    for editor in [shlex.split(chosen)] if chosen else [[each] for each in DEFAULT_EDITORS]:
        try:
            status = subprocess.run([*editor, file], check=False).returncode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SdqueueError(f"{editor[0]} can't be run: {error.strerror}") from None
        if status:
            raise SdqueueError(f"{editor[0]} ended with status {status}, nothing was changed")
        return
    raise SdqueueError(f"there is no editor {chosen or ', '.join(DEFAULT_EDITORS)}; set EDITOR")
