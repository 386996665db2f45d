"""The files that a person names to lint-units, and where each would lie once installed.

Nothing is opened here, only looked at: FIFOs, devices and directories in a unit's place are said to
be so, names that no unit can have too.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sdqueue.unitpath import Added
from sdqueue.words import unitname
from sdqueue.words.problem import Problem

PARTS = (".d", ".wants", ".requires", ".upholds")


@dataclass(slots=True)
class Given:
    """The files to lint: where each is imagined to be installed, and what couldn't be taken.

    `files` are their paths as findings say them; `installed` those of them that are in the search
    path already.
    """

    added: dict[str, Added] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    installed: set[str] = field(default_factory=set)
    real: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    taken: int = 0


def collect(paths: Sequence[str], config_dir: str, directories: Sequence[str]) -> Given:
    """Take files, and directories laid out like /etc/systemd/system, as lying in `config_dir`."""
    given = Given()
    for path in paths:
        for file, place in _entries(path, given):
            _take(given, file, f"{config_dir}/{place}", directories)
    return given


def _entries(path: str, given: Given) -> Iterator[tuple[str, str]]:
    """Yield (file, where it belongs in a unit directory) for what a person named."""
    path = os.path.normpath(path)
    name = path.rpartition("/")[2]
    if os.path.isdir(path) and not name.endswith(PARTS):
        yield from _in_directory(path, given)
    elif os.path.isdir(path):
        yield from ((f"{path}/{each}", f"{name}/{each}") for each in _listing(path, given))
    elif not os.path.lexists(path):
        given.problems.append(Problem(path, 0, "there is no such file"))
    elif name.endswith(".conf") and os.path.dirname(path).endswith(".d"):
        yield path, f"{os.path.basename(os.path.dirname(os.path.abspath(path)))}/{name}"
    elif unitname.is_valid(name):
        yield path, name
    else:
        given.problems.append(Problem(path, 0, "not the name of a unit file"))


def _in_directory(path: str, given: Given) -> Iterator[tuple[str, str]]:
    for name in _listing(path, given):
        each = name if path == "." else f"{path}/{name}"
        if unitname.is_valid(name):
            yield each, name
        elif name.endswith(PARTS) and os.path.isdir(each):
            yield from ((f"{each}/{one}", f"{name}/{one}") for one in _listing(each, given))
        else:
            given.problems.append(Problem(each, 0, "not part of a unit directory", "info"))


def _listing(path: str, given: Given) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        given.problems.append(Problem(path, 0, f"can't be looked into: {error.strerror}"))
        return []


def _take(given: Given, file: str, place: str, directories: Sequence[str]) -> None:
    """Note one file or link; what is neither is trouble."""
    link = os.path.islink(file)
    if not link and not os.path.isfile(file):
        given.problems.append(Problem(file, 0, "neither a file nor a link"))
        return
    at = os.path.abspath(file)
    given.taken += 1
    if os.path.dirname(at) in directories or os.path.dirname(os.path.dirname(at)) in directories:
        given.installed.add(at)
        given.files.add(at)
        return
    if place in given.added:
        first = given.added[place].file or given.real.get(place, place)
        given.problems.append(Problem(file, 0, f"the same name as {first}; that one counts"))
        return
    given.added[place] = Added(place, text=os.readlink(file)) if link else Added(place, file=file)
    given.files.add(place if link else file)
    if link:
        given.real[place] = file
