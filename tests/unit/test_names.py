"""Names of jobs and lanes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.core.spec import DEFAULT_LANES
from sdqueue.words import names, unitname
from sdqueue.words.errors import UsageError


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"),
        (".", "directory"),
        ("..", "directory"),
        ("a/b", "'/'"),
        ("../../etc/passwd", "'/'"),
        (".hidden", "dot"),
        ("a\nb", "control"),
        ("a\x1b[2Jb", "control"),
        ("a\x00b", "control"),
        ("a\u202eb", "control"),
        ("12345", "digits"),
        ("a\udcffb", "UTF-8"),
        ("a" * 236, "too long"),
        ("ä" * 30, "too long"),
        ("a.job.job", "twice"),
    ],
)
def test_a_name_that_can_t_be_is_refused_with_its_reason(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        names.job_name(name)


@pytest.mark.parametrize(
    "name",
    ["a", "52-gpu-laguna", "a b", "-x", "ä", "a@b", "a\\x20b", "1a", "a" * 235, "%n", "$HOME"],
)
def test_an_odd_name_is_taken_with_and_without_its_suffix(name: str) -> None:
    assert names.job_name(name) == names.job_name(f"{name}.job") == name
    assert len(names.unit_of_job(name).encode()) <= 255
    assert names.job_of_unit(names.unit_of_job(name)) == name


def test_messages_about_hostile_names_can_be_printed() -> None:
    with pytest.raises(UsageError) as caught:
        names.job_name("\x1b]0;owned\x07" + "\udcff" * 300)
    str(caught.value).encode("ascii")


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("52-gpu-laguna", "sdqueue-job-52-gpu-laguna.service"),
        ("a b@c", r"sdqueue-job-a\x20b\x40c.service"),
        ("a\\x20b", r"sdqueue-job-a\x5cx20b.service"),
        ("ä:_.-", r"sdqueue-job-\xc3\xa4:_.-.service"),
    ],
)
def test_the_unit_of_a_job(name: str, unit: str) -> None:
    assert names.unit_of_job(name) == unit


@pytest.mark.parametrize(
    "unit",
    [
        "sdqueue-job-.service",
        "sdqueue.service",
        "sdqueue-job-a.timer",
        r"sdqueue-job-\x61.service",  # an `a` needs no escape, so this is a stranger's
        r"sdqueue-job-\x2e\x2e.service",
        r"sdqueue-job-a\x2fb.service",
        r"sdqueue-job-a\xff.service",
        r"sdqueue-job-a\x.service",
        r"sdqueue-job-a\xC3\xA4.service",
        r"sdqueue-job-a\b.service",
        r"sdqueue-job-a\x+1.service",
        "sdqueue-job-a@b.service",
    ],
)
def test_a_stranger_s_unit_is_no_job(unit: str) -> None:
    assert names.job_of_unit(unit) is None


any_name = st.text(min_size=1, max_size=60).filter(lambda name: not names.job_name_fault(name))


@given(any_name)
def test_unit_names_are_exact_both_ways(name: str) -> None:
    unit = names.unit_of_job(name)
    assert names.job_of_unit(unit) == name
    assert set(unit) <= names._UNIT_CHARACTERS | {"\\"}


@given(st.text(max_size=80))
def test_no_unit_name_stands_for_two_jobs(text: str) -> None:
    unit = f"sdqueue-job-{text}.service"
    job = names.job_of_unit(unit)
    assert job is None or names.unit_of_job(job) == unit


@given(st.text(max_size=300))
def test_every_text_is_a_name_or_has_a_reason(text: str) -> None:
    assert names.job_name_fault(text) != ""


@pytest.mark.parametrize("name", ["gpu", "a", "gpu_2", "z9"])
def test_lane_names(name: str) -> None:
    assert names.lane_name_fault(name) is None


@pytest.mark.parametrize("name", ["", "Gpu", "gpu-2", "2gpu", "_a", "gpü", "a.b", "a" * 65, "a\n"])
def test_what_is_no_lane_name(name: str) -> None:
    assert names.lane_name_fault(name)


def test_lanes_as_units() -> None:
    assert names.target_of_lane("gpu") == "sdqueue-lane-gpu.target"
    assert names.slice_of_lane("gpu") == "sdqueue-gpu.slice"


def test_the_light_list_of_default_lanes_is_that_of_the_model() -> None:
    assert tuple(lane.name for lane in DEFAULT_LANES) == names.DEFAULT_LANE_NAMES


def test_names_sort_as_people_number_them() -> None:
    ordered = [
        "1-a",
        "2-a",
        "9-b",
        "09-c",
        "10-a",
        "10-a2",
        "10-a10",
        "10-b",
        "100",
        "a",
        "a-b",
        "b",
    ]
    assert sorted(set(ordered), key=names.sort_key) == ordered


@given(st.lists(st.integers(0, 10**30), unique=True))
def test_numbers_sort_as_numbers(numbers: list[int]) -> None:
    jobs = sorted((f"x{n}y" for n in numbers), key=names.sort_key)
    assert jobs == [f"x{n}y" for n in sorted(numbers)]


@given(st.text("019ab-", max_size=12), st.text("019ab-", max_size=12))
def test_the_order_is_total(a: str, b: str) -> None:
    assert (names.sort_key(a) == names.sort_key(b)) == (a == b)


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["/usr/bin/true"], "true"),
        (["hf", "download"], "hf"),
        (["a b$c"], "a_b_c"),
        ([".."], "job"),
        ([], "job"),
        (["/"], "job"),
        (["x" * 300], "x" * 40),
        (["täst\udcff"], "t_st_"),
        (["./build.job"], "build"),
    ],
)
def test_the_command_in_a_made_up_name(argv: list[str], word: str) -> None:
    assert names.command_word(argv) == word
    assert names.job_name_fault(names.numbered_name(7, "cpu", word)) is None


def test_words_and_numbers_of_a_name() -> None:
    assert names.second_word("52-gpu-laguna") == "gpu"
    assert names.second_word("laguna") == ""
    assert names.numbered_name(7, "cpu", "true") == "007-cpu-true"
    assert names.leading_number("007-cpu-true") == 7
    assert names.leading_number("x7") == 0
    assert names.leading_number("9" * 30) == 0


def test_a_near_name_is_suggested() -> None:
    assert names.did_you_mean("LNAE", ["NICE", "LANE"]) == "; did you mean LANE?"
    assert names.did_you_mean("QQQQ", ["NICE", "LANE"]) == ""


def test_the_light_limit_of_unit_names_is_that_of_systemd() -> None:
    assert names.UNIT_NAME_MAX == unitname.NAME_MAX
