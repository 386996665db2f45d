"""A user manager to test against: a private one, or the caller's own.

    with PrivateManager() as m:          as root, on any Linux with systemd's programs installed
        m.run(["systemd-run", "--user", "--wait", "true"])          -> CompletedProcess, checked
        m.run([...], check=False, input="…", env={"KEY": "value"}, cwd=…)
        p = m.popen(["sdqueue", "daemon"], stdout=PIPE)      -> Popen; the pid is the true one
        m.env                            what a program inside needs (popen sets it)
        m.bus_address, m.runtime_dir     the same bus and directory, by paths that work outside too
        m.home                           HOME; XDG_CONFIG_HOME, XDG_STATE_HOME … lie in it
        m.journal("--user-unit", "x.service")                       -> list of journal entries
        m.kill_bus(), m.start_bus()      the bus dies; a new one, and the manager connects again
        m.reexec(), m.reload()           of the manager, while its units run on
        m.restart()                      the manager ends with its units and bus, a new one comes
        m.show("x.service", "ActiveState")
    with own_manager() as m: …           the caller's own: run, popen, env, journal, reexec, reload

`user_manager()` chooses: the caller's own where it answers, else a private one. What can't be had
raises ManagerError, which says what is missing.

A private manager is `systemd --user` with its bus as a unit of it and a journald of its own, in a
sandbox (sandbox.py): it sees an empty /run, and sits where logind would have put it in the
cgroup tree, /user.slice/user-UID.slice/user@UID.service, because journald takes the names of
user units from there and the invocation id from /run/user/UID.
"""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.harness.notify import NotifySocket
from tests.harness.process import finish
from tests.harness.sandbox import MACHINE_ID, Sandbox, SandboxError
from tests.harness.sandbox import missing as sandbox_missing
from tests.harness.waiting import LIMIT_SEC, eventually, wait_exit

UID = os.geteuid()
USER_SLICE = f"user.slice/user-{UID}.slice"
SYSTEMD_DIRS = (Path("/usr/lib/systemd"), Path("/lib/systemd"))
SETUP = f"""
mkdir -p $DIR/run $DIR/home
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/systemd/journal /run/systemd/journald.conf.d /run/log/journal \\
    /run/lock /run/user/{UID}
mount --bind $DIR/run /run/user/{UID}
chmod 700 /run/user/{UID}
units=/run/user/{UID}/systemd/user
mkdir -p $units/sockets.target.wants
printf '[Socket]\\nListenStream=%%t/bus\\nRemoveOnStop=yes\\n' >$units/dbus.socket
printf '[Service]\\nType=notify\\nExecStart={shutil.which("dbus-daemon")} --session \
--address=systemd: --nofork --nopidfile\\nSlice=session.slice\\n' >$units/dbus.service
ln -s ../dbus.socket $units/sockets.target.wants/dbus.socket
printf '[Journal]\\nStorage=volatile\\nRateLimitIntervalSec=0\\nReadKMsg=no\\nAudit=no\\n' \\
    >/run/systemd/journald.conf.d/sandbox.conf
# from systemd 257 on they take the tree's root from PID 1's cgroup, which is not in this namespace
echo 0::/init.scope >/run/cgroup-of-pid-1
mount --bind /run/cgroup-of-pid-1 /proc/1/cgroup
[ ! -d /var/log/journal ] || mount -t tmpfs tmpfs /var/log/journal
{MACHINE_ID}"""


class ManagerError(Exception):
    """No such manager can be had here; str() says what is missing."""


