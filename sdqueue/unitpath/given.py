"""Unit files that a person names: where they would be installed, without installing them.

Paths come as typed, so that places can be clicked. Files lie where they lie; a directory is read
as if it were copied to the configuration directory: units, `X.d/`, `X.wants/`, links.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from sdqueue.unitfile.namemap import SUFFIXES
from sdqueue.unitpath.chase import lstat
from sdqueue.unitpath.tree import Added
from sdqueue.words import unitname
from sdqueue.words.problem import Problem

Found = Added | Problem


@dataclass(frozen=True, slots=True)
class Given:
    """What was named: the entries it adds, the names of its units, what could not be used."""

    added: tuple[Added, ...] = ()
    names: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def given(paths: tuple[str, ...], config_dir: str) -> Given:
    """Return what the files and directories at `paths` would put into `config_dir`.

    Of two files for one place the later one counts, and that is said.
    """
    added: dict[str, Added] = {}
    problems: list[Problem] = []
    for path in paths:
        for each in _one(path, config_dir):
            if isinstance(each, Problem):
                problems.append(each)
                continue
            before = added.get(each.path)
            if before is not None and _source(before) != _source(each):
                name = each.path.removeprefix(f"{config_dir}/")
                message = f"stands in for {_source(before)}: both are {name}"
                problems.append(Problem(_source(each), 0, message, "warning"))
            added[each.path] = each
    top = (path.rpartition("/") for path in added)
    names = tuple(name for parent, _, name in top if parent == config_dir)
    return Given(tuple(added.values()), names, tuple(problems))


def _source(added: Added) -> str:
    return added.file or added.text


def _one(path: str, config_dir: str) -> Iterator[Found]:
    status = _status(path)
    name = os.path.basename(os.path.normpath(path))
    if status is None:
        yield Problem(path, 0, "no such file or directory")
    elif stat.S_ISDIR(status.st_mode):
        if name.endswith(SUFFIXES) and _names_a_unit(name):
            yield from _directory(path, f"{config_dir}/{name}", top=False)
        else:
            yield from _directory(path, config_dir, top=True)
    elif name.endswith(".conf") and _is_dropin_directory(_parent(path)):
        yield Added(f"{config_dir}/{_parent(path)}/{name}", file=path)
    elif not unitname.is_valid(name):
        yield Problem(path, 0, f"{name} is not a valid unit name")
    else:
        yield Added(f"{config_dir}/{name}", file=path)


def _parent(path: str) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(path)))


def _is_dropin_directory(name: str) -> bool:
    return name.endswith(".d") and _names_a_unit(name)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        # A link that leads nowhere is there all the same: reading it will say what is wrong.
        return lstat(path)
    except ValueError:
        return None


def _names_a_unit(directory: str) -> bool:
    name = directory.rpartition(".")[0]
    return unitname.is_valid(name) or name in unitname.UNIT_TYPES


def _directory(path: str, target: str, *, top: bool) -> Iterator[Found]:
    try:
        with os.scandir(path) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        yield Problem(path, 0, f"can't be looked into: {error.strerror}")
        return
    for entry in entries:
        yield from _entry(entry, target, top=top)


def _entry(entry: "os.DirEntry[str]", target: str, *, top: bool) -> Iterator[Found]:
    """Yield an entry; at the top only what systemd would look at, elsewhere everything."""
    path = f"{target}/{entry.name}"
    below = top and entry.name.endswith(SUFFIXES) and _names_a_unit(entry.name)
    if below and entry.is_dir():
        yield from _directory(entry.path, path, top=False)
    elif top and not unitname.is_valid(entry.name):
        return
    elif entry.is_symlink():
        yield Added(path, text=os.readlink(entry.path))
    elif not entry.is_dir():
        yield Added(path, file=entry.path)
    else:
        yield Problem(entry.path, 0, "a directory where a file should be, ignored", "warning")
