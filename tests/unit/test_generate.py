"""The lanes' unit files: directories of input and expected output, and nothing that slips in."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.config import load
from sdqueue.core.spec import Config, Lane
from sdqueue.generate import generate, generate_timers, timer_links, timer_of_job
from sdqueue.slicekeys import SLICE_KEYS, check_slice_setting

CASES = Path(__file__).parents[1] / "cases" / "generate"


def made(case: Path) -> dict[str, str]:
    text = (case / "sdqueue.toml").read_text()
    version = int(text.splitlines()[0].removeprefix("# systemd "))
    got = load([("/etc/sdqueue/sdqueue.toml", text)])
    assert got.problems == ()
    return generate(got.config, systemd_version=version, sources=["/etc/sdqueue/sdqueue.toml"])


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_the_files_are_those_expected(case: Path) -> None:
    expected = {file.name: file.read_text() for file in (case / "expected").iterdir()}
    assert made(case) == expected


def test_targets_can_neither_be_started_by_hand_nor_isolated_away() -> None:
    texts = generate(Config(), systemd_version=252)
    for name, text in texts.items():
        if name.endswith(".target"):
            assert "\nRefuseManualStart=yes\n" in text
            assert "\nIgnoreOnIsolate=yes\n" in text
        assert "StopWhenUnneeded" not in text
        assert "After=" not in text


def test_exclusion_is_in_both_targets() -> None:
    texts = generate(Config(), systemd_version=252)
    assert "Conflicts=sdqueue-lane-net.target" in texts["sdqueue-lane-gpu.target"]
    assert "Conflicts=sdqueue-lane-gpu.target" in texts["sdqueue-lane-net.target"]
    assert "Conflicts" not in texts["sdqueue-lane-cpu.target"]


def test_slots_are_in_the_slice_where_systemd_counts() -> None:
    config = load([("x", "[lane.cpu]\nslots = 5\n")]).config
    assert "ConcurrencyHardMax=5" in generate(config, systemd_version=258)["sdqueue-cpu.slice"]
    assert "Concurrency" not in generate(config, systemd_version=257)["sdqueue-cpu.slice"]


def test_a_value_that_does_not_end_with_its_line_is_never_written() -> None:
    lane = Lane(name="gpu", slice_properties=(("CPUWeight", "1\n[Service]\nExecStart=/bin/x"),))
    with pytest.raises(ValueError, match="does not end with its line"):
        generate(Config(lanes={"gpu": lane}), systemd_version=252)


def test_odd_source_names_stay_in_their_line() -> None:
    texts = generate(Config(), systemd_version=252, sources=["/etc/a%b", "/x\n[Service]"])
    text = texts["sdqueue-gpu.slice"]
    assert "SourcePath=/etc/a%%b\n" in text
    assert text.splitlines()[0] == (
        r"# Made by sdqueue from /etc/a%b, '/x\n[Service]'. Changes are overwritten."
    )


def test_timers_submit_job_files() -> None:
    texts = generate_timers(
        [
            ("nightly", "Mon..Fri 22:00", "/etc/sdqueue/jobs.d/nightly.job"),
            ('a "$b%', "daily", '/x/a "$b%.job'),
            ("bad", "daily\nExecStart=/bin/sh", "/x/bad.job"),
        ],
        command=("/usr/bin/sdqueue", "--system"),
    )
    assert list(texts) == [
        "sdqueue-submit-nightly.timer",
        "sdqueue-submit-nightly.service",
        r"sdqueue-submit-a\x20\x22\x24b\x25.timer",
        r"sdqueue-submit-a\x20\x22\x24b\x25.service",
    ]
    assert "[Timer]\nOnCalendar=Mon..Fri 22:00\nPersistent=yes\n" in texts[timer_of_job("nightly")]
    odd = texts[r"sdqueue-submit-a\x20\x22\x24b\x25.service"]
    assert r'ExecStart="/usr/bin/sdqueue" "--system" "submit" "-f" "/x/a \"$$b%%.job"' in odd
    assert timer_links(texts)["timers.target.wants/sdqueue-submit-nightly.timer"] == (
        "../sdqueue-submit-nightly.timer"
    )


@given(
    st.sampled_from(sorted(SLICE_KEYS)),
    st.one_of(st.text(max_size=20), st.from_regex(r"[0-9]{1,4}[%GM]?")),
)
def test_what_the_table_lets_through_is_one_assignment(name: str, value: str) -> None:
    try:
        check_slice_setting(name, value)
    except ValueError:
        return
    lane = Lane(name="gpu", slice_properties=((name, value),))
    text = generate(Config(lanes={"gpu": lane}), systemd_version=252)["sdqueue-gpu.slice"]
    assert text.endswith(f"\n\n[Slice]\n{name}={value}\n")
    assert len(text.splitlines()) == 8


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None and not os.environ.get("CI"),
    reason="no systemd-analyze here (Debian: systemd)",
)
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    text = (CASES / "lanes" / "sdqueue.toml").read_text()
    config = load([("x", text)]).config
    texts = generate(config, systemd_version=252) | generate_timers(
        [("a b", "Mon..Fri 22:00", "/etc/sdqueue/jobs.d/a b.job")], command=("/bin/true",)
    )
    for name, content in texts.items():
        (tmp_path / name).write_text(content)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in texts)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:", "LC_ALL": "C.UTF-8"},
    )
    ours = [line for line in done.stderr.splitlines() if "sdqueue" in line]
    assert ours == []
