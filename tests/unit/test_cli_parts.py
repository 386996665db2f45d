"""The small parts of the command line: parsing, tables, widths, times, and how fast it loads."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.cli.options import REST, Arguments, Parser, parser_for
from sdqueue.cli.output import Column, table
from sdqueue.cli.place import Place
from sdqueue.cli.rows import Told, completed, only_told
from sdqueue.cli.safe import ellipsized, padded, safe, width
from sdqueue.cli.times import ago, span, stamp
from sdqueue.cli.verbs import GLOBAL_OPTIONS, VERBS, verb_named
from sdqueue.core.keys import JOB_KEYS
from sdqueue.words.errors import UsageError
from tests.harness.cli import Cli

# Parsing ----------------------------------------------------------------------------------------


def parser() -> Parser:
    made = parser_for(verb_named("list"))
    made.add_argument("first", metavar="FIRST")
    made.add_argument("others", metavar="OTHER", nargs="*")
    made.add_argument("-f", "--follow", action="store_true", help="x")
    made.add_argument("-n", "--lines", type=int, help="x")
    made.add_argument("--lane", action="append", help="x")
    made.add_argument("--file", nargs="+", action="extend", help="x")
    return made


def parsed(*words: str) -> Arguments:
    return parser().parse_args(words)


def test_options_stand_anywhere_and_values_behind_an_equals_sign_or_in_the_next_word() -> None:
    args = parsed("a", "--lane=x", "b", "--lane", "y", "-fn5", "c", "--system", "--user")
    assert (args.first, args.others, args.lane) == ("a", ["b", "c"], ["x", "y"])
    assert (args.follow, args.lines, args.system) == (True, 5, False)


def test_nothing_behind_two_dashes_is_an_option() -> None:
    args = parsed("--", "-f", "--lane", "--")
    assert (args.first, args.others, args.follow) == ("-f", ["--lane", "--"], False)


def test_a_value_may_look_like_an_option_and_a_list_ends_at_the_next_one() -> None:
    args = parsed("--lines", "-1", "--file", "a", "b", "-f", "c")
    assert (args.lines, args.file, args.first) == (-1, ["a", "b"], "c")


def test_a_bare_json_takes_no_word() -> None:
    assert (parsed("--json", "short").json, parsed("--json=short", "x").json) == ("pretty", "short")
    assert parsed("x").json == "off"


@given(st.lists(st.text(max_size=5), max_size=5))
def test_the_rest_is_kept_word_for_word(words: list[str]) -> None:
    made = parser_for(verb_named("submit"))
    made.add_argument("command", nargs=REST)
    assert made.parse_args(["--no-pager", "--", *words]).command == words
    assert made.parse_args(["--no-pager", "word", *words]).command == ["word", *words]


@given(
    st.lists(st.sampled_from(["--", "-", "-f", "-n", "--json", "--lane", "=", "--file", "x", "-é"]))
)
def test_no_words_do_anything_but_parse_or_be_refused(words: list[str]) -> None:
    with suppress(UsageError):
        parsed(*words)


@pytest.mark.parametrize("words", [(), ("--lane",), ("-x", "a"), ("a", "--lines=x"), ("a", "-f=1")])
def test_what_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parsed(*words)


def test_a_setting_that_the_parser_does_not_know_is_a_bug() -> None:
    with pytest.raises(TypeError, match="version_added"):
        parser().add_argument("--x", version_added="1")


def test_every_option_of_every_verb_is_in_one_table() -> None:
    names = [name for verb in VERBS for name in (verb.name, *verb.aliases)]
    assert len(names) == len(set(names))
    assert set(parser_for(VERBS[0]).flags) == set(GLOBAL_OPTIONS)


# Text -------------------------------------------------------------------------------------------


@given(st.text())
def test_safe_text_is_printable_and_known_in_width(text: str) -> None:
    assert safe(text).isprintable()
    assert safe(safe(text)) == safe(text)


@given(st.text(), st.integers(0, 30))
def test_cut_and_padded_text_has_the_width_that_was_asked_for(text: str, columns: int) -> None:
    cut = ellipsized(safe(text), columns)
    assert width(cut) <= columns
    assert width(padded(cut, columns)) == columns
    assert width(safe(text)) > columns or cut == safe(text)


def test_wide_and_combining_characters_count_as_the_terminal_shows_them() -> None:
    assert [width(text) for text in ("abc", "日本", "e\u0301", "…")] == [3, 4, 1, 1]


def test_columns_are_aligned_and_unused_ones_left_out() -> None:
    columns = (Column("A", "a"), Column("N", "n", right=True), Column("X", "x", optional=True))
    rows = [{"a": "日本", "n": "5"}, {"a": "abcdef", "n": "12345"}]
    assert table(columns, rows) == ["A           N", "日本        5", "abcdef  12345"]
    assert table(columns, rows, legend=False) == ["日本        5", "abcdef  12345"]
    assert table(columns, []) == ["A  N"]


# Rows -------------------------------------------------------------------------------------------


def row(name: str, state: str = "queued", **more: object) -> dict[str, object]:
    return {**dict.fromkeys(JOB_KEYS), "name": name, "state": state, "lane": "gpu", **more}


def test_jobs_that_the_controller_left_out_stand_behind_the_head_of_their_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = Place(system=False)
    files = [row("r", "running"), row("h"), row("x"), row("n", lane="net"), row("d", "done")]
    aside = [row("r", "running", run=3), row("h", reason={"code": "paused", "detail": "p"})]
    found = completed(files, Told(aside, {"gpu": "h"}), place)
    codes = {each["name"]: each["reason"] and each["reason"]["code"] for each in found}  # type: ignore[index]
    assert codes == {"r": None, "h": "paused", "x": "earlier-job", "n": "new", "d": None}
    assert [each["run"] for each in found] == [3, None, None, None, None]
    one_by_one = completed(files, Told(aside), place)
    assert one_by_one[2]["reason"]["code"] == "new"  # type: ignore[index]
    assert completed(files, None, place) == files


def test_only_what_the_controller_tells_where_files_cannot_be_read() -> None:
    told = [row("10", reason={"code": "x"}), row("9"), row("r", "running")]
    found = only_told(told, ["running", "queued", "done"], lambda name: name != "x")
    assert [each["name"] for each in found] == ["r", "9", "10"]


# Times ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "now"),
        (0.25, "250ms ago"),
        (59, "59s ago"),
        (61, "1min 1s ago"),
        (300, "5min ago"),
        (2 * 3600 + 16 * 60, "2h 16min ago"),
        (7 * 3600 + 16 * 60, "7h ago"),
        (86400 + 3600, "1 day 1h ago"),
        (3 * 86400, "3 days ago"),
        (15 * 86400, "2 weeks 1 day ago"),
        (-90, "1min 30s left"),
    ],
)
def test_ages_are_as_systemd_shows_them(seconds: float, text: str) -> None:
    assert ago(1e9 - seconds, 1e9) == text


def test_no_time_is_no_text() -> None:
    assert (ago(None, 1.0), ago(0, 1.0), stamp(None), stamp(0), span(0)) == ("", "", "", "", "")
    assert stamp(1.5e9)[:15].startswith("Fri 2017-07-14") or stamp(1.5e9).startswith("Thu")


# Loading ----------------------------------------------------------------------------------------

SLOW = {
    "argparse",
    "asyncio",
    "dataclasses",
    "enum",
    "inspect",
    "json",
    "re",
    "socket",
    "subprocess",
    "typing",
}


def test_submit_loads_no_slow_module(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); before = set(sys.modules)\n"
        "from sdqueue.cli import main; main()\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    root = str(Path(__file__).parents[2])
    argv = [sys.executable, "-I", "-S", "-c", program, root]
    done = subprocess.run(
        [*argv, "--user", "submit", "--retries", "2", "--", "true"],
        env=cli.env,
        capture_output=True,
        text=True,
        check=True,
    )
    name, loaded = done.stdout.splitlines()
    assert name == "001-cpu-true"
    assert SLOW & set(loaded.split()) == set()
