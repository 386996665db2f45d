"""What drivers say of a client: the forms of amdgpu, i915, xe and amdxdna, old and new."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.owners.fdinfo import parse
from sdqueue.owners.sighting import MIB, Engine
from tests.harness.gpu_root import fdinfo

SLOT = "0000:03:00.0"


def test_a_file_of_no_drm_device_is_no_client() -> None:
    assert parse("pos:\t0\nflags:\t02\nmnt_id:\t5\n") is None
    assert parse("") is None


def test_amdgpu_counts_nanoseconds_and_memory_in_kib() -> None:
    text = fdinfo(
        "amdgpu",
        SLOT,
        7,
        drm_memory_vram="2048 KiB",
        drm_memory_gtt="1024 KiB",
        drm_memory_cpu="512 KiB",
        drm_engine_gfx="123 ns",
        drm_engine_enc="5 ns",
    )
    client = parse(text)
    assert client
    assert client.id == (SLOT, "7")
    assert client.memory_bytes == 3 * MIB, "what is with the processor is not on the device"
    assert client.engines == {"gfx": Engine(123), "enc": Engine(5)}


def test_resident_memory_goes_before_all_memory_of_a_region() -> None:
    text = fdinfo(
        "amdgpu",
        SLOT,
        7,
        drm_total_vram="90 MiB",
        drm_memory_vram="80 MiB",
        drm_resident_vram="70 MiB",
        drm_total_gtt="5 MiB",
        drm_shared_gtt="100 MiB",
        drm_purgeable_gtt="100 MiB",
        drm_active_gtt="100 MiB",
    )
    client = parse(text)
    assert client
    assert client.memory_bytes == 75 * MIB


def test_i915_has_engines_of_a_kind_more_than_once() -> None:
    text = fdinfo(
        "i915",
        "0000:00:02.0",
        3,
        drm_engine_render="9288864723 ns",
        drm_engine_video="50 ns",
        drm_engine_capacity_video="2",
        drm_total_system0="12 MiB",
        drm_resident_system0="4 MiB",
    )
    client = parse(text)
    assert client
    assert client.engines["video"] == Engine(50, 0, 2)
    assert client.engines["render"] == Engine(9288864723)
    assert client.memory_bytes == 4 * MIB


def test_xe_counts_cycles_of_all_cycles_and_those_are_no_region() -> None:
    text = fdinfo(
        "xe",
        SLOT,
        3,
        drm_cycles_rcs="28257900",
        drm_total_cycles_rcs="7655183225",
        drm_cycles_ccs="0",
        drm_total_cycles_ccs="7655183225",
        drm_engine_capacity_ccs="4",
        drm_resident_vram0="6 MiB",
    )
    client = parse(text)
    assert client
    assert client.engines == {
        "rcs": Engine(28257900, 7655183225),
        "ccs": Engine(0, 7655183225, 4),
    }
    assert client.memory_bytes == 6 * MIB


def test_amdxdna_has_one_engine_and_one_memory() -> None:
    text = fdinfo(
        "amdxdna_accel_driver",
        "0000:c5:00.1",
        9,
        drm_engine_npu_amdxdna="700 ns",
        drm_total_memory="64 MiB",
    )
    client = parse(text)
    assert client
    assert client.engines == {"npu-amdxdna": Engine(700)}
    assert client.memory_bytes == 64 * MIB


def test_a_number_without_a_unit_is_bytes() -> None:
    client = parse(fdinfo("amdgpu", SLOT, 1, drm_memory_vram="4096"))
    assert client
    assert client.memory_bytes == 4096


def test_a_driver_that_tells_nothing_is_mute() -> None:
    client = parse(fdinfo("nvidia-drm", SLOT, 1))
    assert client
    assert client.is_mute


@pytest.mark.parametrize("value", ["", "-5 KiB", "1e9", "٣ KiB", "9" * 40, "x", "NaN"])
def test_what_is_no_number_is_left_out(value: str) -> None:
    client = parse(fdinfo("amdgpu", SLOT, 1, drm_memory_vram=value, drm_engine_gfx=value))
    assert client
    assert client.is_mute


@given(st.text(), st.dictionaries(st.text(max_size=20), st.text(max_size=30), max_size=8))
def test_no_text_makes_the_reader_raise(noise: str, keys: dict[str, str]) -> None:
    lines = "".join(f"drm-{key}: {value}\n" for key, value in keys.items())
    parse(f"drm-driver: x\n{lines}{noise}")
