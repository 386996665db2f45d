"""The properties of a job's unit, as a literal list for a few jobs, in both modes."""

import subprocess
from dataclasses import replace

import pytest

from sdqueue.core.spec import DEFAULT_LANES, INFINITY_USEC, JobSpec, Lane
from sdqueue.core.unit import (
    Property,
    RunContext,
    command,
    done_if_text,
    job_properties,
    lane_properties,
)

LANES = {lane.name: lane for lane in DEFAULT_LANES}

SIGNATURES = {
    **dict.fromkeys(("Type", "Slice", "Description", "SyslogIdentifier", "CollectMode"), "s"),
    **dict.fromkeys(("WorkingDirectory", "User", "DevicePolicy"), "s"),
    **dict.fromkeys(("RemainAfterExit", "IgnoreOnIsolate", "IPAccounting"), "b"),
    **dict.fromkeys(("Requires", "After", "Conflicts", "Documentation", "Environment"), "as"),
    **dict.fromkeys(("StartLimitIntervalUSec", "TimeoutStartUSec", "CPUWeight"), "t"),
    **dict.fromkeys(("ExecStart", "ExecStartPost"), "a(sasb)"),
    **dict.fromkeys(("ExecStop", "ExecStopPost"), "a(sasb)"),
    "LogExtraFields": "aay",
    "Nice": "i",
}
"""As systemd spells the properties of StartTransientUnit that a job may have."""


def context(**keys: object) -> RunContext:
    run = "/q/runs/j/1"
    return RunContext(
        **{  # type: ignore[arg-type]
            "attempt": 2,
            "script_file": f"{run}/script",
            "record_file": f"{run}/run.json",
            "done_if_file": f"{run}/done_if",
            "witness_script": "/q/witness",
            "witness_file": f"{run}/exit",
            "whole_file": f"{run}/whole",
            "state_dir": "/q/work/j",
            "home_dir": "/home/u",
            "boot": "b" * 32,
            **keys,
        }
    )


PLAIN = JobSpec(name="52-gpu-laguna", lane="gpu")
FULL = JobSpec(
    name="7-net-$x",
    lane="net",
    uid=1000,
    description="weights",
    done_if='test "$(wc -l <a)" = 3',
    attempts_max=5,
    timeout_usec=60_000_000,
    nice=-3,
    cpu_weight=50,
    env=(("A", "1 2"), ("SDQUEUE_JOB", "forged")),
    cwd="/srv",
    interpreter=("/usr/bin/env", "python3"),
)

EXPECTED_PLAIN: list[Property] = [
    ("Type", "s", "oneshot"),
    ("RemainAfterExit", "b", False),
    ("Slice", "s", "sdqueue-gpu.slice"),
    ("Requires", "as", ["sdqueue-lane-gpu.target"]),
    ("After", "as", ["sdqueue-lane-gpu.target", "sdqueue-lane-net.target"]),
    ("Conflicts", "as", ["sdqueue-lane-net.target"]),
    ("IgnoreOnIsolate", "b", True),
    ("Documentation", "as", ["man:sdqueue.job(5)"]),
    ("Description", "s", "[gpu] 52-gpu-laguna, attempt 2 of 3"),
    ("SyslogIdentifier", "s", "52-gpu-laguna"),
    (
        "LogExtraFields",
        "aay",
        [b"SDQUEUE_JOB=52-gpu-laguna", b"SDQUEUE_LANE=gpu", b"SDQUEUE_ATTEMPT=2"],
    ),
    ("CollectMode", "s", "inactive"),
    ("StartLimitIntervalUSec", "t", 0),
    ("TimeoutStartUSec", "t", INFINITY_USEC),
    (
        "Environment",
        "as",
        [
            "SDQUEUE_JOB=52-gpu-laguna",
            "SDQUEUE_LANE=gpu",
            "SDQUEUE_ATTEMPT=2",
            "SDQUEUE_RUN=/q/runs/j/1/run.json",
            f"SDQUEUE_BOOT={'b' * 32}",
            "STATE_DIRECTORY=/q/work/j",
        ],
    ),
    ("WorkingDirectory", "s", "/home/u"),
    ("ExecStart", "a(sasb)", [("/bin/bash", ["/bin/bash", "/q/runs/j/1/script"], False)]),
    (
        "ExecStop",
        "a(sasb)",
        [("/bin/sh", ["/bin/sh", "/q/witness", "/q/runs/j/1/whole"], True)],
    ),
    (
        "ExecStopPost",
        "a(sasb)",
        [("/bin/sh", ["/bin/sh", "/q/witness", "/q/runs/j/1/exit"], True)],
    ),
]

