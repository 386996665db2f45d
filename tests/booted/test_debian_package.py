"""The Debian package: the same bytes each time, and on a booted machine its whole life."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sdqueue import __version__
from tests.harness import container as containers
from tests.harness import debs
from tests.harness.container import Container
from tests.harness.tools import require, require_programs
from tests.harness.waiting import eventually

ROOT = Path(__file__).parents[2]
DEPENDS = ["python3-dbus-next", "python3-jinja2", "python3-psutil"]
LAUNCHER = "usr/local/bin/sdqueue"
NEWER = f"{__version__}-2"


def build(out: Path) -> Path:
    done = subprocess.run(
        [".ci/deb/build", out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600"},
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_programs("dpkg-deb")
    if not (ROOT / ".venv/bin/python").exists():
        require("no .venv (make dev)")
    return build(tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="module")
def newer(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the same package again as the next version."""
    tree = tmp_path_factory.mktemp("newer") / "tree"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace(f"{__version__}-1", NEWER))
    file = tree.with_name("newer.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, file], check=True)
    return file


@pytest.fixture(params=["252", "257", "262"])
def container(request: pytest.FixtureRequest) -> Iterator[Container]:
    require(containers.missing(request.param))
    require(debs.missing(request.param))
    needed = debs.needed(request.param, DEPENDS)
    with Container(request.param) as fresh:
        (fresh.root / LAUNCHER).unlink()  # the checkout's
        # Where the machine is a container itself, its packages start nothing; this one boots.
        (fresh.root / "usr/sbin/policy-rc.d").unlink(missing_ok=True)
        for each in needed:
            shutil.copy(each, fresh.root / "srv")
        yield fresh


def dpkg(container: Container, *words: str) -> str:
    done = container.run(["dpkg", *words], check=False, env={"DEBIAN_FRONTEND": "noninteractive"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def install(container: Container, package: Path) -> None:
    """Install it as apt does: with what it depends on before it."""
    given = sorted(f"/srv/{each.name}" for each in (container.root / "srv").glob("*.deb"))
    shutil.copy(package, container.root / "srv")
    dpkg(container, "--install", *given, f"/srv/{package.name}")
    for each in (container.root / "srv").glob("*.deb"):
        each.unlink()


def state(container: Container, job: str) -> str:
    rows = json.loads(container.run(["sdqueue", "list", "--json=short"]).stdout)
    return next(str(row["state"]) for row in rows if row["name"] == job)


def submit(container: Container, name: str, *command: str) -> None:
    container.run(["sdqueue", "submit", f"--name={name}", "--", *command])


def assert_up(container: Container) -> None:
    """Hold that it runs as the package has it, and that nothing else of the machine has failed."""
    assert container.show("sdqueue.service", "ActiveState") == "active"
    assert container.show("sdqueue.service", "UnitFileState") == "enabled"
    source = container.show("sdqueue-lane-gpu.target", "FragmentPath")
    assert source == "/run/systemd/generator/sdqueue-lane-gpu.target"
    assert container.run(["systemctl", "is-system-running"]).stdout == "running\n"
    assert container.run(["which", "sdqueue"]).stdout == "/usr/bin/sdqueue\n"
    where = container.run(["sdqueue", "--version"]).stdout
    assert where == f"sdqueue {__version__}\n"
    assert container.run(["sdqueue", "plan"]).returncode == 0


def files_of_sdqueue(container: Container) -> list[str]:
    find = ["find", "/etc", "/usr", "/var", "/run", "-xdev", "(", "-name", "*sdqueue*"]
    find += ["-o", "-name", "*asyncinotify*", ")", "-not", "-path", "/usr/share/doc/*"]
    return container.run([*find, "-prune", "-print"]).stdout.split()


def test_two_builds_give_the_same_bytes(package: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == package.read_bytes()


def test_its_units_pass_lint(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path], check=True)
    program = [str(ROOT / ".venv/bin/python"), "-m", "sdqueue", "lint-units"]
    for base in ("debian-12", "debian-13"):
        units = tmp_path / "usr/lib/systemd"
        done = subprocess.run([*program, "--base", base, units], capture_output=True, text=True)
        assert (done.returncode, done.stdout[:11]) == (0, "No findings"), done.stdout
    compiled = [str(file) for file in tmp_path.rglob("*") if file.suffix in (".pyc", ".so")]
    assert compiled == []


def test_it_is_installed_enabled_rebooted_upgraded_removed_and_purged(
    container: Container, package: Path, newer: Path
) -> None:
    before = files_of_sdqueue(container)
    install(container, package)
    assert_up(container)
    assert (container.root / "usr/lib/sdqueue/sdqueue/cli/__pycache__").is_dir()
    submit(container, "1-cpu-short", "true")
    assert container.run(["sdqueue", "wait", "1-cpu-short"]).returncode == 0

    container.reboot()
    assert_up(container)
    submit(container, "2-gpu-long", "sh", "-c", "until test -e /srv/go; do sleep 0.2; done")
    eventually(lambda: state(container, "2-gpu-long") == "running", "the job runs")
    unit = "sdqueue-job-2-gpu-long.service"
    run, pid = (
        container.show(each, name)
        for each, name in ((unit, "InvocationID"), ("sdqueue.service", "MainPID"))
    )

    install(container, newer)
    assert_up(container)
    assert container.run(["dpkg-query", "-Wf${Version}", "sdqueue"]).stdout == NEWER
    assert container.show("sdqueue.service", "MainPID") != pid
    assert container.show(unit, "InvocationID") == run
    assert state(container, "2-gpu-long") == "running"

    dpkg(container, "--remove", "sdqueue")
    assert container.show("sdqueue.service", "LoadState") == "not-found"
    assert container.show(unit, "InvocationID") == run, "the job runs on"
    assert container.show(unit, "ActiveState") == "activating"
    install(container, package)
    assert_up(container)
    (container.root / "srv/go").touch()
    assert container.run(["sdqueue", "wait", "2-gpu-long"]).returncode == 0

    said = dpkg(container, "--purge", "sdqueue")
    assert "the jobs and their records in /var/lib/sdqueue were kept" in said
    assert (container.root / "var/lib/sdqueue/done/2-gpu-long.job").exists()
    left = set(files_of_sdqueue(container)) - set(before)
    assert {each for each in left if not each.startswith("/run/")} == {"/var/lib/sdqueue"}
    assert container.run(["systemctl", "is-system-running"]).stdout == "running\n"


@pytest.mark.parametrize("container", ["252", "262"], indirect=True)
def test_a_queue_that_was_never_used_is_purged_with_all(
    container: Container, package: Path
) -> None:
    before = files_of_sdqueue(container)
    install(container, package)
    assert_up(container)
    assert "were kept" not in dpkg(container, "--purge", "sdqueue")
    left = set(files_of_sdqueue(container)) - set(before)
    assert [each for each in left if not each.startswith("/run/")] == []


@pytest.mark.parametrize("container", ["262"], indirect=True)
def test_a_user_can_have_a_queue_of_the_same_package(container: Container, package: Path) -> None:
    install(container, package)
    container.add_user("anna", linger=True)
    container.run(["systemctl", "--user", "enable", "--now", "sdqueue.service"], user="anna")
    container.run(["sdqueue", "submit", "--name=1-cpu-a", "--", "touch", "done"], user="anna")
    assert container.run(["sdqueue", "wait", "1-cpu-a"], user="anna").returncode == 0
    assert (container.root / "home/anna/done").exists()
    ask = ["systemctl", "--user", "show", "-PFragmentPath", "sdqueue.service"]
    where = container.run(ask, user="anna").stdout
    assert where == "/usr/lib/systemd/user/sdqueue.service\n"


@pytest.mark.parametrize("container", ["257"], indirect=True)
def test_what_an_administrator_disabled_stays_so_over_an_upgrade(
    container: Container, package: Path, newer: Path
) -> None:
    install(container, package)
    container.run(["systemctl", "disable", "--now", "sdqueue.service"])
    install(container, newer)
    assert container.show("sdqueue.service", "UnitFileState") == "disabled"
