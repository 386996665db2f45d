"""Looks into the directories of a search path and reads unit files, whatever lies there.

Nothing but regular files is ever opened, nothing larger than a limit is read, no link leads out
of the root. Trouble is a Problem with its place.
"""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from sdqueue.unitfile.files import Entry, Kind
from sdqueue.unitfile.unit import Place
from sdqueue.unitpath.chase import LINKS_MAX, Chaser, LinkLoop, lstat
from sdqueue.words.problem import Problem

FILE_MAX_BYTES = 1024 * 1024
_NULL = "/dev/null"


@dataclass(frozen=True, slots=True)
class Added:
    """An entry that is imagined to be at `path` (with the root in front): a file or a link.

    A file is `file`, wherever that lies, or holds `data`; a link says `text`, and `install` is the
    line that makes it. It takes the place of what is really there.
    """

    path: str
    file: str = ""
    text: str = ""
    data: bytes | None = None
    install: Place | None = None

    @property
    def is_file(self) -> bool:
        """Whether this is a file and no link."""
        return bool(self.file) or self.data is not None


@dataclass(slots=True)
class Tree:
    """The search path `directories` below `root` ("" for none), as it is plus what is `added`.

    Implements `sdqueue.unitfile.files.Files`. `directories` have the root in front. What was seen
    is remembered: one tree is one look. `problems` gathers what could not be looked into.
    """

    root: str
    directories: tuple[str, ...]
    added: tuple[Added, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    _listings: dict[str, Mapping[str, Entry]] = field(default_factory=dict)
    _kinds: dict[str, Kind] = field(default_factory=dict)
    _added: dict[str, dict[str, Added]] = field(default_factory=dict)
    _chaser: Chaser = field(init=False)

    def __post_init__(self) -> None:
        self.root = self.root.rstrip("/")
        self._chaser = Chaser(self.root)
        for each in self.added:
            parent, _, name = each.path.rpartition("/")
            self._added.setdefault(parent, {})[name] = each

    @property
    def search_path(self) -> tuple[str, ...]:
        """The unit directories, highest priority first."""
        return self.directories

    def distinct_search_path(self) -> tuple[str, ...]:
        """Return the unit directories, of those that are really one only the first."""
        real: dict[str, str] = {}
        for each in self.directories:
            real.setdefault(self._real(each), each)
        return tuple(real.values())

    def real_search_path(self) -> tuple[str, ...]:
        """Return the unit directories as named and as they are with all links followed."""
        return tuple(dict.fromkeys(each for d in self.directories for each in (d, self._real(d))))

    def listing(self, directory: str) -> Mapping[str, Entry]:
        """Return the entries of `directory` by name; nothing where there is no such directory."""
        known = self._listings.get(directory)
        if known is None:
            known = self._listings[directory] = self._look(directory)
        return known

    def status(self, entry: Entry) -> Kind:
        """Return what is at the end of all links; `mask` for a device or an empty file."""
        if entry.kind is Kind.LINK and entry.target == f"{self.root}{_NULL}":
            return Kind.MASK
        if entry.path in self._kinds:
            return self._kinds[entry.path]
        kind = self._kinds[entry.path] = self._end_of(entry)
        return kind

    def read(self, entry: Entry) -> bytes | Problem:
        """Return what is in a regular file, links followed, or why it can't be read."""
        try:
            added = self._added_behind(entry)
            if added and added.data is not None:
                return added.data
            return read_regular(self._place(entry))
        except LinkLoop:
            return Problem(entry.file, 0, "can't be read: a loop of links")
        except OSError as error:
            why = error.strerror or str(error)
            return Problem(entry.file, 0, f"can't be read: {why}")

    def _place(self, entry: Entry) -> str:
        """Return the real path of the file behind an entry."""
        added = self._added_behind(entry)
        if added:
            return os.path.realpath(added.file)
        return entry.path if entry.kind is not Kind.LINK else self._chaser.all(entry.target)

    def _added_behind(self, entry: Entry) -> Added | None:
        """Return the imagined file that an entry is or links to; LinkLoop if that has no end."""
        path = entry.target if entry.kind is Kind.LINK else entry.path
        for _ in range(LINKS_MAX):
            parent, _, name = path.rpartition("/")
            added = self._added.get(parent, {}).get(name)
            if added is None or added.is_file:
                return added
            path = self._imagined(name, added).target
        raise LinkLoop(f"{path}: too many links")

    def _end_of(self, entry: Entry) -> Kind:
        try:
            added = self._added_behind(entry)
            if added and added.data is not None:
                return Kind.FILE if added.data else Kind.MASK
            status = lstat(self._place(entry))
        except LinkLoop:
            return Kind.LOOP
        except OSError:
            return Kind.MISSING
        return _kind(status) if status else Kind.MISSING

    def _real(self, directory: str) -> str:
        try:
            return self._chaser.directory(directory)
        except LinkLoop:
            self._complain(directory, "a loop of links")
            return directory

    def _look(self, directory: str) -> Mapping[str, Entry]:
        found: dict[str, Entry] = {}
        real = self._real(directory)
        try:
            with os.scandir(real) as entries:
                for each in entries:
                    found[each.name] = self._entry(each, real)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._complain(directory, error.strerror or str(error))
        for name, added in self._added.get(directory, {}).items():
            found[name] = self._imagined(name, added)
        for name in self._imagined_directories(directory):
            path = f"{directory}/{name}"
            found.setdefault(name, Entry(name, Kind.DIRECTORY, path, path))
        return found

    def _complain(self, directory: str, why: str) -> None:
        self.problems.append(Problem(directory, 0, f"can't be looked into: {why}"))

    def _entry(self, found: "os.DirEntry[str]", directory: str) -> Entry:
        path = f"{directory}/{found.name}"
        if found.is_file(follow_symlinks=False):
            return Entry(found.name, Kind.FILE, path, path)
        if found.is_symlink():
            return self._link(found.name, path, directory, _text(path))
        kind = Kind.DIRECTORY if found.is_dir(follow_symlinks=False) else Kind.OTHER
        return Entry(found.name, kind, path, path)

    def _link(
        self, name: str, path: str, directory: str, text: str, install: Place | None = None
    ) -> Entry:
        try:
            target = self._chaser.but_last(self._chaser.link(text, directory))
        except LinkLoop:
            target = ""
        return Entry(name, Kind.LINK, path, path, text, target, install)

    def _imagined(self, name: str, added: Added) -> Entry:
        if added.is_file:
            return Entry(name, Kind.FILE, added.path, added.file or added.path)
        directory = added.path.rpartition("/")[0]
        return self._link(name, added.path, directory, added.text, added.install)

    def _imagined_directories(self, directory: str) -> list[str]:
        start = f"{directory}/"
        below = (each.removeprefix(start) for each in self._added if each.startswith(start))
        return [each for each in below if "/" not in each]


def _text(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _kind(status: os.stat_result) -> Kind:
    """Re-enacts null_or_empty(), src/basic/stat-util.c, v252: character devices are masks."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return Kind.FILE if status.st_size else Kind.MASK
    if stat.S_ISDIR(mode):
        return Kind.DIRECTORY
    return Kind.MASK if stat.S_ISCHR(mode) else Kind.OTHER


def read_regular(path: str, limit_bytes: int = FILE_MAX_BYTES) -> bytes:
    """Read a regular file that is no link; OSError for anything else, which is never waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        data = bytearray()
        while chunk := os.read(fd, max(status.st_size + 1 - len(data), 65536)):
            data += chunk
            if len(data) > limit_bytes:
                raise OSError(errno.EFBIG, f"larger than {limit_bytes >> 20} MiB")
    finally:
        os.close(fd)
    return bytes(data)
