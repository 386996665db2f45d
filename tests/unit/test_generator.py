"""The generator as a program: cases, what it must never do, and its output held against lint."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sdqueue import generator
from sdqueue.cli.lint_world import Wish, look
from sdqueue.core.lane import Config
from sdqueue.generate import generate
from sdqueue.jobtext import JOB_MAX_BYTES
from sdqueue.lint.judge import judge

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "generators" / "sdqueue-generator"
CASES = Path(__file__).parents[1] / "cases" / "generator"
DEFAULT_UNITS = set(generate(Config(), systemd_version=0))


def tree(directory: Path) -> dict[str, str]:
    """Return what lies below: texts of files, `-> target` of links."""
    return {
        str(file.relative_to(directory)): f"-> {file.readlink()}"
        if file.is_symlink()
        else file.read_text()
        for file in directory.rglob("*")
        if file.is_symlink() or file.is_file()
    }


def run(
    *arguments: Path | str, home: Path, scope: str = "user", program: Path = PROGRAM
) -> subprocess.CompletedProcess[str]:
    env = {"XDG_CONFIG_HOME": str(home), "PATH": "/usr/bin:/bin", "SYSTEMD_SCOPE": scope}
    return subprocess.run([program, *arguments], env=env, capture_output=True, text=True)


def configure(home: Path, text: str | bytes, name: str = "sdqueue.toml") -> None:
    file = home / "sdqueue" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_the_directory_is_the_one_expected(case: Path, tmp_path: Path) -> None:
    root = str(case / "root")
    messages: list[str] = []
    made = generator.units(
        {}, system=True, program="/usr/bin/sdqueue", messages=messages, root=root
    )
    generator.write(str(tmp_path), made)
    got = {path: text.replace(root, "") for path, text in tree(tmp_path).items()}
    got["messages"] = "".join(f"{message.replace(root, '')}\n" for message in messages)
    expected = tree(case / "expected") | {"messages": (case / "messages").read_text()}
    assert got == expected


def test_it_runs_from_a_checkout_and_writes_into_its_first_directory_only(tmp_path: Path) -> None:
    home, *directories = (tmp_path / name for name in ("home", "normal", "early", "late"))
    for each in (home, *directories):
        each.mkdir()
    configure(home, "# ON_CALENDAR: daily\n", "jobs.d/x.job")
    before = tree(home)
    done = run(*directories, home=home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    normal, early, late = map(tree, directories)
    assert set(normal) > DEFAULT_UNITS
    assert normal["timers.target.wants/sdqueue-submit-x.timer"] == "-> ../sdqueue-submit-x.timer"
    assert f'"{ROOT}/.venv/bin/sdqueue" "--user" "submit"' in normal["sdqueue-submit-x.service"]
    assert (early, late, tree(home)) == ({}, {}, before)
    assert {each.name for each in tmp_path.iterdir()} == {"home", "normal", "early", "late"}


@pytest.mark.parametrize(
    "text",
    ["[lane", b"\xff\xfe", "[lane.gpu]\nslots = 0\n", "x = 1\n" * 300_000, "a = " + "[" * 100_000],
    ids=["no TOML", "no UTF-8", "a bad value", "large", "deep"],
)
def test_a_bad_configuration_gives_the_default_lanes_and_a_message(
    text: str | bytes, tmp_path: Path
) -> None:
    configure(tmp_path, text)
    done = run(tmp_path / "out", home=tmp_path)
    assert done.returncode == 0
    assert "it is" in done.stderr or "error" in done.stderr
    (tmp_path / "out").mkdir()
    done = run(tmp_path / "out", home=tmp_path)
    assert set(tree(tmp_path / "out")) == DEFAULT_UNITS
    assert f"{tmp_path}/sdqueue: the default lanes are used\n" in done.stderr


def test_a_fifo_or_a_device_for_a_file_does_not_hold_the_boot_up(tmp_path: Path) -> None:
    configure(tmp_path, "", "jobs.d/.keep")
    os.mkfifo(tmp_path / "sdqueue/sdqueue.toml")
    (tmp_path / "sdqueue/jobs.d/zero.job").symlink_to("/dev/zero")
    (tmp_path / "out").mkdir()
    done = run(tmp_path / "out", home=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("it is no regular file") == 2
    assert set(tree(tmp_path / "out")) == DEFAULT_UNITS


@pytest.mark.parametrize("too_many_bytes", [0, 1])
def test_a_file_that_submit_would_not_take_gets_no_timer(
    tmp_path: Path, too_many_bytes: int
) -> None:
    configure(tmp_path, "# ON_CALENDAR: daily\n", "jobs.d/x.job")
    os.truncate(tmp_path / "sdqueue/jobs.d/x.job", JOB_MAX_BYTES + too_many_bytes)
    (tmp_path / "out").mkdir()
    done = run(tmp_path / "out", home=tmp_path)
    assert ("larger than" in done.stderr) == bool(too_many_bytes)
    assert (tmp_path / "out/sdqueue-submit-x.timer").exists() == (not too_many_bytes)


@pytest.mark.parametrize(
    "arguments", [(), ("/proc/nowhere",), ("a", "b"), ("/dev/null/x", "b", "c")], ids=str
)
def test_it_never_fails(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*arguments, home=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("sdqueue-generator: ")


def test_without_its_package_it_says_so_and_the_boot_goes_on(tmp_path: Path) -> None:
    lonely = tmp_path / "bin" / "sdqueue-generator"
    lonely.parent.mkdir()
    lonely.write_text(PROGRAM.read_text())
    lonely.chmod(0o755)
    done = run(tmp_path, home=tmp_path, program=lonely)
    assert done.returncode == 0
    assert "No module named 'sdqueue'" in done.stderr


def test_what_lies_in_the_way_is_replaced_and_links_are_not_followed(tmp_path: Path) -> None:
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    outside.write_text("untouched")
    (out / "sdqueue.slice").symlink_to(outside)
    (out / "sdqueue-gpu.slice").write_text("of the last time")
    done = run(out, home=tmp_path)
    assert done.stderr == ""
    assert outside.read_text() == "untouched"
    assert "Made by sdqueue" in (out / "sdqueue-gpu.slice").read_text()


def test_many_messages_are_cut_short(tmp_path: Path) -> None:
    configure(tmp_path, "".join(f"setting{n} = 1\n" for n in range(1000)))
    (tmp_path / "out").mkdir()
    lines = run(tmp_path / "out", home=tmp_path).stderr.splitlines()
    assert len(lines) == generator.MESSAGES_MAX + 1
    assert lines[-1].endswith("more")


@pytest.mark.parametrize(
    ("directory", "environ", "expected"),
    [
        ("/run/systemd/generator", {}, True),
        ("/run/user/1000/systemd/generator", {}, False),
        ("/run/user/0/systemd/generator", {}, False),
        ("/run/systemd/generator", {"SYSTEMD_SCOPE": "user"}, False),
        ("/tmp/x", {"SYSTEMD_SCOPE": "system"}, True),
    ],
)
def test_whose_manager_runs_it(directory: str, environ: dict[str, str], expected: bool) -> None:
    assert generator.is_system(directory, environ) is expected


@pytest.mark.parametrize(
    ("library", "version"),
    [
        ("x86_64-linux-gnu/systemd/libsystemd-shared-252.so", 252),
        ("systemd/libsystemd-shared-257.9-1.fc42.so", 257),
        ("aarch64-linux-gnu/systemd/libsystemd-shared-262~rc3.so", 262),
        ("systemd/libsystemd-core-262.so", 0),
        ("systemd/libsystemd-shared-.so", 0),
    ],
)
def test_the_version_is_in_a_librarys_name(library: str, version: int, tmp_path: Path) -> None:
    file = tmp_path / "usr/lib" / library
    file.parent.mkdir(parents=True)
    file.touch()
    assert generator.systemd_version(str(tmp_path)) == version


# Every configuration's output passes lint -------------------------------------------------------

NAMES = st.from_regex(r"\A[a-z][a-z0-9_]{0,8}\Z")
SLICES = st.fixed_dictionaries(
    {},
    optional={
        "CPUWeight": st.integers(1, 10_000),
        "MemoryMax": st.sampled_from(["79%", "64G", "infinity"]),
        "DeviceAllow": st.just(["/dev/kfd rw", "char-drm rw"]),
        "TasksMax": st.integers(1, 4096),
    },
)


@st.composite
def configurations(draw: st.DrawFn) -> str:
    lanes = draw(st.lists(NAMES, unique=True, max_size=6))
    known = [*lanes, "cpu", "gpu", "net"]
    lines: list[str] = []
    for lane in lanes:
        others = st.lists(st.sampled_from([each for each in known if each != lane]), max_size=3)
        lines += [f"[lane.{lane}]", f"slots = {draw(st.integers(1, 9))}"]
        lines.append(f"excludes = {draw(others)!r}")
        lines.append(f"[lane.{lane}.slice]")
        lines += [f"{key} = {_toml(value)}" for key, value in draw(SLICES).items()]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    return str(value) if isinstance(value, int) else repr(value)


JOBS = st.dictionaries(
    st.text(min_size=1, max_size=8).filter(lambda name: "/" not in name and "\0" not in name),
    st.one_of(st.sampled_from(["daily", "Mon..Fri 22:00", "*-*-1 04:00:00"]), st.text(max_size=9)),
    max_size=3,
)


@settings(
    max_examples=20,
    deadline=None,
    # Each takes a third of a second, and they are small as they come: not worth shrinking.
    phases=[Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=configurations(), jobs=JOBS, base=st.sampled_from(["debian-12", "debian-testing"]))
def test_lint_has_nothing_to_say_about_what_it_writes(
    text: str, jobs: dict[str, str], base: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    configure(home, text)
    configure(home, "", "jobs.d/.keep")
    for name, calendar in jobs.items():
        try:
            configure(home, f"# ON_CALENDAR: {calendar}\n", f"jobs.d/{name}.job")
        except (OSError, UnicodeEncodeError):
            continue
    out = home / "out"
    out.mkdir()
    messages: list[str] = []
    made = generator.units(
        {"XDG_CONFIG_HOME": str(home)}, system=False, program="/bin/true", messages=messages
    )
    assert not any("default lanes" in message for message in messages), messages
    generator.write(str(out), made)
    world = look(Wish(paths=(str(out),), base=base))
    assert world.problems == ()
    assert judge(world.situation) == []
