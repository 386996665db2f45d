"""The example of a model server's unit: it has the lane or fails to start, and says why."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bus.test_cli_live import Live
from tests.harness.manager import PrivateManager
from tests.harness.waiting import eventually

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "units/examples/llm-engine@.service"
ENGINE = "#!/bin/sh\nexec sleep 1000\n"


@pytest.fixture
def live(manager: PrivateManager) -> Iterator[Live]:
    """Give a queue, and the unit as it is, but for where its programs are and how long it waits."""
    engine = manager.home / "llama-server"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    program = shlex.join([sys.executable, "-m", "sdqueue"])
    text = EXAMPLE.read_text().replace("ExecStart=sdqueue ", f"ExecStart={program} ")
    text = text.replace(" llama-server ", f" {engine} ").replace("--yield=30s", "--yield")
    text = text.replace("[Service]\n", f"[Service]\nEnvironment=PYTHONPATH={ROOT}\n")
    assert text.count(str(engine)) == 1
    units = manager.home / ".config/systemd/user"
    units.mkdir(parents=True)
    (units / EXAMPLE.name).write_text(text)
    config = manager.home / ".config/sdqueue"
    config.mkdir(parents=True)
    (config / "sdqueue.toml").write_text("[lane.gpu]\n")
    manager.run(["systemctl", "--user", "daemon-reload"])
    live = Live(manager)
    live.start()
    yield live
    live.stop()


def start(live: Live, model: str) -> int:
    """Start the engine for a model, and return what systemctl exits with."""
    done = live.manager.run(["systemctl", "--user", "start", f"llm-engine@{model}"], check=False)
    return done.returncode


def said(live: Live, model: str) -> str:
    show = ["systemctl", "--user", "show", "--property=StatusText", f"llm-engine@{model}"]
    return live.manager.run(show).stdout


def test_it_has_the_lane_gives_it_back_and_is_refused_while_a_job_has_it(live: Live) -> None:
    eventually(lambda: live("is-free", "gpu").returncode == 0, "the lane to be free")
    assert start(live, "one") == 0
    (row,) = live.json("owners", "gpu")
    assert (row["standing"], row["unit"]) == ("leased", "llm-engine@one.service")
    assert (row["comm"], row["detail"]) == ("llama-server", "serves one")

    assert start(live, "two") != 0
    assert "lane gpu is leased to llama-server" in said(live, "two")
    assert live.manager.show("llm-engine@two.service", "ExecMainStatus") == "5"
    assert live.manager.show("llm-engine@two.service", "NRestarts") == "0"

    live.submit("--lane", "gpu", "--name", "g", "--", "sleep", "1000")
    live.wait_state("g", "running")
    state = ("ActiveState", "Result")
    eventually(
        lambda: (
            [live.manager.show("llm-engine@one.service", key) for key in state]
            == ["inactive", "success"]
        ),
        "the engine to have ended well",
    )

    assert start(live, "one") != 0
    assert "lane gpu is taken by sdqueue-job-g.service" in said(live, "one")
    live("cancel", "g")
    eventually(lambda: live("is-free", "gpu").returncode == 0, "the lane to be free")
    assert start(live, "one") == 0
    live.manager.run(["systemctl", "--user", "stop", "llm-engine@one"])
    eventually(lambda: live("is-free", "gpu").returncode == 0, "the lane to be free")
