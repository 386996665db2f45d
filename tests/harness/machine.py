"""The queue of a whole machine under test: root's controller, a service of a booted container.

    queue = MachineQueue(container); queue.install()    the unit and the bus policy, started
    queue.put("1-cpu-a", "true", owner="anna")          a job file of hers in root's spool
    queue.wait("1-cpu-a", "done")                       as of a user's queue; see queue.py

It is enabled, so that it comes up again after a reboot by itself.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from tests.harness.container import Container
from tests.harness.images import CHECKOUT
from tests.harness.queue import Queue, plain
from tests.harness.waiting import eventually

SERVICE = "sdqueue.service"


class MachineQueue(Queue):
    """The controller of a booted container; its files are where they are inside."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.process = None

    @property
    def spool(self) -> Path:  # type: ignore[override]
        """The spool: by a path that changes with each boot."""
        return self.container.root / "var/lib/sdqueue"

    def install(self) -> None:
        """Put the service and its policies where they belong, and start it."""
        for file, directory in (
            ("system/sdqueue.service", "etc/systemd/system"),
            ("dbus-1/org.sdqueue1.conf", "etc/dbus-1/system.d"),
            ("polkit-1/org.sdqueue1.policy", "usr/share/polkit-1/actions"),
        ):
            where = self.container.root / directory
            where.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / "units" / file, where)
        self.container.run(["systemctl", "daemon-reload"])
        self.container.run(["systemctl", "reload", "dbus.service"])
        self.container.run(["systemctl", "enable", SERVICE])
        self.container.run(["systemctl", "start", SERVICE])

    def start(self, *_wrapper: str) -> None:
        """Start the controller and wait until it is ready."""
        self.container.run(["systemctl", "start", SERVICE])

    def kill(self) -> None:
        """Kill the controller with -9, and keep it down until `start`."""
        self.container.run(["systemctl", "kill", "--signal=KILL", SERVICE])
        self.container.run(["systemctl", "stop", SERVICE])

    def said(self) -> str:
        """Return what the controllers wrote."""
        lines = self.container.journal("--unit", SERVICE)
        return "\n".join(str(line.get("MESSAGE", "")) for line in lines)

    def put(
        self, name: str, body: str, *headers: str, shebang: str = "#!/bin/bash", owner: str = "root"
    ) -> None:
        """Drop a job file into queue/ that belongs to `owner` (a name or a number)."""
        lines = [shebang, *(f"# {header}" for header in headers), body, ""]
        aside = self.spool / f"tmp/{name}.aside"
        aside.write_text("\n".join(lines))
        uid = int(owner) if owner.isdigit() else self._uid(owner)
        os.chown(aside, uid, uid)
        aside.rename(self.spool / "queue" / f"{name}.job")

    def _uid(self, name: str) -> int:
        return int(self.container.run(["id", "--user", name]).stdout)

    def wait_running(self, name: str) -> str:
        """Wait until PID 1 runs the job and the log says so, and return its unit."""
        unit = f"sdqueue-job-{name}.service"
        begun = (["start"], ["reattached"])
        eventually(lambda: self.words(name)[-1:] in begun, f"{unit} to run")
        return unit

    def ask(self, method: str, *arguments: str) -> Any:
        """Call a method of org.sdqueue1.Manager on the system bus, and return what it answers."""
        call = ["busctl", "--json=short", "call", "org.sdqueue1", "/org/sdqueue1"]
        call += ["org.sdqueue1.Manager", method, *arguments]
        answer = json.loads(self.container.run(call).stdout or "null")
        return plain(answer["data"][0]) if answer else None
