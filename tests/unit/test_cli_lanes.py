"""`is-free`, `owners` and how `status` shows lanes, without a controller: nothing is a yes."""

from pathlib import Path

import pytest

from sdqueue.cli import hold, is_free, owners, status
from sdqueue.cli.options import parser_for
from sdqueue.cli.rows import Row
from sdqueue.cli.verbs import verb_named
from sdqueue.core.keys import LANE_KEYS, OWNER_KEYS
from sdqueue.core.verdict import LaneWord
from tests.harness.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def lane_row(**known: object) -> Row:
    return {**dict.fromkeys(LANE_KEYS), "name": "gpu", "generation": 5, **known}


def test_without_a_controller_it_can_not_be_told_which_is_status_4(cli: Cli) -> None:
    done = cli("is-free", "gpu")
    assert (done.status, done.err) == (4, "")
    assert done.out.startswith("lane gpu is unknown: the controller can't be asked, since ")
    assert "start it with: " in done.out
    answer = cli("is-free", "gpu", "--json=short").json
    assert (answer["free"], answer["state"], answer["generation"]) == (False, "unknown", None)
    assert cli("is-free", "-q", "gpu").out == ""


def test_a_lane_that_there_is_none_of_is_not_free_either(cli: Cli) -> None:
    done = cli.here("is-free", "gup")
    assert (done.status, done.out) == (2, "")
    assert "gpu" in done.err


@pytest.mark.parametrize("words", [("is-free",), ("is-free", "gpu", "net"), ("owners", "a", "b")])
def test_one_lane_is_asked_for(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli.here(*words).status == 2


@pytest.mark.parametrize("word", LaneWord)
def test_only_a_lane_that_is_free_is_status_0(word: LaneWord) -> None:
    answer = is_free._told(lane_row(state=str(word)))
    status_of = {LaneWord.FREE: 0, LaneWord.UNKNOWN: 4}
    assert is_free.STATUS_OF[str(answer["state"])] == status_of.get(word, 1)
    assert answer["free"] is (word is LaneWord.FREE)


@pytest.mark.parametrize(
    "row",
    [
        lane_row(state="free", generation=None),
        lane_row(state="busy"),
        lane_row(state=None),
    ],
    ids=["of before there were verdicts", "a word of later", "no word"],
)
def test_what_another_version_says_is_no_yes(row: Row) -> None:
    answer = is_free._told(row)
    assert (answer["state"], answer["free"]) == ("unknown", False)


def test_owners_asks_the_controller(cli: Cli) -> None:
    assert cli("owners").status == 3


def test_an_owner_is_shown_with_what_was_seen_and_who_it_is() -> None:
    row: Row = dict.fromkeys(OWNER_KEYS) | {
        "lane": "gpu",
        "standing": "untouchable",
        "counts": True,
        "use": "resident",
        "pid": 5,
        "comm": "ollama",
        "uid": 0,
        "memory": 3 << 30,
        "detail": "of uid 0, whom this user can't stop",
        "seen": ["kfd: 3G", "kfd: 3G"],
    }
    cells = owners._cells(row | {"user": owners.user_name(row["uid"])})
    assert (cells["user"], cells["memory"], cells["pid"], cells["since"]) == ("root", "3G", "5", "")
    assert cells["seen"] == "of uid 0, whom this user can't stop; kfd: 3G"
    assert (cells["unit"], cells["paint"]) == ("", "bad")
    assert owners._cells(row | {"counts": False, "user": None})["paint"] == "dim"
    assert owners.user_name(2**31 - 7) == str(2**31 - 7)
    assert owners.user_name(2**63) == str(2**63)


@pytest.mark.parametrize(
    ("known", "holder", "next_", "why"),
    [
        ({"state": "free", "queued": 0}, "-", "", ""),
        (
            {"state": "leased", "holders": ["engine"], "detail": "engine, pid 7 has it"},
            "engine",
            "",
            "engine, pid 7 has it",
        ),
        (
            {"state": "leased", "holders": ["engine"], "requests": ["two"], "detail": "x"},
            "engine",
            "two",
            "x",
        ),
        (
            {"state": "foreign", "holder": "ollama.service", "detail": "ollama uses it"},
            "ollama.service",
            "",
            "ollama uses it",
        ),
        (
            {"state": "wanted", "holder": "g", "next": "g", "reason": {"detail": "why g waits"}},
            "-",
            "g",
            "why g waits",
        ),
        ({"state": "running", "holders": ["a", "b"], "detail": "a has it"}, "a, b", "", ""),
        ({"state": "running", "occupants": ["x.service"]}, "x.service", "", ""),
        ({"state": "unknown", "detail": "it can't be read"}, "-", "", "it can't be read"),
    ],
    ids=lambda value: value["state"] if isinstance(value, dict) else "",
)
def test_a_lane_in_status(known: Row, holder: str, next_: str, why: str) -> None:
    cells = status._lane_cells(lane_row(**known), 0.0)
    assert (cells["holder"], cells["next"], cells["why"]) == (holder, next_, why)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("gpu",), 2, "COMMAND is missing"),
        (("gpu", "--json", "--", "true"), 2, "no JSON"),
        (("gpu", "--yield=soon", "--", "true"), 2, "soon"),
        (("gpu", "--wait-timeout=x", "--", "true"), 2, "x"),
        (("gpu", "--", "no-such-program"), 127, "there is no program no-such-program"),
        (("gpu", "--wait-timeout=0", "--", "true"), 5, "the controller can't be asked"),
        (("gpu", "--", "true"), 5, "the controller can't be asked"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_hold_says_what_keeps_it_from_running(
    cli: Cli, words: tuple[str, ...], status: int, said: str
) -> None:
    done = cli.here("hold", *words)
    assert (done.status, done.out) == (status, "")
    assert said in done.err


def test_options_behind_the_command_are_the_commands() -> None:
    parser = parser_for(verb_named("hold"))
    hold.add_arguments(parser)
    args = parser.parse_args(["gpu", "--yield=30s", "--", "engine", "--yield", "--json"])
    assert (args.lane, args.yields) == ("gpu", "30s")
    assert args.command == ["engine", "--yield", "--json"]
    assert parser.parse_args(["gpu", "--yield", "--", "engine"]).yields == "0"
    assert parser.parse_args(["gpu", "--", "engine"]).yields is None


def test_adopt_asks_the_controller(cli: Cli) -> None:
    assert cli.here("adopt", "gpu", "1").status == 3
    assert cli.here("adopt", "gpu").status == 2
