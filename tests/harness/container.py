"""A booted container: real systemd as PID 1, of three versions and in both cgroup layouts.

    with Container("257") as c:                          booted, all start jobs done, state running
        c.run(["systemctl", "status"])                   -> CompletedProcess, checked; as root
        c.run([...], user="anna", check=False, input="…", env={"KEY": "value"}, cwd="/tmp")
        p = c.popen(["sdqueue", "daemon"], stdout=PIPE)  -> Popen; its signals reach the program
        c.add_user("anna", linger=True)                  a user, and with linger a user manager
        c.root / "etc/…"                                 its files, to read and write from here
        c.version                                        "257", asked of the systemd inside
        c.reboot()                                       shut down properly, boot again
        c.power_cut()                                    no shutdown at all, boot again
        c.journal("--unit", "x.service")                 -> list of entries
        c.show("x.service", "ActiveState")               one property of a unit
    Container("252", layout="hybrid")                    252 in the machine's own cgroup layout

The files are an overlay that lives in memory, on an unpacked image or on the machine's own root
(images.py), and lasts until the end of `with`: over reboots and power cuts, like a disk. The
checkout is at /sdqueue, read-only; `sdqueue` is in PATH, run by the container's own python3. The
network is loopback only. `missing(version)` says why it can't run here.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.harness import images
from tests.harness.closing import Closing
from tests.harness.notify import NotifySocket
from tests.harness.process import finish
from tests.harness.sandbox import MACHINE_ID, Sandbox, SandboxError
from tests.harness.sandbox import missing as sandbox_missing
from tests.harness.waiting import LIMIT_SEC, wait_exit

VERSIONS = tuple(images.SUITES)
BOOT_LIMIT_SEC = 180.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHONPATH = "/sdqueue:/opt/sdqueue-dependencies"
LAUNCHER = f"""#!/usr/bin/python3
import sys
sys.path[:0] = {PYTHONPATH.split(":")}
from sdqueue.cli import main
sys.exit(main())
"""
# The cgroup is joined by the child of nsenter (a process of no pid in there would confuse PID 1),
# through a file that was opened out here (a host's cgroup2 lets nobody move in from within).
JOIN = """
mkdir -p "$1" "$2"
exec 8>"$1/cgroup.procs" 9>"$2/cgroup.procs"
shift 2
exec "$@"
"""
JOINED = 'echo 0 >&8; echo 0 >&9; exec 8>&- 9>&-; exec "$@"'
USER_BUS = (
    "export XDG_RUNTIME_DIR=/run/user/$(id -u); "
    "export DBUS_SESSION_BUS_ADDRESS=unix:path=$XDG_RUNTIME_DIR/bus; "
)


class ContainerError(Exception):
    """The container can't be had or did not boot; str() says why."""


def missing(version: str) -> str:
    """Return what this machine lacks to boot that version, "" when it lacks nothing."""
    if trouble := sandbox_missing():
        return trouble
    if not shutil.which("systemd-nspawn"):
        return "no systemd-nspawn (Debian: apt install systemd-container)"
    return images.missing(version)


class Inside(subprocess.Popen[str]):
    """A program in another pid namespace: `pid` is its nsenter's, and signals go to itself."""

    def send_signal(self, sig: int) -> None:
        """Signal the program; nsenter ends with it, and as it ended."""
        if self.poll() is None and (pid := self.program_pid()):
            os.kill(pid, sig)

    def program_pid(self) -> int:
        """Return the program's pid as it is out here, 0 when it is not there (any more)."""
        try:
            pids = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except FileNotFoundError:
            return 0
        return int(pids[0]) if pids else 0


