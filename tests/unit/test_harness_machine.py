"""The harness itself: what it finds out about the machine, and what "needed" means."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import images, tools

ONE_LINE = """
# deb http://commented.example/debian trixie main
deb-src http://source.example/debian trixie main
deb http://third-party.example/apt cloud-trixie main
deb [arch=amd64 signed-by=/x.gpg] http://mirror.example/debian trixie main contrib
"""
DEB822 = """\
Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb deb-src
# a comment
URIs: http://mirror.example/debian
Suites: trixie trixie-updates
Components: main
"""


@pytest.mark.parametrize(
    ("file", "text"), [("sources.list", ONE_LINE), ("sources.list.d/debian.sources", DEB822)]
)
def test_the_mirror_is_the_machines_own(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / "apt/sources.list.d").mkdir(parents=True)
    (tmp_path / "apt" / file).write_text(text)
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_CODENAME="trixie"\n')
    assert images.mirror(tmp_path) == "http://mirror.example/debian"


def test_a_machine_without_a_mirror_is_told_how_to_name_one(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text("ID=other\n")
    with pytest.raises(images.ImageError, match="SDQUEUE_TEST_MIRROR"):
        images.mirror(tmp_path)


BUILD = """
import sys
from tests.harness import images

def build(at):
    at.mkdir()
    with open(sys.argv[1], "a") as log:
        log.write("built\\n")

assert images.cached("thing", ["recipe"], build).is_dir()
"""


def test_two_that_want_one_image_build_it_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", BUILD, str(log)]
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    both = [subprocess.Popen(command, env=env, cwd=images.CHECKOUT) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert log.read_text() == "built\n"


def test_a_build_that_broke_off_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def breaks(at: Path) -> None:
        at.mkdir()
        (at / "half").touch()
        raise images.ImageError("no network")

    def works(at: Path) -> None:
        at.mkdir()

    with pytest.raises(images.ImageError):
        images.cached("thing", ["recipe"], breaks)
    assert list(images.cached("thing", ["recipe"], works).iterdir()) == []


def test_what_is_missing_is_a_skip_at_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no strace"):
        tools.require("no strace")


def test_what_is_missing_is_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no strace"):
        tools.require("no strace")


def test_what_is_there_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    tools.require("")
    tools.require_programs("sh")