EXPECTED_FULL: list[Property] = [
    ("Type", "s", "oneshot"),
    ("RemainAfterExit", "b", False),
    ("Slice", "s", "sdqueue-net.slice"),
    ("Requires", "as", ["sdqueue-lane-net.target"]),
    ("After", "as", ["sdqueue-lane-net.target", "sdqueue-lane-gpu.target"]),
    ("Conflicts", "as", ["sdqueue-lane-gpu.target"]),
    ("IgnoreOnIsolate", "b", True),
    ("Documentation", "as", ["man:sdqueue.job(5)"]),
    ("IPAccounting", "b", True),
    ("DevicePolicy", "s", "closed"),
    ("Description", "s", "[net] 7-net-$x, attempt 2 of 5: weights"),
    ("SyslogIdentifier", "s", "7-net-$x"),
    (
        "LogExtraFields",
        "aay",
        [b"SDQUEUE_JOB=7-net-$x", b"SDQUEUE_LANE=net", b"SDQUEUE_ATTEMPT=2"],
    ),
    ("CollectMode", "s", "inactive"),
    ("StartLimitIntervalUSec", "t", 0),
    ("TimeoutStartUSec", "t", 60_000_000),
    (
        "Environment",
        "as",
        [
            "A=1 2",
            "SDQUEUE_JOB=forged",
            "SDQUEUE_JOB=7-net-$x",
            "SDQUEUE_LANE=net",
            "SDQUEUE_ATTEMPT=2",
            "SDQUEUE_RUN=/q/runs/j/1/run.json",
            f"SDQUEUE_BOOT={'b' * 32}",
            "STATE_DIRECTORY=/q/work/j",
        ],
    ),
    ("WorkingDirectory", "s", "/srv"),
    ("Nice", "i", -3),
    ("CPUWeight", "t", 50),
    ("User", "s", "1000"),
    (
        "ExecStart",
        "a(sasb)",
        [
            (
                "/usr/bin/env",
                ["/usr/bin/env", "python3", "/q/runs/$$/script"],
                False,
            )
        ],
    ),
    (
        "ExecStartPost",
        "a(sasb)",
        [("/bin/bash", ["/bin/bash", "/q/runs/j/1/done_if"], False)],
    ),
    (
        "ExecStop",
        "a(sasb)",
        [("/bin/sh", ["/bin/sh", "/q/witness", "/q/runs/j/1/whole"], True)],
    ),
    (
        "ExecStopPost",
        "a(sasb)",
        [("/bin/sh", ["/bin/sh", "/q/witness", "/q/runs/j/1/exit"], True)],
    ),
]


def test_a_plain_job_of_a_user() -> None:
    assert job_properties(PLAIN, LANES["gpu"], context()) == EXPECTED_PLAIN


def test_a_job_with_everything_on_the_system() -> None:
    run = context(script_file="/q/runs/$/script", user="1000", system=True)
    assert job_properties(FULL, LANES["net"], run) == EXPECTED_FULL


def test_nothing_in_a_user_s_unit_runs_as_root() -> None:
    run = context(user="1000", system=True)
    found = {key: value for key, _, value in job_properties(FULL, LANES["net"], run)}
    assert found["User"] == "1000"
    assert not [key for key in found if key.endswith("Ex")], "which could have `privileged`"


