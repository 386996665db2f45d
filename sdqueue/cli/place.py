"""Which queue a command means: its spool, its configuration, whether a controller has it.

Quick to import, since `submit` goes through here: the configuration is only read where there is
one, and the controller is looked for without a bus.
"""

import os

from sdqueue.spool.layout import Spool, default_root, open_spool
from sdqueue.words.errors import UsageError
from sdqueue.words.names import DEFAULT_LANE_NAMES, did_you_mean, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sdqueue.core.spec import Config

DEFAULT_LANE = "cpu"
SERVICE = "sdqueue.service"


class Place:
    """A queue: the calling user's, or the machine's."""

    __slots__ = ("_config", "spool", "system")

    def __init__(self, *, system: bool) -> None:
        self.system = system
        self.spool = Spool(default_root(os.environ, system=system), system=system)
        self._config: Config | None = None

    def open(self) -> Spool:
        """Return the spool, with what was missing of it made."""
        return open_spool(self.spool)

    @property
    def exists(self) -> bool:
        """Whether anybody has used this queue yet."""
        return os.path.isdir(self.spool.state_dir("queue"))

    @property
    def is_readable(self) -> bool:
        """Whether the job files can be listed: the machine's can't by everybody."""
        queue = self.spool.state_dir("queue")
        return os.access(queue, os.R_OK | os.X_OK) or not os.path.isdir(self.spool.root)

    @property
    def manager_option(self) -> str:
        """What systemctl needs to hear to mean the same manager."""
        return "--system" if self.system else "--user"

    @property
    def config(self) -> "Config":
        """The configuration; what is wrong with it is said on stderr, once."""
        if self._config is None and not self._is_configured():
            from sdqueue.core.spec import Config

            self._config = Config()
        if self._config is None:
            from sdqueue.cli.say import warn
            from sdqueue.config_files import read_config

            self._config, problems = read_config(os.environ, system=self.system)
            for problem in problems:
                warn(str(problem))
        return self._config

    def lane_names(self) -> tuple[str, ...]:
        """Name the lanes; quick where nothing is configured."""
        return tuple(self.config.lanes) if self._is_configured() else DEFAULT_LANE_NAMES

    def default_lane(self) -> str:
        """Name the lane of jobs that name none."""
        return self.config.default_lane if self._is_configured() else DEFAULT_LANE

    def _is_configured(self) -> bool:
        directory = _config_dir(system=self.system)
        return any(
            os.path.exists(f"{directory}/{name}") for name in ("sdqueue.toml", "sdqueue.toml.d")
        )

    def check_lane(self, lane: str) -> str:
        """Return `lane` if there is one of that name, or raise UsageError."""
        lanes = self.lane_names()
        if lane not in lanes:
            near = did_you_mean(lane, lanes) or "."
            raise UsageError(
                f"there is no lane {shown(lane)}{near} The lanes are {', '.join(lanes) or 'none'}."
            )
        return lane

    def has_controller(self) -> bool:
        """Say whether a controller holds the spool's lock, without touching the lock."""
        try:
            with open(self.spool.lock_file, "rb") as lock:
                status = os.fstat(lock.fileno())
                pid = lock.read(32).decode("ascii", "replace").strip()
            with open("/proc/locks", encoding="ascii") as locks:
                return any(_is_lock_on(line, status, pid) for line in locks)
        except OSError:
            return False

    def start_hint(self) -> str:
        """Say how to start the controller."""
        option = "" if self.system else "--user "
        return (
            f"start it with: systemctl {option}start {SERVICE}"
            f" (or, without installing: sdqueue {self.manager_option} daemon)"
        )


def _is_lock_on(line: str, status: os.stat_result, pid: str) -> bool:
    """Read `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE START END`.

    Inode numbers are only unique on one device, and some file systems show another device than
    stat() does: there the pid that the holder wrote down decides.
    """
    words = line.split()
    if len(words) < 6 or words[1] != "FLOCK":
        return False
    device, _, inode = words[5].rpartition(":")
    shown_device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    return inode == str(status.st_ino) and (device == shown_device or words[4] == pid)


def _config_dir(*, system: bool) -> str:
    if system:
        return "/etc/sdqueue"
    base = os.environ.get("XDG_CONFIG_HOME", "")
    home = os.environ.get("HOME") or os.path.expanduser("~")
    return f"{base if base.startswith('/') else f'{home}/.config'}/sdqueue"