class Manager(ABC):
    """What all kinds offer: it needs no more than `popen`.

    `python` is a program inside that finds this checkout with `pythonpath`; `scope` is what the
    tools of systemd call this manager.
    """

    python = sys.executable
    pythonpath = str(Path(__file__).parents[2])
    scope = "--user"
    env: dict[str, str]
    home: Path
    runtime_dir: Path
    bus_address: str

    @abstractmethod
    def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a program that sees this manager; `env` is added to `self.env`."""

    @abstractmethod
    def close(self) -> None:
        """End what was started here; twice does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        check: bool = True,
        limit_sec: float = LIMIT_SEC,
        input: str | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, output captured; with `check` a failure raises, in its words.

        `options` are popen's: env (added to `self.env`), cwd, and Popen's own.
        """
        pipe = subprocess.PIPE
        given = subprocess.DEVNULL if input is None else pipe
        options = {"stdin": given, "stdout": pipe, "stderr": pipe, **options}
        return finish(self.popen(argv, **options), argv, input, limit_sec, check=check)

    def journal(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the journal's entries that match, oldest first, all that was said."""
        lines = self.run(["journalctl", "--output=json", "--quiet", *arguments]).stdout
        return [json.loads(line) for line in lines.splitlines()]

    def show(self, unit: str, name: str) -> str:
        """Return one property of a unit, as systemctl spells it."""
        return self.systemctl("show", f"--property={name}", "--value", unit).rstrip("\n")

    def systemctl(self, *words: str) -> str:
        """Call systemctl for this manager, and return what it says."""
        return self.run(["systemctl", self.scope, *words]).stdout

    def reload(self) -> None:
        """daemon-reload."""
        self.systemctl("daemon-reload")

    def reexec(self) -> None:
        """daemon-reexec: the manager executes itself anew, its units and unit jobs stay."""
        self.systemctl("daemon-reexec")


