"""A user of a booted container, with that user's manager and queue; root has PID 1 and root's.

anna = Login(container, "anna"); root = Login(container, "root")     as a Manager, see there
queue = UserQueue(anna); queue.install()                             as MachineQueue, see there
"""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.harness.container import PYTHONPATH, Container
from tests.harness.images import CHECKOUT
from tests.harness.machine import SERVICE, MachineQueue
from tests.harness.manager import Manager
from tests.harness.queue import plain


class Login(Manager):
    """A user's fresh login; pids that programs tell are those inside."""

    python = "python3"
    pythonpath = PYTHONPATH

    def __init__(self, container: Container, user: str) -> None:
        self.container = container
        self.user = user
        self.env = {}
        self.scope = "--system" if user == "root" else "--user"

    @property
    def home(self) -> Path:  # type: ignore[override]
        """The home directory, by a path that changes with each boot."""
        at = "root" if self.user == "root" else f"home/{self.user}"
        return self.container.root / at

    @property
    def uid(self) -> int:
        """The user's id."""
        return int(self.container.run(["id", "--user", self.user]).stdout)

    def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a program inside."""
        return self.container.popen(argv, user=self.user, env=env, cwd=cwd, **options)

    def close(self) -> None:
        """Nothing: it is the container's."""


class UserQueue(MachineQueue):
    """The controller of a user, as a service of the user's manager that is started with it."""

    def __init__(self, login: Login) -> None:
        super().__init__(login.container)
        self.login = login

    @property
    def spool(self) -> Path:  # type: ignore[override]
        """The spool: by a path that changes with each boot."""
        return self.login.home / ".local/state/sdqueue"

    def install(self) -> None:
        """Put the service where it belongs, and start it."""
        units = self.container.root / "etc/systemd/user"
        units.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / "units/user/sdqueue.service", units)
        self.login.systemctl("daemon-reload")
        self.login.systemctl("enable", SERVICE)
        self.start()

    def start(self, *_wrapper: str) -> None:
        """Start the controller and wait until it is ready."""
        self.login.systemctl("start", SERVICE)

    def kill(self) -> None:
        """Kill the controller with -9, and keep it down until `start`."""
        self.login.systemctl("kill", "--signal=KILL", SERVICE)
        self.login.systemctl("stop", SERVICE)

    def said(self) -> str:
        """Return what the controllers wrote."""
        lines = self.container.journal("--user-unit", SERVICE)
        return "\n".join(str(line.get("MESSAGE", "")) for line in lines)

    def put(
        self, name: str, body: str, *headers: str, shebang: str = "#!/bin/bash", owner: str = ""
    ) -> None:
        """Drop a job file into queue/."""
        super().put(name, body, *headers, shebang=shebang, owner=owner or self.login.user)

    def ask(self, method: str, *arguments: str) -> Any:
        """Call a method of org.sdqueue1.Manager on the user's bus, and return what it answers."""
        call = ["busctl", "--user", "--json=short", "call", "org.sdqueue1", "/org/sdqueue1"]
        call += ["org.sdqueue1.Manager", method, *arguments]
        answer = json.loads(self.login.run(call).stdout or "null")
        return plain(answer["data"][0]) if answer else None
