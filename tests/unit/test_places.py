"""What the controller makes of files in queue/: read, told apart, and never a reason to stop."""

import os
from pathlib import Path

import pytest

from sdqueue.controller.context import user_of
from sdqueue.controller.looking import list_names, look_queued, look_running
from sdqueue.controller.moving import claim
from sdqueue.controller.places import Places
from sdqueue.core.model import FORGET, JobState
from sdqueue.core.spec import Config
from sdqueue.spool import add, runs
from sdqueue.spool.layout import Spool, open_spool
from sdqueue.words.errors import NoSuchJob


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(open_spool(Spool(str(tmp_path / "s"))), Config().lanes)


@pytest.mark.parametrize("name", ["x" * 251, "\udcff", "a\nb", "123", "é" * 120, "a\ufffe"])
def test_a_name_that_no_job_can_have_is_told_and_stops_nothing(places: Places, name: str) -> None:
    Path(places.spool.job_file("queue", name)).write_bytes(b"# LANE: cpu\ntrue\n")
    assert list_names(places) == {name: JobState.QUEUED}
    (seen,) = look_queued(places, [name], {})
    assert (seen.where, seen.spec, seen.memory) == (JobState.QUEUED, None, FORGET)
    assert "can't be a job's name" in seen.problem


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_file_that_is_given_away_is_another_one(tmp_path: Path) -> None:
    places = Places(open_spool(Spool(str(tmp_path / "s"), system=True)), Config().lanes)
    add.add(places.spool, "a", b"# LANE: cpu\ntrue\n")
    (before,) = look_queued(places, ["a"], {})
    assert before.spec is not None
    assert user_of(places, before.spec) == ""
    os.chown(places.spool.job_file("queue", "a"), 65534, 65534)
    with pytest.raises(NoSuchJob):
        claim(places, before.spec, before.memory)
    (after,) = look_queued(places, ["a"], {"a": before.identity})
    assert after.spec is not None
    assert user_of(places, after.spec) == "65534"
    assert claim(places, after.spec, after.memory) == 1


@pytest.mark.parametrize("value", [10**30, -1, True, "1", None, float("inf")])
def test_a_record_that_a_job_forged_is_no_count(places: Places, value: object) -> None:
    add.add(places.spool, "1-cpu-a", b"true", state="running")
    runs.create_run(places.spool, "1-cpu-a", "running")
    forged = dict.fromkeys(("attempt", "interrupted", "cancel_uid", "start", "lane"), value)
    runs.write_record(places.spool, "1-cpu-a", 1, forged, durable=False)
    (seen,) = look_running(places, ["1-cpu-a"])
    assert seen.spec is not None
    assert (seen.spec.lane, seen.memory, seen.cancel_uid) == ("cpu", FORGET, None)
