"""One function says how a lane is: whoever is asked, however, gives the same answer.

A real queue goes through a random series of what people do; after each of these, and at any moment
in between, is-free, status, owners, why, the rows and the lane's object on the bus are held against
one another. Answers of different moments are told apart by their generation.
"""

import io
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sdqueue.cli import main
from tests.bus.test_cli_live import Live
from tests.harness.manager import PrivateManager
from tests.harness.waiting import eventually

SEED = 20261129
STEPS = 20
LANES = ("gpu", "net")
PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
STATUS_OF = {"free": 0, "unknown": 4}


class Told(NamedTuple):
    """What everybody said of all lanes in a moment in which nothing changed."""

    status: dict[str, Any]
    free: dict[str, tuple[int, dict[str, Any]]]
    owners: list[dict[str, Any]]
    bus: dict[str, dict[str, Any]]


class Quick(Live):
    """Calls the program within this process: it is called some hundred times here."""

    def __call__(self, *words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        assert not options
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        before = dict(os.environ)
        os.environ.clear()
        outside = {"XDG_RUNTIME_DIR": str(self.manager.runtime_dir)}
        os.environ.update(self.manager.env | outside)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                status = main(["--user", *words])
        finally:
            os.environ.clear()
            os.environ.update(before)
        out.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), err.getvalue())


@pytest.fixture
def live(manager: PrivateManager) -> Iterator[Live]:
    """Give a queue whose gpu lane is watched for a program of this test's own."""
    config = manager.home / ".config/sdqueue"
    config.mkdir(parents=True)
    name = f"engine-{id(manager) % 10**6}"
    (config / "sdqueue.toml").write_text(
        f'[lane.gpu]\nforeign = ["{name}"]\nexcludes = ["net"]\n[lane.net]\n[lane.cpu]\n'
    )
    sleep = shutil.which("sleep")
    assert sleep
    shutil.copy(sleep, manager.home / name)
    live = Quick(manager)
    live.start()
    yield live
    live.stop()


def lane_object(live: Live, lane: str) -> dict[str, Any]:
    """Read a lane's properties from its object."""
    path = f"/org/sdqueue1/lane/{lane}"
    call = ["busctl", "--user", "--json=short", "call", "org.sdqueue1", path]
    call += ["org.freedesktop.DBus.Properties", "GetAll", "s", "org.sdqueue1.Lane"]
    found = json.loads(live.manager.run(call).stdout)["data"][0]
    return {key: value["data"] for key, value in found.items()}


def ask_all(live: Live) -> Told:
    """Ask everybody, again and again until nothing changed meanwhile."""

    def once() -> Told | None:
        before = live.json("status")
        owners = live.json("owners")
        bus = {lane: lane_object(live, lane) for lane in LANES}
        answers = {lane: live("is-free", lane, "--json=short") for lane in LANES}
        after = live.json("status")
        if lanes_of(before) != lanes_of(after):
            return None
        free = {lane: (a.returncode, json.loads(a.stdout)) for lane, a in answers.items()}
        return Told(after, free, owners, bus)

    found = eventually(once, "a moment in which nothing changes")
    assert found
    return found


