"""The configuration: every setting, every error with its line, and nothing that raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue import config as cf
from sdqueue import settings
from sdqueue.bus import window
from sdqueue.core import model
from sdqueue.core.spec import DEFAULT_LANES, Config, Lane
from sdqueue.slicekeys import SLICE_KEYS, check_slice_setting

FULL = """\
default_lane = "long"
recheck = "5min"
check_timeout = 30
startup_wait = "1h"
interrupted_max = 5
log_max = "1M"

[lane.gpu]
slots = 2
excludes = ["net", "long"]
devices = ["/dev/kfd"]
foreign = "llama-server"
ports = [8080, 11434]
owner_files = "/run/lock/gpu*.lock"
units = ["ollama.service"]
yielding = ["llm-engine-*"]
memory_margin = "2G"
on_success = ["publish@gpu.service"]
on_failure = "alarm.service"
inhibit_sleep = false

[lane.gpu.slice]
CPUWeight = 200
MemoryMax = "79%"
DeviceAllow = ["/dev/kfd rw", "char-drm rw"]
MemoryAccounting = true

[lane.gpu.job]
RETRIES = 5
TIMEOUT = "8h"

[lane.long]
before = ["cpu"]

[lane.net]
enabled = false
"""


def load(*texts: str) -> cf.ConfigFile:
    return cf.load((f"/etc/{n}.toml", text) for n, text in enumerate(texts))


def good(*texts: str) -> Config:
    got = load(*texts)
    assert got.problems == ()
    return got.config


def said(*texts: str) -> list[str]:
    return [str(problem) for problem in load(*texts).problems]


def test_no_file_is_the_default() -> None:
    assert good() == good("") == Config()
    assert tuple(good().lanes.values()) == DEFAULT_LANES


def test_every_setting_is_read() -> None:
    config = good(FULL.replace('excludes = ["net", "long"]', 'excludes = ["long"]'))
    assert config.default_lane == "long"
    assert config.recheck_usec == 300_000_000
    assert config.check_timeout_usec == 30_000_000
    assert config.startup_wait_usec == 3_600_000_000
    assert (config.interrupted_max, config.log_max_bytes) == (5, 1 << 20)
    assert list(config.lanes) == ["cpu", "gpu", "long"]
    assert config.lanes["gpu"] == Lane(
        name="gpu",
        slots=2,
        excludes=frozenset({"long"}),
        devices=("/dev/kfd",),
        foreign=("llama-server",),
        ports=(8080, 11434),
        owner_files=("/run/lock/gpu*.lock",),
        units=("ollama.service",),
        yielding=("llm-engine-*",),
        memory_margin_bytes=2 << 30,
        on_success=("publish@gpu.service",),
        on_failure=("alarm.service",),
        inhibit_sleep=False,
        slice_properties=(
            ("CPUWeight", "200"),
            ("MemoryMax", "79%"),
            ("DeviceAllow", "/dev/kfd rw"),
            ("DeviceAllow", "char-drm rw"),
            ("MemoryAccounting", "yes"),
        ),
        job_defaults=(("RETRIES", "5"), ("TIMEOUT", "8h")),
    )
    assert config.lanes["long"].excludes == {"gpu"}
    assert config.lanes["long"].before == ("cpu",)


def test_the_tables_cover_the_model() -> None:
    lane = set(Lane._fields) - {"name", "slice_properties", "job_defaults"}
    assert {s.field for s in settings.LANE_SETTINGS} == lane | {"enabled"}
    queue = set(Config._fields) - {"lanes"}
    assert {s.field for s in settings.QUEUE_SETTINGS} == queue
    for setting in (*settings.LANE_SETTINGS, *settings.QUEUE_SETTINGS):
        assert setting.help
        assert f"\n{setting.key} = " in f"\n{FULL}"


def test_drop_ins_override_single_settings_in_their_order() -> None:
    config = good(
        "[lane.gpu]\nslots = 2\nmemory_margin = 5\n[lane.gpu.slice]\nCPUWeight = 1\nIOWeight = 2\n",
        "[lane.gpu]\nslots = 3\n[lane.gpu.slice]\nCPUWeight = 7\n",
        "recheck = 10\n",
    )
    gpu = config.lanes["gpu"]
    assert (gpu.slots, gpu.memory_margin_bytes) == (3, 5)
    assert dict(gpu.slice_properties) == {"CPUWeight": "7", "IOWeight": "2"}


def test_exclusion_is_made_symmetric() -> None:
    lanes = good('[lane.io]\nexcludes = ["cpu"]\n').lanes
    assert lanes["cpu"].excludes == {"io"}
    assert lanes["io"].excludes == {"cpu"}


def test_what_was_written_wins_over_a_default_exclusion() -> None:
    lanes = good("[lane.gpu]\nexcludes = []\n").lanes
    assert not lanes["gpu"].excludes
    assert not lanes["net"].excludes
    lanes = good('[lane.gpu]\nexcludes = ["cpu"]\n').lanes
    assert lanes["cpu"].excludes == {"gpu"}
    assert not lanes["net"].excludes


def test_a_removed_default_lane_leaves_no_trace() -> None:
    lanes = good("[lane.net]\nenabled = false\n").lanes
    assert list(lanes) == ["cpu", "gpu"]
    assert not lanes["gpu"].excludes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recheck = 0\n", "1: error: recheck: it must be longer than 0"),
        ("recheck = [1]\n", "1: error: recheck: it must be a time span"),
        ("\nrechek = 5\n", "2: error: there is no setting 'rechek'; did you mean recheck?"),
        ("interrupted_max = true\n", "1: error: interrupted_max: it must be a whole number"),
        ('log_max = "1K"\n', "1: error: log_max: it must be at least 64K"),
        ('default_lane = "gpx"\n', "1: error: default_lane: there is no lane gpx; did you mean"),
        ("lane = 5\n", "1: error: lane: it must be tables"),
        ("[lane]\ngpu = 5\n", "2: error: lane.gpu: it must be a table"),
        ("\n[lane.G-PU]\n", "2: error: 'G-PU' can't be a lane"),
        ("[lane.gpu]\nslot = 2\n", "2: error: a lane has no setting 'slot'; did you mean slots?"),
        ("[lane.gpu]\nslots = 0\n", "2: error: slots: it must be a whole number from 1 to 64"),
        ("[lane.gpu]\nslots = 63\n", "2: error: slots: all lanes together have 65, and may hav"),
        ('[lane.gpu]\n\nexcludes = ["nte"]\n', "3: error: excludes: there is no lane 'nte'; di"),
        ('[lane.gpu]\nexcludes = ["gpu"]\n', "2: error: excludes: gpu names itself"),
        ("[lane.gpu]\nexcludes = [3]\n", "2: error: excludes: it must be a text"),
        ('[lane.gpu]\nbefore = ["net"]\n', "error: before: lanes wait in a circle: "),
        ('lane.gpu.before = ["gpu"]\n', "1: error: before: gpu names itself"),
        ('[lane.gpu]\ndevices = ["/etc/x"]\n', "2: error: devices: '/etc/x' is no path below /dev"),
        ('[lane.gpu]\nforeign = ["a-name-of-16-byt"]\n', "2: error: foreign: 'a-name-of-16-byt"),
        ("[lane.gpu]\nports = [0]\n", "2: error: ports: it must be a port from 1 to 65535"),
        ('[lane.gpu]\nowner_files = ["gpu.lock"]\n', "2: error: owner_files: 'gpu.lock' is no pa"),
        ('[lane.gpu]\nunits = ["ollama"]\n', "2: error: units: 'ollama' fits no unit"),
        ('[lane.gpu]\non_success = ["x"]\n', "2: error: on_success: 'x' is no unit"),
        ("[lane.gpu]\nslice = 5\n", "2: error: slice: it must be a table"),
        ("[lane.gpu.slice]\nCPUWieght = 5\n", "2: error: CPUWieght: 'CPUWieght' is no setting"),
        ("[lane.gpu.slice]\nConcurrencyHardMax = 5\n", "2: error: ConcurrencyHardMax: Concurre"),
        ('[lane.gpu.slice]\nMemoryMax = "5\\nX=1"\n', "2: error: MemoryMax: "),
        ("[lane.gpu.slice]\nMemoryMax = 1.5\n", "2: error: MemoryMax: it must be a text, a number"),
        ("[lane.gpu.job]\nRETRIS = 5\n", "2: error: RETRIS: there is no key 'RETRIS'; did you"),
        ("[lane.gpu.job]\nRETRIES = 0\n", "2: error: RETRIES: 0 is not between 1"),
        ('[lane.gpu.job]\nAFTER = "a"\n', "2: error: AFTER: it can't be the same for every job"),
        ("[lane.gpu\n", "1: error: it is no valid TOML: "),
        ("a = 1\nb = = 2\n", "2: error: it is no valid TOML: "),
        ("a = '''\n", "error: it is no valid TOML: "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, message: str) -> None:
    got = said(text)
    assert any(message in words for words in got), got
    assert all(words.startswith("/etc/0.toml:") for words in got)
    assert load(text).config == Config()


def test_an_error_is_said_in_the_file_that_has_it() -> None:
    files = ("[lane.gpu]\nslots = 60\n", "recheck = 5\n", "\n[lane.cpu]\nslots = 9\n")
    assert said(*files) == [
        "/etc/0.toml:2: error: slots: all lanes together have 70, and may have 64"
    ]


def test_bytes_that_are_no_text_are_said() -> None:
    got = cf.load([("x", b"a = 1\nb = \xff\n")])
    assert str(got.problems[0]) == "x:2: error: it is not valid UTF-8"
    assert cf.load([("x", b"\xef\xbb\xbfrecheck = 5\n")]).problems == ()


@pytest.mark.parametrize("name", sorted(SLICE_KEYS))
def test_no_slice_setting_takes_a_value_that_ends_its_line(name: str) -> None:
    for value in ("a\nb", "1\n[Unit]", "1\r", "1\\", "", "\x00", "\u2028"):
        with pytest.raises(ValueError, match=r"\w"):
            check_slice_setting(name, value)


toml_value = st.recursive(
    st.one_of(st.integers(-5, 100), st.booleans(), st.text(max_size=8), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
lane_table = st.dictionaries(
    st.one_of(st.sampled_from(settings.LANE_KEYS), st.text(max_size=5)), toml_value, max_size=4
)


@given(
    st.dictionaries(st.one_of(st.sampled_from(settings.TOP_KEYS), st.text(max_size=5)), toml_value),
    st.dictionaries(st.one_of(st.sampled_from(["gpu", "net", "new"]), st.text()), lane_table),
)
def test_no_table_makes_the_reader_raise(
    top: dict[str, object], lanes: dict[str, dict[str, object]]
) -> None:
    draft = cf._Draft()
    draft.lanes = {lane.name: cf._settings_of(lane) for lane in DEFAULT_LANES}
    cf._take_file(draft, {**top, "lane": lanes})
    config = cf._assemble(draft)
    if not draft.problems:
        for name, lane in config.lanes.items():
            assert all(name in config.lanes[other].excludes for other in lane.excludes)


@given(st.one_of(st.binary(max_size=100), st.text("[]lane.gpu=\"'\n#1{},", max_size=60)))
def test_no_file_makes_the_reader_raise(content: str | bytes) -> None:
    cf.load([("x", content)])


def test_all_slots_together_are_no_more_than_may_start_at_once() -> None:
    assert settings.SLOTS_MAX == model.STARTS_MAX == window.STARTS_MAX
