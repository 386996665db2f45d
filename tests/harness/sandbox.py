"""A sandbox: a mount namespace, a cgroup and a cgroup namespace whose end is bound to this process.

    with Sandbox("gpu1", setup="mount -t tmpfs tmpfs /run") as box:
        box.popen(["true"])              a child of this process, inside (its pid is the true one)
        box.serve(["dbus-daemon", …])    a daemon, the keeper's child; it outlives `popen`s
        box.directory                    short path, seen inside and outside under the same name

No pid namespace: pids mean the same inside and outside, so a test can signal, trace and pidfd
what it started. Whatever is left in the cgroup at the end is killed, also when this process
is: the keeper sees its standard input end.
"""

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.harness.closing import Closing
from tests.harness.waiting import LIMIT_SEC

KEEPER = Path(__file__).with_name("keeper.py")
PR_SET_CHILD_SUBREAPER = 36
COLLECT_EVERY_SEC = 0.05
LAYOUTS = ("unified", "hybrid")

# for `setup`: systemd's programs want the machine to have an id, and an unbooted one may have none
MACHINE_ID = """\
if ! grep -qxE '[0-9a-f]{32}' /etc/machine-id; then
    tr -d - </proc/sys/kernel/random/uuid >/run/machine-id
    mount --bind /run/machine-id /etc/machine-id
fi
"""


class SandboxError(Exception):
    """The sandbox can't be had here; str() says what is missing."""


def missing() -> str:
    """Return what this machine lacks for a sandbox, "" when it lacks nothing."""
    if os.geteuid() != 0:
        return "not root: mount namespaces and cgroups of one's own need it"
    tools = [tool for tool in ("nsenter", "mount", "umount") if not shutil.which(tool)]
    if tools:
        return f"no {', '.join(tools)} (Debian: apt install util-linux mount)"
    if not any(line.startswith("0::") for line in _lines("/proc/self/cgroup")):
        return "the kernel offers no cgroup2"
    if not Path("/etc/machine-id").exists():
        return "no /etc/machine-id (run systemd-machine-id-setup)"
    return ""


