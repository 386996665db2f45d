"""The wheel: what it brings works without the checkout."""

import json
import os
import re
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from sdqueue import __version__
from tests.harness.tools import require

ROOT = Path(__file__).parents[2]
SETUPTOOLS = 77
AGAINST = ("test_cli_submit.py", "test_cli_operating.py", "test_cli_looking.py", "test_import.py")
"""The tests that ask the program itself, and nothing of the checkout."""
JOB = "#!/bin/bash\n# LANE: cpu\n# RETRIES: 2\ntrue\n"


def missing() -> str:
    """Say what is not there to build a wheel with, "" when it is."""
    try:
        found = int(version("setuptools").split(".")[0])
    except PackageNotFoundError:
        return "no setuptools (make dev)"
    return "" if found >= SETUPTOOLS else f"setuptools {found}, {SETUPTOOLS} is needed (make dev)"


def run(*argv: object, **options: object) -> str:
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def site_packages(program: Path) -> Path:
    (found,) = program.parents[1].glob("lib/python*/site-packages")
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel of a copy of the checkout, install it into an environment of its own."""
    require(missing())
    top = tmp_path_factory.mktemp("wheel")
    source = top / "source"
    names = ["pyproject.toml", "README.md", "LICENSE", "sdqueue", "units", "generators", "man"]
    source.mkdir()
    run("cp", "--archive", *names, source, cwd=ROOT)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", top, source)
    run("rm", "-r", source)
    (wheel,) = top.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", top / "venv")
    python = top / "venv/bin/python"
    run(*pip, f"--python={python}", "install", "--no-deps", "--no-index", "--no-compile", wheel)
    return top / "venv/bin/sdqueue"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a user without a checkout; dependencies are those of this interpreter."""
    libraries = dict.fromkeys([sysconfig.get_path("purelib"), *site.getsitepackages()])
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(libraries), **home}


def test_it_is_the_wheel_that_runs(program: Path, env: dict[str, str], tmp_path: Path) -> None:
    assert run(program, "--version", env=env, cwd=tmp_path) == f"sdqueue {__version__}\n"
    find = "import sdqueue; print(sdqueue.__file__)"
    where = run(program.parent / "python", "-c", find, env=env, cwd=tmp_path)
    assert where.startswith(f"{program.parents[1]}/")


def test_it_has_every_file_of_the_package_and_no_other(program: Path) -> None:
    def files(package: Path) -> set[str]:
        every = (Path(top, file) for top, _, names in walk(package) for file in names)
        return {str(f.relative_to(package)) for f in every if f.suffix != ".pyc"}

    def walk(package: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        return os.walk(package, followlinks=True)

    assert files(site_packages(program) / "sdqueue") == files(ROOT / "sdqueue")


def test_the_tests_of_the_command_line_pass_against_it(program: Path) -> None:
    place = site_packages(program)
    (place / "tests").mkdir()
    for each in ("__init__.py", "conftest.py", "harness", "unit"):
        run("cp", "--archive", ROOT / "tests" / each, place / "tests")
    config = re.search(r"(?ms)^\[tool\.pytest.*?(?=^\[|\Z)", (ROOT / "pyproject.toml").read_text())
    assert config
    (place / "pyproject.toml").write_text(config[0])
    which = "import sdqueue; print(sdqueue.__file__)"
    assert run(sys.executable, "-c", which, cwd=place) == f"{place}/sdqueue/__init__.py\n"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    said = run(*argv, *(f"tests/unit/{each}" for each in AGAINST), cwd=place)
    assert " passed" in said
    run("rm", "-r", place / "tests")


def test_units_job_files_and_completion(program: Path, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.service").write_text("[Service]\nExecStart=/bin/true\n")
    lint = (program, "lint-units", "--base", "debian-12", "--format=json", "a.service")
    assert json.loads(run(*lint, env=env, cwd=tmp_path))["findings"] == []
    (tmp_path / "1-cpu-a.job").write_text(JOB)
    assert run(program, "check", "1-cpu-a.job", env=env, cwd=tmp_path) == ""
    assert "complete" in run(program, "completion", "bash", env=env)
    assert run(program, "--user", "submit", "--", "true", env=env, cwd=tmp_path) == "001-cpu-true\n"


def test_what_it_installs_works_outside_of_it(
    program: Path, env: dict[str, str], tmp_path: Path
) -> None:
    dest, out = tmp_path / "dest", tmp_path / "units"
    run(program, "--system", "install", "--root", dest, env=env, cwd=tmp_path)
    generator = dest / "usr/local/lib/systemd/system-generators/sdqueue-generator"
    out.mkdir()
    bare = {"XDG_CONFIG_HOME": str(tmp_path), "SYSTEMD_SCOPE": "user"}
    done = subprocess.run([generator, out], env=bare, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (out / "sdqueue-lane-gpu.target").exists()
    dropin = dest / "usr/local/lib/systemd/system/sdqueue.service.d/10-program.conf"
    assert f'ExecStart="{program}" --system daemon\n' in dropin.read_text()
    units = dest / "usr/local/lib/systemd"
    lint = (program, "lint-units", "--base", "debian-12", units)
    assert run(*lint, env=env).startswith("No findings")
    pages = {page.name for page in dest.rglob("share/man/man*/*")}
    assert pages == {page.name for page in (ROOT / "man").iterdir()}
    assert str(ROOT) not in "".join(
        file.read_text() for file in dest.rglob("*") if file.is_file() and "man" not in file.parts
    )
