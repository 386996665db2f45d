"""Job files: read, written, and never raising whatever is in them."""

import shlex
import subprocess
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue import jobfile, jobkeys, jobtext, jobvalues
from sdqueue.core.spec import INFINITY_USEC, Config, DiskNeed, JobSpec, Lane, MemoryNeed
from sdqueue.words.names import job_name_fault
from sdqueue.words.unitname import UNIT_TYPES

LANES = Config().lanes
NOW = 1795976671.0


def read(data: bytes, name: str = "52-gpu-laguna", **more: Any) -> jobfile.JobFile:
    settings: dict[str, Any] = {"lanes": LANES, "now_sec": NOW, "zone": UTC} | more
    return jobfile.parse(name, data, file=f"queue/{name}.job", **settings)


def spec_of(data: bytes, name: str = "52-gpu-laguna", **more: Any) -> JobSpec:
    got = read(data, name, **more)
    assert got.spec is not None, got.problems
    assert got.problems == ()
    return got.spec


def said(data: bytes, name: str = "52-gpu-laguna") -> str:
    return "\n".join(map(str, read(data, name).problems))


FULL = b"""#!/usr/bin/env python3
# A remark without any key, and one with a colon: it is prose.
# LANE: net
# DONE_IF: grep -q "a # b" out && test 5 = "$(wc -l <'100%.txt')" \\
# REQUIRES: test -f ~/models/laguna.gguf
# RETRIES: 5
# RETRY_DELAY: 5min
# TIMEOUT: 1h 30min
# MEMORY: size(~/models/laguna.gguf)+12%
# DISK: 200G /data
# NICE: -5
# CPU_WEIGHT: 50
# NOT_BEFORE: +2h
# AFTER: 50-net-a 51-net-b.job
# AFTER: "odd name"
# AFTER_ANY: 49-x
# PRIORITY: -3
# ON_SUCCESS: publish@laguna.service
# ON_FAILURE: alarm.service mail.service
# ENV: A=1
# ENV: B="two\\nlines" and $more
# ENV: C="two\\nlines"
# CWD: ~/bench
# ON_CALENDAR: Mon..Fri 22:00
# DESCRIPTION: Laguna, 32k: 50% of "it"
# TODO: nothing
print("hi")
# LANE: cpu
"""


def test_every_key_is_read() -> None:
    assert spec_of(FULL, uid=1000) == JobSpec(
        name="52-gpu-laguna",
        lane="net",
        uid=1000,
        description='Laguna, 32k: 50% of "it"',
        done_if='grep -q "a # b" out && test 5 = "$(wc -l <\'100%.txt\')" \\',
        requires="test -f ~/models/laguna.gguf",
        attempts_max=5,
        retry_delay_usec=300_000_000,
        timeout_usec=5_400_000_000,
        memory=MemoryNeed(size_of_file="~/models/laguna.gguf", margin_percent=12),
        disk=DiskNeed(200 << 30, "/data"),
        nice=-5,
        cpu_weight=50,
        not_before_sec=NOW + 7200,
        after=("50-net-a", "51-net-b", "odd name"),
        after_any=("49-x",),
        priority=-3,
        on_success=("publish@laguna.service",),
        on_failure=("alarm.service", "mail.service"),
        env=(("A", "1"), ("B", '"two\\nlines" and $more'), ("C", "two\nlines")),
        cwd="~/bench",
        on_calendar="Mon..Fri 22:00",
        interpreter=("/usr/bin/env", "python3"),
    )
    assert all(f"# {key.name}:".encode() in FULL for key in jobkeys.KEYS)


def test_the_table_covers_every_field_that_a_person_can_set() -> None:
    fields = set(JobSpec.__dataclass_fields__) - {"name", "uid", "interpreter"}
    assert sorted(fields) == sorted(key.field for key in jobkeys.KEYS)


@pytest.mark.parametrize("key", jobkeys.KEYS, ids=lambda key: key.name)
def test_every_key_s_example_is_right_and_reads_back(key: jobkeys.Key) -> None:
    value = key.value(key.example, now_sec=NOW, zone=UTC)
    lines = key.lines(value)
    again = [key.value(line) for line in lines]
    assert (tuple(v for part in again for v in part) if key.many else again[0]) == value
    assert 0 < len(key.help) < 110


