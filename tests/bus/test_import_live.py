"""`sdqueue import` into a queue whose controller is at work."""

import json
import subprocess
import sys
from pathlib import Path

from tests.harness.manager import PrivateManager
from tests.harness.queue import Queue
from tests.harness.tools import require
from tests.harness.waiting import eventually

PROGRAM = [sys.executable, "-m", "sdqueue", "--user"]
JOB = "#!/bin/bash\necho {name} >>{home}/ran\n"


def put(top: Path, state: str, name: str, text: str) -> Path:
    (top / state).mkdir(parents=True, exist_ok=True)
    file = top / state / f"{name}.job"
    file.write_text(text)
    return file


def test_all_waiting_jobs_run_once_and_in_order_while_one_of_the_old_queue_still_runs() -> None:
    from tests.harness import manager as managers

    require(managers.missing())
    with PrivateManager() as manager, Queue(manager) as queue:
        top = manager.home / "old"
        names = [f"{number}-cpu-x" for number in range(1, 31)]
        for name in names:
            put(top, "queue", name, JOB.format(name=name, home=manager.home))
        again = names[4]
        put(top, "done", again, JOB.format(name="old", home=manager.home))
        alive = put(top, "running", "0-gpu-r", "#!/bin/bash\nread -r line\n")
        put(top, "running", "0-cpu-cut", JOB.format(name="cut", home=manager.home))
        argv = [*PROGRAM, "import", str(top), "--json=short"]
        with subprocess.Popen(["bash", str(alive)], stdin=subprocess.PIPE) as old_job:
            done = manager.run(argv, check=False)
            assert done.returncode == 1, done.stderr
            left = [row["file"] for row in json.loads(done.stdout) if row["left"]]
            assert left == ["running/0-gpu-r.job"]
            wait = [*PROGRAM, "wait", "--lane", "cpu"]
            assert manager.run(wait, check=False).returncode == 0
            assert alive.exists()
            old_job.communicate(b"end\n")
        assert (manager.home / "ran").read_text().split() == names
        assert manager.run(argv).returncode == 0
        eventually(lambda: (queue.spool / "parked/0-gpu-r.job").exists(), "it is set aside")
        manager.run([*PROGRAM, "release", "0-cpu-cut"])
        queue.wait("0-cpu-cut", "done")
        ran = (manager.home / "ran").read_text().split()
        assert ran == [*names, "cut"], "an old end is no work, and what was cut off ran when asked"
        assert [e["event"] for e in queue.events(again)].count("done") == 1