class Container(Closing):
    """One booted container, from `with` to its end; see the module."""

    def __init__(self, version: str, *, layout: str = "unified") -> None:
        if trouble := missing(version):
            raise ContainerError(trouble)
        if layout == "hybrid" and version != "252":
            raise ContainerError(f"systemd {version} can't boot in the hybrid cgroup layout")
        setup = _setup(images.root_of(version))
        self._box = Sandbox("c", setup=setup, layout=layout, cgroup_namespace=False)
        self.layout = layout
        self.version = version
        self._nspawn = self._leader = self._boots = 0

    def __enter__(self) -> Self:
        try:
            self._box.__enter__()
        except SandboxError as error:
            raise ContainerError(str(error)) from error
        try:
            self._boot()
            said = self.run(["systemctl", "--version"]).stdout
            self.version = said.split()[1]
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End everything; twice does no harm."""
        self._box.close()

    @property
    def root(self) -> Path:
        """The root directory inside, /run and /proc too, as a path that works here."""
        return Path(f"/proc/{self._leader}/root")

    def popen(
        self,
        argv: Sequence[str],
        *,
        user: str = "root",
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> "Inside":
        """Start a program inside as `user`, with the environment of a fresh login and `env`."""
        become = ["setpriv", "--pdeathsig=KILL", "--reset-env"]
        if user != "root":
            become += [f"--reuid={user}", f"--regid={user}", "--init-groups"]
        login = ["/bin/sh", "-ec", f'cd {cwd or "~"}; {USER_BUS}exec env "$@"', "sh"]
        settings = {"PATH": PATH, "LANG": "C.UTF-8", "SYSTEMD_PAGER": "", **dict(env or {})}
        pairs = [f"{key}={value}" for key, value in settings.items()]
        options.setdefault("text", True)
        return Inside([*self._enter(user), *become, *login, *pairs, *argv], **options)

    def run(
        self,
        argv: Sequence[str],
        *,
        check: bool = True,
        limit_sec: float = LIMIT_SEC,
        input: str | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside to its end, output captured; with `check` a failure raises."""
        pipe = subprocess.PIPE
        given = subprocess.DEVNULL if input is None else pipe
        options = {"stdin": given, "stdout": pipe, "stderr": pipe, **options}
        return finish(self.popen(argv, **options), argv, input, limit_sec, check=check)

    def journal(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the journal's entries that match, oldest first; journald is made to catch up."""
        self.run(["journalctl", "--sync"])
        lines = self.run(["journalctl", "--output=json", "--quiet", *arguments]).stdout
        return [json.loads(line) for line in lines.splitlines()]

    def show(self, unit: str, name: str) -> str:
        """Return one property of a unit of PID 1, as systemctl spells it."""
        ask = ["systemctl", "show", f"--property={name}", "--value", unit]
        return self.run(ask).stdout.rstrip("\n")

    def add_user(self, name: str, *, linger: bool = False) -> None:
        """Add a user; with `linger` its user manager runs when this returns, and after reboots."""
        self.run(["useradd", "--create-home", "--shell=/bin/bash", "--user-group", name])
        if linger:
            self.run(["loginctl", "enable-linger", name])
            uid = self.run(["id", "--user", name]).stdout.strip()
            self.run(["systemctl", "start", f"user@{uid}.service"])

    def reboot(self) -> None:
        """Reboot by the book, and return when it is up again."""
        self.run(["systemctl", "--no-block", "reboot"])
        wait_exit(self._nspawn, limit_sec=BOOT_LIMIT_SEC)
        self._boot()

    def power_cut(self) -> None:
        """End everything at once, as a power cut does, and boot again on the same files.

        What programs had written survives, synced or not: the page cache is the machine's.
        """
        for pid in (self._nspawn, self._leader):
            os.kill(pid, signal.SIGKILL)
        wait_exit(self._leader)
        wait_exit(self._nspawn)
        self._boot()

    def _enter(self, user: str) -> list[str]:
        """Return the command that becomes its arguments inside, in a session's cgroup."""
        uid = self._uid(user)
        scope = f"user.slice/user-{uid}.slice/session-t{uid}.scope"
        trees = self._box.trees_of(self._leader)
        outer = ["/bin/sh", "-ec", JOIN, "sh", f"{trees[0]}/{scope}", f"{trees[-1]}/{scope}"]
        spaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"]
        nsenter = ["nsenter", "--target", str(self._leader), *spaces]
        return [*outer, *nsenter, "/bin/sh", "-ec", JOINED, "sh"]

    def _uid(self, user: str) -> int:
        users = (self.root / "etc/passwd").read_text().splitlines()
        return next(int(line.split(":")[2]) for line in users if line.startswith(f"{user}:"))

    def _boot(self) -> None:
        """Start PID 1 and wait until it says that it has finished starting."""
        self._boots += 1
        command = [
            "systemd-nspawn",
            "--quiet",
            "--register=no",
            "--keep-unit",
            "--boot",
            "--console=pipe",
            "--notify-ready=yes",
            "--private-network",
            "--resolv-conf=off",
            "--timezone=off",
            "--hostname=sdqueue-test",
            f"--machine=sdqueue-test-{self._boots}",  # from 257 on a killed nspawn leaves its mount
            f"--directory={self._box.directory}/root",
            f"--bind-ro={images.CHECKOUT}:/sdqueue",
            f"--bind-ro={images.dependencies()}:/opt/sdqueue-dependencies",
        ]
        with NotifySocket(self._box.directory) as notify:
            env = {"PATH": PATH, "NOTIFY_SOCKET": notify.address}
            self._nspawn = self._box.serve(command, env=env, cgroup="machine", log="nspawn.log")
            try:
                said = notify.wait_for("READY", alive=self._nspawn, limit_sec=BOOT_LIMIT_SEC)
            except (TimeoutError, ProcessLookupError) as error:
                log = (self._box.directory / "nspawn.log").read_text(errors="replace")
                raise ContainerError(f"it did not boot: {error}\n{log[-3000:]}") from error
        self._leader = int(said["X_NSPAWN_LEADER_PID"])


def _setup(lower: Path) -> str:
    """Return the script that lays the overlay over `lower` and makes it a machine of its own.

    What an administrator enabled on the machine's own root is taken away, so that every version
    boots the same: what its packages start by themselves.
    """
    return f"""
mount -t tmpfs -o mode=755 tmpfs /run
{MACHINE_ID}mkdir $DIR/memory $DIR/root
mount -t tmpfs -o mode=755 tmpfs $DIR/memory
mkdir $DIR/memory/upper $DIR/memory/work
layers=lowerdir={lower},upperdir=$DIR/memory/upper,workdir=$DIR/memory/work
mount -t overlay -o $layers overlay $DIR/root
cd $DIR/root
tr -d - </proc/sys/kernel/random/uuid >etc/machine-id
rm -rf etc/systemd/system etc/systemd/user etc/rc?.d etc/fstab etc/hostname var/log/journal
mkdir -p etc/systemd/system sdqueue opt/sdqueue-dependencies usr/local/bin
cat >usr/local/bin/sdqueue <<'END'
{LAUNCHER}END
chmod 755 usr/local/bin/sdqueue
"""