HEADER = b"#!/bin/bash\n# LANE: cpu\n# RETRIES: 7\necho hi\n"


@pytest.mark.parametrize(
    "data",
    [
        HEADER,
        HEADER.replace(b"\n", b"\r\n"),
        jobtext.BOM + HEADER,
        jobtext.BOM + HEADER.replace(b"\n", b"\r\n"),
        HEADER.removesuffix(b"echo hi\n").removesuffix(b"\n"),
        HEADER + b"\xff\xfe\x00" * 100,
        HEADER + b"x" * 1_000_000,
        HEADER.replace(b"# LANE", b"#LANE").replace(b"# RETRIES: 7", b"#  RETRIES :  7  \t"),
        HEADER.replace(b"#!/bin/bash\n", b""),
        b"# caf\xe9, a remark in latin-1: fine\n" + HEADER,
    ],
    ids=["lf", "crlf", "bom", "both", "cut", "binary", "1MB", "spacing", "no-hashbang", "latin1"],
)
def test_a_header_survives_what_editors_and_programs_do(data: bytes) -> None:
    spec = spec_of(data)
    assert (spec.lane, spec.attempts_max, spec.interpreter) == ("cpu", 7, ("/bin/bash",))


def test_without_a_lane_the_name_s_second_word_is_it() -> None:
    assert spec_of(b"echo hi\n").lane == "gpu"
    assert spec_of(b"echo hi\n").attempts_max == 3
    assert "queue/laguna.job:1: error: there is no LANE; the lanes are" in said(b"x", "laguna")
    assert "second word ('tpu') is no lane" in said(b"x", "1-tpu-x")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"# LANE: tpu", "2: error: LANE: there is no lane tpu; the lanes are cpu, gpu, net"),
        (b"# LANE: G-PU", "2: error: LANE: 'G-PU' can't be a lane"),
        (b"# LNAE: cpu", "2: warning: LNAE: there is no such key, the line is a remark; did you"),
        (b"# lane: cpu", "2: warning: lane: keys are written in capitals"),
        (b"# RETRIES: 0", "2: error: RETRIES: 0 is not between 1 and"),
        (b"# RETRIES: three", "2: error: RETRIES: 'three' is no whole number"),
        (b"# RETRIES: 1\n# RETRIES: 2", "3: error: RETRIES is given twice, first in line 2"),
        (b"# RETRIES: x\n# NICE: 20", "3: error: NICE: 20 is not between -20 and 19"),
        (b"# DONE_IF:", "2: error: DONE_IF: it has no value"),
        (b"# DONE_IF: \xff", "2: error: DONE_IF: it is not valid UTF-8"),
        (b"# DONE_IF: a\x00b", "2: error: DONE_IF: it has a control character"),
        (b"# TIMEOUT: 0", "2: error: TIMEOUT: 0 would end the job at once"),
        (b"# TIMEOUT: 1 fortnight", "2: error: TIMEOUT: '1 fortnight' is no time span"),
        (b"# RETRY_DELAY: infinity", "2: error: RETRY_DELAY: a retry after infinity"),
        (b"# MEMORY: 37GB", "2: error: MEMORY: '37GB' is no size"),
        (b"# MEMORY: 101%", "2: error: MEMORY: '101%' is not between"),
        (b"# MEMORY: size(x", "2: error: MEMORY: 'size(x' is not of the form"),
        (b"# DISK: 5G data", "2: error: DISK: 'data' must begin with '/'"),
        (b'# CWD: "/a\\nUser=root"', "2: error: CWD: it is too long for a path, or has a control"),
        (b"# CWD: /" + b"a/" * 2500, "2: error: CWD: it is too long for a path, or has a control"),
        (b"# CWD: /a\\", "2: error: CWD: '/a\\' ends in a backslash"),
        (b"# CWD: /a/../b", "2: error: CWD: '/a/../b' has '..' in it"),
        (b"# CWD: data", "2: error: CWD: 'data' must begin with '/'"),
        (b"# AFTER: a/b", "2: error: AFTER: 'a/b' can't be a job's name: it has a '/'"),
        (b"# ON_SUCCESS: publish", "2: error: ON_SUCCESS: 'publish' is no unit; write its type"),
        (b"# ON_SUCCESS: ../x.service", "2: error: ON_SUCCESS: '../x.service' is no name"),
        (b"# ENV: A", "2: error: ENV: 'A' has no '='"),
        (b"# ENV: 1A=2", "2: error: ENV: '1A' is no name of an environment variable"),
        ("# DESCRIPTION: a\ufffeb".encode(), "2: error: DESCRIPTION: it has a code point in it"),
        ("# DONE_IF: a\ufdd0".encode(), "2: error: DONE_IF: it has a code point in it that is no"),
        (b"# ENV: EXIT_STATUS=0", "2: error: ENV: EXIT_STATUS is set by systemd itself"),
        (b'# DESCRIPTION: "a\\x00b"', "2: error: DESCRIPTION: it has a NUL in it"),
        (b'# MEMORY: size("/a\\x00b")', "2: error: MEMORY: it has a NUL in it"),
        (b"# ENV: SDQUEUE_JOB=x", "2: error: ENV: SDQUEUE_JOB is set by the queue itself"),
        (b"# NOT_BEFORE: later", "2: error: NOT_BEFORE: 'later' is no point in time"),
        (b"\n# RETRIES: 9", "3: warning: RETRIES does not count: the header ended in line 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(line: bytes, message: str) -> None:
    data = b"#!/bin/bash\n" + line + b"\necho hi\n"
    assert f"queue/52-gpu-laguna.job:{message}" in said(data)
    got = read(data)
    assert (got.spec is None) == any(p.severity == "error" for p in got.problems)


def test_remarks_in_capitals_are_not_taken_for_keys() -> None:
    assert said(b"# NOTE: this\n# TODO: that\n# https://example.org: x\n# shellcheck: y\n") == ""


def test_whole_file_troubles() -> None:
    assert "empty" in said(b"")
    assert "longer than 64 KiB" in said(b"# x\n" * 20_000)
    assert "absolute path" in said(b"#!python3\nprint()\n")
    assert "path is not valid UTF-8" in said("#!/bin/\U0001f600".encode() + b"\xff\n")
    assert "path has a code point in it" in said("#!/bin/ba\uffffsh\n".encode())
    assert "can't be a job's name: it has only digits" in said(b"# LANE: cpu\n", "123")


def test_the_lane_s_defaults_fill_what_the_header_leaves_open() -> None:
    lane = Lane(
        name="gpu",
        job_defaults=(("RETRIES", "9"), ("TIMEOUT", "1h"), ("ENV", "A=1"), ("MEMORY", "5G")),
        on_success=("a.service",),
        on_failure=("b.service",),
    )
    spec = spec_of(b"# RETRIES: 2\n# ON_FAILURE: c.service\n", lanes={"gpu": lane})
    assert (spec.attempts_max, spec.timeout_usec) == (2, 3_600_000_000)
    assert (spec.on_success, spec.on_failure) == (("a.service",), ("c.service",))
    assert (spec.env, spec.memory) == ((("A", "1"),), MemoryNeed(5 << 30))


def test_the_owner_s_home_takes_the_place_of_the_tilde() -> None:
    spec = spec_of(b"# CWD: ~/a\n# DISK: 1G ~\n# MEMORY: size(~/m)\n", home="/home/u")
    assert (spec.cwd, spec.disk, spec.memory) == (
        "/home/u/a",
        DiskNeed(1 << 30, "/home/u"),
        MemoryNeed(size_of_file="/home/u/m"),
    )
    assert spec_of(b"# CWD: /x/~\n", home="/home/u").cwd == "/x/~"
    for written, meant in ((b"/", "/"), (b"//a/./b//", "/a/b"), (b"~/", "/home/u")):
        assert spec_of(b"# CWD: " + written + b"\n", home="/home/u").cwd == meant


def test_only_the_head_of_a_file_is_needed() -> None:
    assert spec_of((HEADER + b"x\n" * 100_000)[: jobtext.HEADER_MAX_BYTES]).lane == "cpu"


def test_options_become_header_lines_that_do_not_depend_on_the_time() -> None:
    assert jobkeys.header_text("NOT_BEFORE", "+2h", now_sec=1.5) == "@7201.5"
    assert jobkeys.header_text("MEMORY", "1024M") == "1G"
    assert jobkeys.header_text("CWD", " /a  b") == "/a  b"
    assert jobkeys.header_text("DESCRIPTION", '"x\\ty"') == '"x\\ty"'
    for key, text in (("DONE_IF", "a\nb"), ("CWD", "/\udcff"), ("LNAE", "x"), ("NICE", "")):
        with pytest.raises(ValueError, match=r"line|UTF-8|LANE|value"):
            jobkeys.header_text(key, text)


def test_secrets_are_smelled() -> None:
    assert jobvalues.looks_secret("HF_TOKEN")
    assert not jobvalues.looks_secret("HF_HOME")


# Written and read back --------------------------------------------------------------------------

# Neither surrogates nor what is no character, in blocks of unassigned ones.
characters = st.characters(exclude_categories=["Cs", "Cn"], exclude_characters="\0")
text = st.text(characters, max_size=30)
line = st.text(st.characters(exclude_categories=["Cs", "Cn", "Cc"]), min_size=1, max_size=30).map(
    lambda t: t.strip()
).filter(bool)  # fmt: skip
names = st.text(min_size=1, max_size=12).filter(
    lambda n: not job_name_fault(n) and not n.endswith(".job")
)
units = st.lists(st.sampled_from(["a.service", "b@x.service", r"c\x2d.target"]), max_size=3)
variables = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
sizes = st.integers(0, 2**60)
parts = st.text(
    st.characters(exclude_categories=["Cs", "Cn", "Cc"], exclude_characters="/\\"),
    min_size=1,
    max_size=12,
).filter(lambda part: part not in (".", ".."))
directories = st.lists(parts, max_size=3).map(lambda found: "/" + "/".join(found))
memory = st.one_of(
    sizes.map(lambda n: MemoryNeed(bytes=n)),
    st.integers(1, 100).map(lambda n: MemoryNeed(percent=n)),
    st.tuples(st.integers(0, 9), directories).map(lambda p: MemoryNeed(p[0], 0, p[1])),
    st.tuples(directories, st.integers(1, 100)).map(lambda p: MemoryNeed(0, 0, *p)),
)
safe_text = text.filter(lambda t: not t or t.strip())
specs = st.builds(
    JobSpec,
    name=st.just("52-gpu-laguna"),
    lane=st.sampled_from(sorted(LANES)),
    description=safe_text,
    done_if=line,
    requires=line,
    attempts_max=st.integers(1, 1000),
    retry_delay_usec=st.integers(0, 2**60),
    timeout_usec=st.one_of(st.integers(1, 2**60), st.just(INFINITY_USEC)),
    memory=st.one_of(st.none(), memory),
    disk=st.one_of(st.none(), st.builds(DiskNeed, sizes, directories)),
    nice=st.one_of(st.none(), st.integers(-20, 19)),
    cpu_weight=st.one_of(st.none(), st.integers(1, 10_000)),
    not_before_sec=st.integers(0, 2**40).map(lambda n: n / 64),
    after=st.lists(names, max_size=3).map(tuple),
    after_any=st.lists(names, max_size=3).map(tuple),
    priority=st.integers(-1000, 1000),
    on_success=units.map(tuple),
    on_failure=units.map(tuple),
    env=st.lists(st.tuples(variables, safe_text), max_size=3).map(tuple),
    cwd=st.one_of(st.just(""), directories),
    on_calendar=safe_text,
)


@given(specs)
def test_a_job_written_is_the_job_read(spec: JobSpec) -> None:
    settings = jobfile.settings_of(spec)
    assert spec_of(jobtext.render(settings, ["true"])) == spec
    assert spec_of(jobtext.render_script(settings, b"#!/bin/bash\r\n\xff\x00")) == spec


PIECES = [b"#!/bin/sh\n", b"# RETRIES: 4\n", b"# x\n", b"\n", b"a\r\n", b"# LANE: cpu"]


@given(
    st.lists(st.tuples(st.sampled_from(["RETRIES", "PRIORITY"]), st.integers(1, 99).map(str))),
    st.one_of(
        st.binary(max_size=200),
        st.lists(st.sampled_from(PIECES)).map(b"".join),
    ),
)  # fmt: skip
def test_a_script_keeps_its_body_and_gets_its_header(
    settings: list[tuple[str, str]], script: bytes
) -> None:
    settings = list(dict(settings).items())
    made = jobtext.render_script(settings, script)
    before, after = jobtext.read_header(script), jobtext.read_header(made)
    assert made[after.end :] == script[before.end :] or made.endswith(script[before.start :])
    lines = {name.decode(): value.decode("latin-1") for _, name, value in after.lines}
    assert lines.items() >= dict(settings).items()
    assert after.interpreter == before.interpreter


def test_a_script_s_own_lines_are_replaced_where_they_were_said_again() -> None:
    script = b"#!/bin/sh\n# LANE: gpu\n# NICE: 1\n# prose\nbody\n# LANE: x\n"
    made = jobtext.render_script([("LANE", "cpu")], script)
    assert made == b"#!/bin/sh\n# LANE: cpu\n# NICE: 1\n# prose\nbody\n# LANE: x\n"


def test_the_light_list_of_unit_types_is_that_of_unit_names() -> None:
    assert sorted(jobvalues.UNIT_SUFFIXES) == sorted(f".{each}" for each in UNIT_TYPES)


def test_a_remark_that_only_begins_like_a_key_stays() -> None:
    made = jobtext.render_script([("LANE", "cpu")], b"# LANE\n# LANE gpu: is taken\nbody\n")
    assert made == b"# LANE: cpu\n# LANE\n# LANE gpu: is taken\nbody\n"


def test_a_script_without_a_final_newline_stays_two_lines() -> None:
    assert jobtext.render_script([("NICE", "1")], b"#!/bin/sh") == b"#!/bin/sh\n# NICE: 1\n"


@given(st.lists(st.text(st.characters(exclude_characters="\0")), min_size=1, max_size=5))
def test_bash_reads_the_command_as_it_was_given(words: list[str]) -> None:
    text = " ".join(jobtext.shell_quoted(word) for word in words)
    assert "\0" not in text
    assert _bash_words(text) == words


def _bash_words(text: str) -> list[str]:
    return shlex.split(text)


def test_real_bash_runs_the_command_as_it_was_given() -> None:
    argv = [
        "printf",
        "%s|",
        "a b",
        "",
        "it's",
        "$HOME",
        "`x`",
        "\\",
        "\n",
        "*",
        "~",
        "-n",
        "ä",
        "\udcff",
    ]
    script = jobtext.render([("LANE", "cpu")], argv)
    out = subprocess.run(["bash", "-s"], input=script, capture_output=True, check=True).stdout
    expected = "".join(f"{word}|" for word in argv[2:])
    assert out == expected.encode("utf-8", "surrogateescape")
    dashed = jobtext.render([], ["-x"])
    done = subprocess.run(["bash", "-s"], input=dashed, capture_output=True, check=False)
    assert done.returncode == 127


def test_the_snapshot_is_what_bash_can_run() -> None:
    assert jobtext.snapshot_of(jobtext.BOM + b"a\r\nb\r\n") == b"a\nb\n"
    assert jobtext.snapshot_of(b"a\r\nb\n") == b"a\r\nb\n"
    assert jobtext.snapshot_of(b"\n\xff\x00") == b"\n\xff\x00"


HOSTILE = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"\n", b"\r\n", b"#", b"# ", b": ", b"#!", jobtext.BOM, b'"', b"size("]),
        st.sampled_from([key.name.encode() for key in jobkeys.KEYS]),
    ),
    max_size=30,
).map(b"".join)  # fmt: skip


@given(HOSTILE, st.text(max_size=20))
def test_no_file_makes_the_parser_raise(data: bytes, name: str) -> None:
    got = jobfile.parse(name, data, lanes=LANES)
    assert (got.spec is None) == any(p.severity == "error" for p in got.problems)
    for problem in got.problems:
        assert "\n" not in str(problem).replace(name, "")