class PrivateManager(Manager):
    """A user manager of one's own, from `with` to its end; see the module."""

    def __init__(self, *, extra_env: Mapping[str, str] | None = None) -> None:
        """`extra_env` is added to the environment of the manager and of everything inside."""
        if trouble := missing():
            raise ManagerError(trouble)
        self._box = Sandbox("m", setup=SETUP)
        self.directory = self._box.directory
        self.runtime_dir = self.directory / "run"
        self.home = self.directory / "home"
        self.bus_address = f"unix:path={self.runtime_dir}/bus"
        self.env = _environment(self.home) | dict(extra_env or {})
        self.pid = 0

    def __enter__(self) -> Self:
        try:
            self._box.__enter__()
        except SandboxError as error:
            raise ManagerError(str(error)) from error
        try:
            journald = systemd_program("systemd-journald")
            self._serve([journald], "system.slice/systemd-journald.service")
            self._start_manager()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End everything; twice does no harm."""
        self._box.close()

    def pids(self) -> list[int]:
        """Return the pids of everything inside."""
        return self._box.pids()

    @property
    def cgroup_dir(self) -> Path:
        """The directory of the cgroup that is the root of all inside, as a path that works here."""
        return self._box.cgroup_dir

    def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a program as a session of this user would; `env` is added to `self.env`."""
        return self._box.popen(
            argv,
            env=self.env | dict(env or {}),
            cgroup=f"{USER_SLICE}/session-1.scope",
            cwd=cwd or self.home,
            **options,
        )

    def journal(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the journal's entries that match, oldest first; journald is made to catch up."""
        self.run(["journalctl", "--sync"])
        return super().journal(*arguments)

    def kill_bus(self) -> None:
        """Kill the bus, without a word to anybody; it stays away until `start_bus`."""
        bus_pid = int(self.show("dbus.service", "MainPID"))
        self.run(["systemctl", "--user", "stop", "dbus.socket"])
        kill(bus_pid, signal.SIGKILL)
        self.run(["systemctl", "--user", "reset-failed", "dbus.service"], check=False)

    def start_bus(self) -> None:
        """Bring a new bus up at the same address, and wait until the manager is on it."""
        self.run(["systemctl", "--user", "start", "dbus.socket"])
        self._wait_for_bus()

    def restart(self) -> None:
        """End the manager, and with it its units and its bus, and start a new one."""
        kill(self.pid, signal.SIGTERM)
        self._start_manager()

    def _start_manager(self) -> None:
        argv = [systemd_program("systemd"), "--user", "--log-target=journal"]
        self.pid = self._serve(argv, f"{USER_SLICE}/user@{UID}.service")
        self._wait_for_bus()

    def _wait_for_bus(self) -> None:
        """Wake the bus (its socket starts it), and wait until the manager is to be found on it."""
        ask = ["busctl", "--user", "status", "org.freedesktop.systemd1"]
        eventually(lambda: self.run(ask, check=False).returncode == 0, "the manager on its bus")

    def _serve(self, argv: Sequence[str], cgroup: str) -> int:
        """Start a daemon that says READY=1 when it is, wait for that, and return its pid."""
        name = Path(argv[0]).name
        with NotifySocket(self.directory) as notify:
            env = self.env | {"NOTIFY_SOCKET": notify.address}
            pid = self._box.serve(argv, env=env, cgroup=cgroup, log=f"{name}.log")
            try:
                notify.wait_for("READY", alive=pid)
            except (TimeoutError, ProcessLookupError) as error:
                said = (self.directory / f"{name}.log").read_text()
                raise ManagerError(f"{name} did not start: {error}\n{said}") from error
        return pid


class OwnManager(Manager):
    """The caller's own user manager; nothing of it is started or stopped here."""

    def __init__(self) -> None:
        if trouble := own_manager_missing():
            raise ManagerError(trouble)
        self.env = dict(os.environ)
        self.runtime_dir = Path(self.env.setdefault("XDG_RUNTIME_DIR", f"/run/user/{UID}"))
        default = f"unix:path={self.runtime_dir}/bus"
        self.bus_address = self.env.setdefault("DBUS_SESSION_BUS_ADDRESS", default)
        self.home = Path.home()

    def close(self) -> None:
        """Nothing: it was there before."""

    def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a program; `env` is added to `self.env`."""
        options.setdefault("text", True)
        return subprocess.Popen(argv, env=self.env | dict(env or {}), cwd=cwd, **options)


def own_manager() -> OwnManager:
    """Return the caller's own user manager, or raise ManagerError when there is none."""
    return OwnManager()


def user_manager() -> PrivateManager | OwnManager:
    """Return the caller's own user manager where it answers, else a private one."""
    own = own_manager_missing()
    if not own:
        return OwnManager()
    try:
        return PrivateManager()
    except ManagerError as error:
        raise ManagerError(f"{own}, and a private one can't be started: {error}") from error


def own_manager_missing() -> str:
    """Return why the caller's own user manager can't be used, "" when it can."""
    if not shutil.which("systemctl"):
        return "no systemctl: systemd is not installed"
    ask = ["systemctl", "--user", "--quiet", "show", "--property=Version"]
    env = {"XDG_RUNTIME_DIR": f"/run/user/{UID}", **os.environ}
    answer = subprocess.run(ask, env=env, capture_output=True, text=True)
    return (
        "" if answer.returncode == 0 else f"no user manager of your own ({answer.stderr.strip()})"
    )


def missing() -> str:
    """Return what this machine lacks for a private manager, "" when it lacks nothing."""
    if trouble := sandbox_missing():
        return trouble
    tools = [tool for tool in ("dbus-daemon", "busctl", "journalctl") if not shutil.which(tool)]
    tools += [name for name in ("systemd", "systemd-journald") if not systemd_program(name)]
    return f"no {', '.join(tools)} (Debian: apt install systemd dbus-daemon)" if tools else ""


def systemd_program(name: str) -> str:
    """Return the path of one of systemd's own programs, "" when it is not there."""
    return next((str(at / name) for at in SYSTEMD_DIRS if (at / name).exists()), "")


def kill(pid: int, how: signal.Signals) -> None:
    """Send the signal, and wait until the process is gone."""
    os.kill(pid, how)
    wait_exit(pid)


def _environment(home: Path) -> dict[str, str]:
    """Return what a login would set; of the caller's only PATH, after this Python's programs."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "USER": pwd.getpwuid(UID).pw_name,
        "LOGNAME": pwd.getpwuid(UID).pw_name,
        "SHELL": "/bin/bash",
        "TMPDIR": str(home),
        "XDG_RUNTIME_DIR": f"/run/user/{UID}",
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path=/run/user/{UID}/bus",
        "SYSTEMD_PAGER": "",
    }