def lanes_of(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {lane["name"]: lane for lane in status["lanes"]}


def check(live: Live, told: Told) -> None:
    """Hold the answers against one another."""
    for name in LANES:
        row = lanes_of(told.status)[name]
        status, answer = told.free[name]
        said = [answer[key] for key in ("state", "holder", "detail", "generation")]
        assert said == [row[key] for key in ("state", "holder", "detail", "generation")]
        bus = told.bus[name]
        assert said == [bus[key] for key in ("State", "Holder", "Detail", "Generation")]
        assert [row["next"], row["occupants"]] == [bus["Next"], bus["Occupants"]]
        assert status == STATUS_OF.get(row["state"], 1)
        assert answer["free"] is (row["state"] == "free")
        check_owners(row, [each for each in told.owners if each["lane"] == name])
        if row["next"]:
            check_why(live, row)


def check_owners(row: dict[str, Any], owners: list[dict[str, Any]]) -> None:
    """See that who is told to use a lane is what its state says."""
    by_standing = {each["standing"]: each for each in owners if each["counts"]}
    units = {each["unit"] for each in owners if each["standing"] == "ours"}
    leases = {unit for unit in row["occupants"] if unit.startswith("sdqueue-lease-")}
    assert units == set(row["occupants"]) - leases, (row, owners)
    assert len(leases) == sum(each["standing"] == "leased" for each in owners), (row, owners)
    assert len(row["holders"]) == len(row["occupants"])
    assert not (row["waiters"] and not leases)
    if row["state"] == "free":
        assert by_standing == {}, (row, owners)
    if row["state"] == "running":
        assert row["holder"] in units
        assert row["since"] is None or row["since"] > 1.7e9
    if row["state"] == "leased":
        assert row["holder"] in leases
        assert str(by_standing["leased"]["pid"]) in row["detail"]
        assert row["since"] == by_standing["leased"]["since"]
    if row["state"] == "foreign" and row["holder"]:
        who = by_standing["foreign"]
        assert row["holder"] in (who["unit"], who["comm"])
        assert str(who["pid"]) in row["detail"]


def check_why(live: Live, row: dict[str, Any]) -> None:
    """See that the reason of a lane's next job is what the lane's state says; if nothing came
    between."""
    ((chain),) = live.json("why", row["next"])
    first = chain["chain"][0]
    if live.json("status")["lanes"] and lanes_of(live.json("status"))[row["name"]] != row:
        return
    codes = {
        "running": {"lane-taken"},
        "leased": {"leased"},
        "paused": {"paused"},
        # Who is in the lane is told first; its job may wait for the excluded lane before that.
        "foreign": {"foreign", "excluded-lane"},
        "unknown": {"starting", "trouble", "checking", "foreign"},
    }
    if row["state"] in codes:
        assert first["code"] in codes[row["state"]], (row, chain)
    if row["state"] == "wanted":
        assert row["holder"] == first["name"], (row, chain)
    assert row["reason"] is None or row["reason"]["code"] == first["code"], (row, chain)


class Doings:
    """What happens to the queue; each is drawn as often as it comes."""

    def __init__(self, live: Live, draw: random.Random) -> None:
        self.live = live
        self.draw = draw
        self.count = 0
        self.engine: subprocess.Popen[str] | None = None
        self.holder: subprocess.Popen[str] | None = None
        self.program = next(live.manager.home.glob("engine-*"))
        self.all: tuple[Callable[[], object], ...] = (
            self.submit,
            self.submit,
            self.submit,
            self.end,
            self.end,
            self.cancel,
            self.pause,
            self.resume,
            self.resume,
            self.stranger,
            self.hold,
            self.hold,
        )

    def submit(self, lane: str = "") -> None:
        """Put a job in one of the two lanes, which runs until `end`."""
        self.count += 1
        name, lane = f"{self.count}-j", lane or self.draw.choice(LANES)
        body = f"until [ -e {self._flag(name)} ]; do sleep 0.05; done"
        self.live.submit("--lane", lane, "--name", name, "--", "sh", "-c", body)

    def end(self) -> None:
        """Have a job that runs end by itself, and see that it has."""
        for job in self.live.json("list", "--state=running")[:1]:
            self._flag(job["name"]).touch()
            assert self.live("wait", job["name"]).returncode in (0, 5)

    def cancel(self) -> None:
        """Cancel any job that is alive."""
        rows = self.live.json("list", "--state=running,queued")
        if rows:
            self.live("cancel", self.draw.choice(rows)["name"])

    def pause(self) -> None:
        """Pause a lane."""
        self.live("pause", self.draw.choice(LANES))

    def resume(self) -> None:
        """Let all lanes go on."""
        self.live("resume", *LANES)

    def stranger(self) -> None:
        """Have a stranger come to the gpu lane, or go."""
        if self.engine:
            self.stop()
            return
        self.engine = self.live.manager.popen([str(self.program), "1000"])
        comm = Path(f"/proc/{self.engine.pid}/comm")
        eventually(lambda: comm.read_text().startswith("engine-"), "its name")

    def hold(self, lane: str = "") -> None:
        """Have somebody hold a lane, if that can be had, or let go of it."""
        if self.holder:
            self.let_go()
            return
        words = ("hold", lane or self.draw.choice(LANES), "--wait-timeout=0", "--")
        holder = self.live.popen(*words, "sh", "-c", "echo up; exec sleep 1000", **PIPES)
        assert holder.stdout
        self.holder = holder
        if holder.stdout.readline() != "up\n":
            assert holder.wait() == 5
            self.let_go()

    def let_go(self) -> None:
        """Have the holder go."""
        if self.holder:
            self.holder.kill()
            self.holder.communicate()
            self.holder = None

    def stop(self) -> None:
        """Have the stranger go."""
        if self.engine:
            self.engine.kill()
            self.engine.wait()
            self.engine = None

    def _flag(self, name: str) -> Path:
        return self.live.manager.home / f"end-{name}"


def test_whoever_is_asked_how_a_lane_is_gives_the_same_answer(live: Live) -> None:
    doings = Doings(live, random.Random(SEED))

    def happens(doing: Callable[[], object], lane: str, state: str) -> None:
        doing()
        eventually(lambda: lanes_of(live.json("status"))[lane]["state"] == state, state)
        check(live, ask_all(live))

    try:
        happens(doings.stranger, "gpu", "foreign")
        happens(doings.stranger, "gpu", "free")
        happens(lambda: doings.hold("gpu"), "gpu", "leased")
        happens(lambda: doings.submit("net"), "net", "wanted")
        happens(doings.hold, "net", "running")
        happens(doings.end, "net", "free")
        happens(lambda: doings.submit("gpu"), "gpu", "running")
        happens(lambda: doings.submit("net"), "net", "wanted")
        happens(lambda: live("pause", "net"), "net", "paused")
        for _ in range(STEPS):
            doings.draw.choice(doings.all)()
            check(live, ask_all(live))
    finally:
        doings.let_go()
        doings.stop()
        live("resume", *LANES)
        live("cancel", "*")
