"""systemd's syntax: what a line is, where a value stands, and that no line gets lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.unitfile.parse import LINE_MAX_BYTES, LineKind, parse, split_lines


def values(text: str | bytes) -> list[tuple[str, str, str, int]]:
    """Return (section, key, value, line) of every assignment."""
    data = text.encode() if isinstance(text, str) else text
    return [(s.section, s.key, s.value, s.place.line) for s in parse(data, "f").settings]


def kinds(text: str | bytes) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    return [str(kind) for kind in parse(data, "f").kinds]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[A]\nk=v\n", [("A", "k", "v", 2)]),
        ("[A]\nk=v", [("A", "k", "v", 2)]),
        ("[A]\n  k  =  v w \t\n", [("A", "k", "v w", 2)]),
        ("[A]\nk=\n", [("A", "k", "", 2)]),
        ("[A]\nk=a=b\n", [("A", "k", "a=b", 2)]),
        ("[A]\nk=v # not a comment\n", [("A", "k", "v # not a comment", 2)]),
        ("[A]\nk k=v\n", [("A", "k k", "v", 2)]),
        ("[A]\n[B]\nk=1\n[A]\nk=2\n", [("B", "k", "1", 3), ("A", "k", "2", 5)]),
        ("\ufeff[A]\nk=v\n", [("A", "k", "v", 2)]),
        ("[A]\n\ufeffk=v\n", [("A", "k", "v", 2)]),
        ("[A]\n\ufeffk=v\n\ufeffl=w\n", [("A", "k", "v", 2), ("A", "\ufeffl", "w", 3)]),
        ("[A]\nk=a\\\nb\n", [("A", "k", "a b", 2)]),
        ("[A]\nk=a\\\n   b\n", [("A", "k", "a    b", 2)]),
        ("[A]\nk=a\\\n# c\n; d\nb\nl=2\n", [("A", "k", "a b", 2), ("A", "l", "2", 6)]),
        ("[A]\nk=a\\\\\nl=b\n", [("A", "k", "a\\\\", 2), ("A", "l", "b", 3)]),
        ("[A]\nk=a\\\\\\\nb\n", [("A", "k", "a\\\\ b", 2)]),
        ("[A]\nk=a\\", [("A", "k", "a", 2)]),
        ("[A]\nk=a\\\n\nl=b\n", [("A", "k", "a", 2), ("A", "l", "b", 4)]),
        ("[A]\nk=a \\\n[B]\nl=1\n", [("A", "k", "a  [B]", 2), ("A", "l", "1", 4)]),
        ("[A]\r\nk=v\r\nl=w\r\n", [("A", "k", "v", 2), ("A", "l", "w", 3)]),
        ("[A]\rk=v\r", [("A", "k", "v", 2)]),
        ("[A]\n\rk=v", [("A", "k", "v", 2)]),
        ("[A]\0k=v\0l=w", [("A", "k", "v", 2), ("A", "l", "w", 3)]),
        ("[A]\r\n\0k=v", [("A", "k", "v", 2)]),
        ("[A]\n\nk=v\n", [("A", "k", "v", 3)]),
        ("k=v\n[A]\nk=w\n", [("A", "k", "w", 3)]),
        ("[A]\nnothing\n=v\nk=1\n", [("A", "k", "1", 4)]),
        ("[X-Mine]\nk=v\n", [("X-Mine", "k", "v", 2)]),
        ("[A]\n#k=v\n ;l=w\n", []),
        ("", []),
        ("\\", []),
    ],
)
def test_assignments_are_read_as_systemd_reads_them(
    text: str, expected: list[tuple[str, str, str, int]]
) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[A]\n\n#c\nk=v\nx\n", "section blank comment assignment ignored"),
        ("[A]\nk=\\\n#c\nv\n", "section assignment comment continuation"),
        ("k=v\n[A]\n", "ignored section"),
        ("[A]\n[B\nk=v\n\n", "section fatal unread unread"),
        ("[A]\nk=v\\\n", "section assignment"),
        ("[A]\nk=v\\\n\\\n\\\n", "section assignment continuation continuation"),
        ("[A\\\n]\n", "section continuation"),
        ('["A"]\n', "fatal"),
        ("[A]x\n", "fatal"),
    ],
)
def test_every_line_has_a_kind(text: str, expected: str) -> None:
    assert kinds(text) == expected.split()


@pytest.mark.parametrize(
    "bad", [b"k=\xff", b"k=\xed\xa0\x80", b"k=\xef\xbf\xbf", b"k=\xef\xb7\x90"]
)
def test_a_line_that_is_no_utf8_ends_the_reading(bad: bytes) -> None:
    read = parse(b"[A]\nj=1\n" + bad + b"\nl=2\n", "f")
    assert [setting.key for setting in read.settings] == ["j"]
    assert read.failed
    assert str(read.problems[0]).startswith("f:3: error: not valid UTF-8")


def test_a_comment_may_be_in_any_encoding() -> None:
    assert values(b"[A]\n# \xff\nk=v\n") == [("A", "k", "v", 3)]


def test_what_is_ignored_is_said_with_its_line() -> None:
    read = parse(b"k=v\n[A]\nx\n=y\n", "f")
    assert [str(problem) for problem in read.problems] == [
        "f:1: warning: assignment outside of a section, ignored",
        "f:3: warning: no '=' in this line, ignored",
        "f:4: warning: no key before '=', ignored",
    ]
    assert not read.failed


@pytest.mark.parametrize("size", [LINE_MAX_BYTES - 1, LINE_MAX_BYTES])
def test_a_line_of_a_mebibyte_is_one_too_long(size: int) -> None:
    line = b"k=" + b"x" * (size - 2)
    assert parse(b"[A]\n" + line + b"\nl=1\n", "f").failed is (size == LINE_MAX_BYTES)


def test_continuation_lines_count_together() -> None:
    half = b"x" * (LINE_MAX_BYTES // 2) + b"\\\n"
    assert parse(b"[A]\nk=" + half + half + b"y\n", "f").failed


def test_comments_keep_their_place() -> None:
    read = parse(b"[A]\n  # one\n;two\n", "f")
    assert [(each.text, each.place.line) for each in read.comments] == [("# one", 2), (";two", 3)]


PIECES = (*b"[A] [ ] k = v \\ # ; X-".split(), b" ", b"\t", b"\n", b"\r", b"\0", b"\xff")
pieces = st.sampled_from([*PIECES, "\ufeff".encode(), "\uffff".encode(), b"\xed\xa0\x80"])
files = st.binary(max_size=80) | st.lists(pieces, max_size=60).map(b"".join)


@given(files)
def test_no_input_raises_or_loses_a_line(data: bytes) -> None:
    read = parse(data, "f")
    assert len(read.kinds) == len(split_lines(data))
    counted = sum(kind is LineKind.ASSIGNMENT for kind in read.kinds)
    assert counted == len(read.settings)
    for setting in read.settings:
        assert read.kinds[setting.place.line - 1] is LineKind.ASSIGNMENT


@given(files)
def test_nothing_after_a_fatal_line_counts(data: bytes) -> None:
    read = parse(data, "f")
    if read.failed:
        at = read.kinds.index(LineKind.FATAL)
        assert all(setting.place.line <= at for setting in read.settings)
        assert set(read.kinds[at + 1 :]) <= {
            LineKind.UNREAD,
            LineKind.CONTINUATION,
            LineKind.COMMENT,
        }


@given(
    st.lists(st.tuples(st.sampled_from("klm"), st.text(st.characters(codec="ascii"), max_size=9)))
)
def test_what_was_written_is_what_is_read(pairs: list[tuple[str, str]]) -> None:
    clean = [(key, "".join(c for c in value if c.isalnum())) for key, value in pairs]
    text = "[A]\n" + "".join(f"{key}={value}\n" for key, value in clean)
    assert [(key, value) for _, key, value, _ in values(text)] == clean
