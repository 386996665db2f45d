"""Where everything in a spool is, with which modes, of which schema, and who controls it.

In user mode the spool is the user's own, directories 0700. In system mode it is root's, and what
a run of another user needs (its snapshot, its work directory) is that user's own, reached through
directories that can be passed but not listed.
"""

import fcntl
import os
import time

from sdqueue.spool.files import discard, read_small, replace, sync_dir, telling
from sdqueue.words.errors import SpoolBusy, SpoolError

STATES = ("queue", "running", "done", "failed", "parked")
SCHEMA = 1
SYSTEM_ROOT = "/var/lib/sdqueue"
# In system mode jobs of other users pass through these on the way to their own directories.
_PASSED = frozenset(("", "runs", "work"))
DIRECTORIES = ("", *STATES, "runs", "meta", "work", "tmp")
LEFT_BEHIND_SECONDS = 24 * 3600.0
"""A file aside that is older belongs to nobody: it gets its place in the moment it is whole."""


def default_root(environ: "os._Environ[str] | dict[str, str]", *, system: bool) -> str:
    """Return the directory of the user's spool, or of the machine's."""
    if system:
        return SYSTEM_ROOT
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = f"{environ.get('HOME') or os.path.expanduser('~')}/.local/state"
    return f"{state}/sdqueue"


class Spool:
    """The places in one spool; touches no file."""

    __slots__ = ("root", "system")

    def __init__(self, root: str, *, system: bool = False) -> None:
        self.root = root.rstrip("/") or "/"
        self.system = system

    def state_dir(self, state: str) -> str:
        """Return the directory of the job files in `state`."""
        return f"{self.root}/{state}"

    def job_file(self, state: str, name: str) -> str:
        """Return where the job's file is when it is in `state`."""
        return f"{self.root}/{state}/{name}.job"

    def runs_dir(self, name: str) -> str:
        """Return the directory of the job's runs."""
        return f"{self.root}/runs/{name}"

    def run_dir(self, name: str, number: int) -> str:
        """Return the directory of one run."""
        return f"{self.root}/runs/{name}/{number}"

    def work_dir(self, name: str) -> str:
        """Return the job's STATE_DIRECTORY, kept across attempts."""
        return f"{self.root}/work/{name}"

    def meta_file(self, name: str) -> str:
        """Return where the job's meta data is."""
        return f"{self.root}/meta/{name}.json"

    @property
    def meta_dir(self) -> str:
        """The directory of all meta data."""
        return f"{self.root}/meta"

    @property
    def events_file(self) -> str:
        """The event log."""
        return f"{self.root}/events.jsonl"

    @property
    def paused_file(self) -> str:
        """The file with the names of paused lanes."""
        return f"{self.root}/paused"

    @property
    def aside_dir(self) -> str:
        """The directory in which files are written before they get their place."""
        return f"{self.root}/tmp"

    @property
    def schema_file(self) -> str:
        """The file with the schema's number."""
        return f"{self.root}/schema"

    @property
    def lock_file(self) -> str:
        """The file that the controller holds locked."""
        return f"{self.root}/lock"

    def mode_of(self, directory: str) -> int:
        """Return the mode with which a directory of the spool is made."""
        return 0o711 if self.system and directory in _PASSED else 0o700


def open_spool(spool: Spool) -> Spool:
    """Make what is missing of the spool, check its schema; return it, or raise SpoolError."""
    if not os.path.isdir(spool.root):
        _make_root(spool)
    _check_owner(spool)
    found = _schema(spool)
    ensure(spool)
    if found != SCHEMA:
        _migrate(spool, found)
    return spool


def _make_root(spool: Spool) -> None:
    with telling("make the spool", spool.root):
        _make_with_parents(spool.root, spool.mode_of(""))
        os.chmod(spool.root, spool.mode_of(""))


def _make_with_parents(directory: str, mode: int) -> None:
    """Make a directory and what is missing above it, each durably."""
    above = os.path.dirname(directory)
    if not os.path.isdir(above):
        _make_with_parents(above, 0o755)
    try:
        os.mkdir(directory, mode)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise
    sync_dir(above)


def make_dir(directory: str, mode: int) -> None:
    """Make a directory of just that mode: a umask of root's would shut other users' jobs out."""
    os.mkdir(directory, mode)
    os.chmod(directory, mode)


def _check_owner(spool: Spool) -> None:
    with telling("look at", spool.root):
        owner = os.stat(spool.root).st_uid
    if owner != os.geteuid():
        raise SpoolError(
            f"the spool {spool.root!r} belongs to uid {owner}, and this is uid {os.geteuid()};"
            " run as its owner or set XDG_STATE_HOME."
        )


def ensure(spool: Spool) -> tuple[str, ...]:
    """Make the directories that are missing; return their names, so that it can be said."""
    made: list[str] = []
    for name in DIRECTORIES[1:]:
        path = f"{spool.root}/{name}"
        with telling("make the directory", path):
            try:
                make_dir(path, spool.mode_of(name))
            except FileExistsError:
                if os.path.isdir(path):
                    continue
                raise SpoolError(
                    f"{path!r} is in the way: move it, it must be a directory."
                ) from None
        made.append(name)
    if made:
        with telling("sync", spool.root):
            sync_dir(spool.root)
    return tuple(made)


def _schema(spool: Spool) -> int:
    """Return the spool's schema number, 0 where it has none yet; refuse a newer one."""
    text = read_small(spool.schema_file, 64)
    if text is None:
        return 0
    number = int(text) if text.strip().isdigit() else -1
    if number < 0:
        raise SpoolError(
            f"{spool.schema_file!r} is damaged: write {SCHEMA} into it if this version of sdqueue"
            " was the last to use the spool."
        )
    if number > SCHEMA:
        raise SpoolError(
            f"the spool {spool.root!r} was last used by a newer sdqueue (schema {number}; this one"
            f" knows {SCHEMA}). Nothing was touched: install the newer version again."
        )
    return number


def _migrate(spool: Spool, found: int) -> None:
    """Bring a spool of an older schema up to date, one schema at a time."""
    for number in range(found, SCHEMA):
        MIGRATIONS[number](spool)
    replace(spool.schema_file, f"{SCHEMA}\n".encode(), spool.aside_dir)


def _first_schema(spool: Spool) -> None:
    """A new spool, or a directory queue without a number: there is nothing to change."""


MIGRATIONS = {0: _first_schema}


class Lock:
    """The controller's hold on a spool, until close() or the end of the process."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        """Let go of the spool."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def lock(spool: Spool) -> Lock:
    """Take the spool for this controller, or raise SpoolBusy that names who has it.

    What writers that were killed left aside long ago is removed.
    """
    with telling("lock", spool.lock_file):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(spool.lock_file, flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise SpoolBusy(
                f"another controller (pid {holder}) has the spool {spool.root!r};"
                " there can be one. See systemctl status sdqueue.service."
            ) from None
        except BaseException:
            os.close(fd)
            raise
    _sweep_aside(spool, time.time() - LEFT_BEHIND_SECONDS)
    return Lock(fd)


def _sweep_aside(spool: Spool, before_sec: float) -> None:
    """Remove the files of the aside directory to which nothing has been done since a time.

    Their time of change does not tell: a file that is rewritten keeps that of the old one.
    """
    try:
        with os.scandir(spool.aside_dir) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_ctime < before_sec:
                    discard(entry.path)
    except OSError:
        pass  # somebody else was faster, or the disk will be spoken of soon enough
