"""The keeper of one sandbox: it makes it, starts services in it, and takes it down.

Run as a program (`python -I -S keeper.py`), by sandbox.py only. It knows cgroups and namespaces,
and nothing of what runs in them.

It is a process of its own because the sandbox must end also when the process that wanted it is
killed: standard input is the leash, and its end is the order to take everything down. It is a
subreaper, so that the daemons it started leave no zombies either, on a machine whose PID 1 does
not reap.

The first line on standard input is the sandbox's description, each further line a service to
start, and each is answered by one line: JSON in, JSON out.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

NAMESPACES = {"mount": 0x00020000, "cgroup": 0x02000000}
PR_SET_CHILD_SUBREAPER = 36
CGROUPS = Path("/sys/fs/cgroup")
MOUNTS = {
    # nothing but cgroup2
    "unified": f"mount -t cgroup2 cgroup2 {CGROUPS}",
    # systemd's named v1 tree, in which units are, with cgroup2 beside it
    "hybrid": f"""
        mount -t tmpfs -o mode=755 tmpfs {CGROUPS}
        mkdir {CGROUPS}/unified {CGROUPS}/systemd
        mount -t cgroup2 cgroup2 {CGROUPS}/unified
        mount -t cgroup -o none,name=systemd cgroup {CGROUPS}/systemd
    """,
}

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Make the sandbox, serve its owner until standard input ends, and leave nothing."""
    wanted = json.loads(sys.stdin.readline())
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    unshare(NAMESPACES["mount"])
    sh("mount --make-rprivate /")
    trees = [directory / wanted["name"] for directory in own_cgroups(wanted["layout"])]
    try:
        for tree in trees:
            tree.mkdir()
        inside = start_inside(trees, wanted["setup"], wanted["namespaces"])
        answer({"inside": inside, "trees": [str(tree) for tree in trees]})
        signal.signal(signal.SIGCHLD, lambda *_: reap(os.WNOHANG))
        for line in sys.stdin:
            answer({"pid": start_service(**json.loads(line))})
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        take_down(trees)
    shutil.rmtree(wanted["directory"])


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags`."""
    if libc.unshare(flags) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"unshare: {os.strerror(error)}")


def own_cgroups(layout: str) -> list[Path]:
    """Mount the trees of `layout`, and return this process's own directory in each, unified first.

    The machine's own layout does not matter: both are mounted over it.
    """
    sh(f"umount --recursive --lazy {CGROUPS} 2>/dev/null || true\n{MOUNTS[layout]}")
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = {names: path.lstrip("/") for _, names, path in lines}
    if layout == "unified":
        return [CGROUPS / own[""]]
    return [CGROUPS / "unified" / own[""], CGROUPS / "systemd" / own["name=systemd"]]


def start_inside(trees: list[Path], setup: str, namespaces: list[str]) -> int:
    """Start the process that holds the inner namespaces open, and return its pid once it is ready.

    `setup` is a shell script: it runs in the new namespaces before anything else does.
    """
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        hold_inside(trees, setup, namespaces, told)
    os.close(told)
    with os.fdopen(ready) as pipe:
        if pipe.read() != "ready":
            raise SystemExit("keeper: the sandbox could not be set up")
    return pid


def hold_inside(trees: list[Path], setup: str, namespaces: list[str], told: int) -> None:
    """Be the process inside: enter the cgroups, make the namespaces, and wait to be killed."""
    try:
        for tree in trees:
            (tree / "cgroup.procs").write_text("0")
        unshare(sum(NAMESPACES[name] for name in namespaces))
        for tree in trees:
            (tree / "init.scope").mkdir()
            (tree / "init.scope" / "cgroup.procs").write_text("0")
        if "cgroup" in namespaces:
            sh(f"umount {CGROUPS}; mount -t cgroup2 cgroup2 {CGROUPS}")
        sh(setup)
        os.write(told, b"ready")
        os.close(told)
        while True:
            signal.pause()
    finally:
        os._exit(1)


def sh(script: str) -> None:
    """Run a shell script that must succeed; its words go where the keeper's own go."""
    subprocess.run(["/bin/sh", "-c", "set -e\n" + script], check=True, stdout=sys.stderr)


def start_service(argv: list[str], env: dict[str, str], log: str) -> int:
    """Start a daemon that outlives whoever asked, output to `log`, and return its pid."""
    with open(log, "ab") as output:
        process = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    process.returncode = 0  # not Popen's to collect: see reap()
    return process.pid


def answer(words: dict[str, object]) -> None:
    """Say one line to the owner."""
    print(json.dumps(words), flush=True)


def take_down(trees: list[Path]) -> None:
    """Kill what is in the sandbox, reap it, and remove the cgroups."""
    unified = trees[0]
    if unified.exists():
        kill_all(unified)
        while "populated 1" in (unified / "cgroup.events").read_text():
            time.sleep(0.005)
    reap(0)
    for tree in trees:
        remove_tree(tree)


def kill_all(tree: Path) -> None:
    """Kill every process below `tree`, at once where the kernel can (5.14)."""
    at_once = tree / "cgroup.kill"
    if at_once.exists():
        at_once.write_text("1")
        return
    for at, _, _ in os.walk(tree):  # not rglob(), which fails on a directory that goes meanwhile
        with contextlib.suppress(OSError):
            for pid in Path(at, "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)


def reap(options: int) -> None:
    """Collect children, adopted ones too: those that are dead (WNOHANG), or all (0)."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def remove_tree(tree: Path) -> None:
    """Remove a cgroup with everything below it, deepest first."""
    for directory, _, _ in os.walk(tree, topdown=False):
        for _ in range(400):  # a killed process leaves its cgroup a moment after it is reaped
            try:
                os.rmdir(directory)
                break
            except OSError:
                time.sleep(0.005)


if __name__ == "__main__":
    main()