def become_subreaper() -> None:
    """Let orphans of this process's children come to it, not to a PID 1 that may not reap."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SandboxError("prctl(PR_SET_CHILD_SUBREAPER) is refused")


def _split(lines: list[str]) -> list[list[str]]:
    return [line.split(":", 2) for line in lines]


def _lines(file: str) -> list[str]:
    return Path(file).read_text().splitlines()


class Sandbox(Closing):
    """One sandbox, from `with` to its end; see the module for what it is."""

    def __init__(
        self, kind: str, *, setup: str, layout: str = "unified", cgroup_namespace: bool = True
    ) -> None:
        """`setup` is a shell script, run inside before anything else; $DIR is `directory`.

        systemd-nspawn wants no cgroup namespace around it: it looks for PID 1 in the tree.
        """
        if trouble := missing():
            raise SandboxError(trouble)
        if layout not in LAYOUTS:
            raise ValueError(layout)
        self.layout = layout
        self._namespaces = ["mount", *(["cgroup"] if cgroup_namespace else [])]
        self.directory = Path(tempfile.mkdtemp(prefix=f"sdq-{kind}-"))
        self._setup = f"DIR={self.directory}\n{setup}"
        self._keeper: subprocess.Popen[str] | None = None
        self._children: list[subprocess.Popen[Any]] = []
        self._inside = 0
        self._trees: list[Path] = []

    def __enter__(self) -> Self:
        become_subreaper()
        with (self.directory / "keeper.log").open("wb") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(KEEPER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            made = self._ask(
                {
                    "name": self.directory.name,
                    "directory": str(self.directory),
                    "layout": self.layout,
                    "namespaces": self._namespaces,
                    "setup": self._setup,
                }
            )
            self._inside = made["inside"]
            self._trees = [Path(f"{self._view}{tree}") for tree in made["trees"]]
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Kill everything inside and remove the sandbox; twice does no harm."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        inside = set(self.pids()) - {child.pid for child in self._children}
        keeper.stdin.close()
        self._wait_for(keeper, inside)
        keeper.stdout.close()
        for child in self._children:
            child.wait()
        shutil.rmtree(self.directory, ignore_errors=True)  # there only if it failed to start

    @staticmethod
    def _wait_for(keeper: subprocess.Popen[str], inside: set[int]) -> None:
        """Wait for the keeper's end, and collect what came to this process as orphans meanwhile.

        A pid namespace does not end before every zombie in it is collected.
        """
        for _ in range(round(LIMIT_SEC / COLLECT_EVERY_SEC)):
            for pid in inside:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            with contextlib.suppress(subprocess.TimeoutExpired):
                keeper.wait(COLLECT_EVERY_SEC)
                return
        raise SandboxError(f"the keeper {keeper.pid} can't take the sandbox down")

    def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cgroup: str = "init.scope",
        cwd: str | Path = "/",
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a child of this process inside, in that cgroup; `options` are Popen's own."""
        options.setdefault("text", True)
        child = subprocess.Popen(self.enter(argv, cgroup=cgroup, cwd=cwd), env=env, **options)
        self._children = [other for other in self._children if other.poll() is None]
        self._children.append(child)
        return child

    def serve(self, argv: Sequence[str], *, env: Mapping[str, str], cgroup: str, log: str) -> int:
        """Start a daemon inside, its output in `directory`/`log`, and return its pid."""
        inside = self.enter(argv, cgroup=cgroup, cwd="/")
        log_file = str(self.directory / log)
        pid: int = self._ask({"argv": inside, "env": dict(env), "log": log_file})["pid"]
        return pid

    def enter(self, argv: Sequence[str], *, cgroup: str, cwd: str | Path) -> list[str]:
        """Return the command that becomes `argv` inside; the pid stays that of its start.

        The cgroup is entered by the keeper's view of the tree: from within the cgroup namespace
        a systemd host's cgroup2 (nsdelegate) would not let anyone move in.
        """
        flags = " ".join(f"--{name}" for name in self._namespaces)
        script = (
            'into=$1 target=$2; shift 2; IFS=:; for tree in $into; do mkdir -p "$tree"; '
            'echo $$ >"$tree/cgroup.procs"; done; unset IFS; '
            f'exec nsenter --target "$target" {flags} -- env --chdir "$0" "$@"'
        )
        into = ":".join(f"{tree}/{cgroup}" for tree in self._trees)
        return ["/bin/sh", "-ec", script, str(cwd), into, str(self._inside), *argv]

    def pids(self) -> list[int]:
        """Return the pids of everything inside."""
        pids: list[int] = []
        for at, _, _ in os.walk(self._trees[0]) if self._trees else ():
            with contextlib.suppress(OSError):  # gone since it was listed
                pids += map(int, Path(at, "cgroup.procs").read_text().split())
        return pids

    @property
    def cgroup_dir(self) -> Path:
        """The sandbox's own cgroup, as a path that works here."""
        return self._trees[0]

    def trees_of(self, pid: int) -> list[Path]:
        """Return, as the keeper sees them, the directories above the cgroup of a PID 1 inside."""
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        at = {names: path.removesuffix("/init.scope") for _, names, path in _split(lines)}
        if self.layout == "unified":
            return [Path(f"{self._view}/sys/fs/cgroup{at['']}")]
        named = Path(f"{self._view}/sys/fs/cgroup/systemd{at['name=systemd']}")
        return [Path(f"{self._view}/sys/fs/cgroup/unified{at['']}"), named]

    @property
    def _view(self) -> str:
        assert self._keeper is not None
        return f"/proc/{self._keeper.pid}/root"

    @property
    def root(self) -> Path:
        """The root directory as it is seen inside, as a path that works outside."""
        return Path(f"/proc/{self._inside}/root")

    def _ask(self, question: Mapping[str, object]) -> dict[str, Any]:
        assert self._keeper is not None
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(question), file=self._keeper.stdin, flush=True)
        line = self._keeper.stdout.readline()
        if not line:
            said = (self.directory / "keeper.log").read_text().splitlines() or ["no word of it"]
            raise SandboxError(f"the sandbox could not be made: {said[-1]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