def test_every_property_is_known_and_has_its_signature() -> None:
    for properties in (EXPECTED_PLAIN, EXPECTED_FULL):
        names = [name for name, _, _ in properties]
        assert len(names) == len(set(names))
        assert {name: sign for name, sign, _ in properties}.items() <= SIGNATURES.items()
    used = {name for name, _, _ in EXPECTED_PLAIN + EXPECTED_FULL}
    assert used == set(SIGNATURES)


@pytest.mark.parametrize("devices", [(), ("/dev/kfd",)])
@pytest.mark.parametrize("system", [False, True])
def test_devices_are_closed_on_the_system_for_lanes_that_have_none(
    devices: tuple[str, ...], system: bool
) -> None:
    properties = {
        name: value
        for name, _, value in lane_properties(Lane(name="x", devices=devices), system=system)
    }
    assert properties.get("DevicePolicy") == ("closed" if system and not devices else None)
    assert properties.get("IPAccounting") == (True if system else None)


def test_no_description_can_set_anything_else_in_the_unit() -> None:
    evil = "a\n[Service]\rExecStopPost=+/home/u/evil\0\x85\u2028b\\"
    properties = job_properties(replace(PLAIN, description=evil), LANES["gpu"], context())
    description = {name: value for name, _, value in properties}["Description"]
    words = f"[gpu] {PLAIN.name}, attempt 2 of 3"
    assert description == f"{words}: a [Service] ExecStopPost=+/home/u/evil b"


def test_a_lane_that_excludes_nobody_is_after_its_own_target_only() -> None:
    properties = {name: value for name, _, value in lane_properties(LANES["cpu"], system=False)}
    assert properties["After"] == properties["Requires"] == ["sdqueue-lane-cpu.target"]
    assert properties["Conflicts"] == []


def test_a_lane_waits_for_whom_it_excludes_and_stops_only_targets() -> None:
    for lane in LANES.values():
        properties = {name: value for name, _, value in lane_properties(lane, system=True)}
        conflicts = properties["Conflicts"]
        assert isinstance(conflicts, list)
        assert all(unit.endswith(".target") for unit in conflicts)
        after = properties["After"]
        assert isinstance(after, list)
        assert set(conflicts) < set(after)


@pytest.mark.parametrize("text", ["$HOME", "$$", "${A}", "a$", "%h", "\\$", ""])
def test_systemd_reads_each_argument_as_it_is(text: str) -> None:
    path, argv, ignores = command(["/bin/x$y", text])
    assert path == "/bin/x$y"
    assert [argument.replace("$$", "$") for argument in argv] == ["/bin/x$y", text]
    assert all(run % 2 == 0 for argument in argv for run in _dollars(argument))
    assert ignores is False


def _dollars(text: str) -> list[int]:
    runs = "".join(character if character == "$" else " " for character in text).split()
    return [len(run) for run in runs]


def test_done_if_brings_its_environment_along() -> None:
    spec = replace(PLAIN, env=(("A", "it's $5"), ("SDQUEUE_JOB", "forged")), done_if="true")
    text = done_if_text(spec, context())
    ask = f'{text.removesuffix("true" + chr(10))}printf \'%s|\' "$A" "$SDQUEUE_JOB"'
    said = subprocess.run(["/bin/bash", "-c", ask], capture_output=True, text=True, check=True)
    assert said.stdout == "it's $5|52-gpu-laguna|"


def test_nothing_of_a_unit_is_written_in_a_way_that_a_reload_does_not_read_back() -> None:
    """systemd 252 puts a backslash before these, which its own parser leaves there."""
    spec = replace(FULL, interpreter=("/bin/bash",))
    for name, _, value in job_properties(spec, LANES["net"], context()):
        assert not name.endswith("Ex")
        if name.startswith("Exec"):
            assert not set('$;`\\"') & set(str(value)), name
