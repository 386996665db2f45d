"""How values are split and expanded: booleans, lists, command lines, specifiers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.unitfile.command import BadCommand, commands
from sdqueue.unitfile.specifier import (
    FULL_SPECIFIERS,
    NAME_SPECIFIERS,
    Host,
    UnknownSpecifier,
    expand,
    repeats_instance,
)
from sdqueue.unitfile.split import boolean, strv, words

HOST = Host(
    machine_id="abc",
    boot_id="def",
    hostname="box.example",
    kernel="6.1",
    architecture="x86-64",
    os_release={"ID": "debian", "VERSION_ID": "12"},
    user="ann",
    uid=1000,
    group="staff",
    gid=50,
    home="/home/ann",
)


TRUE, FALSE, NEITHER = "yes TRUE 1 t on Y", "no False 0 n f off", ("", "2", "yes ", "enabled")
BOOLEANS = [(each, True) for each in TRUE.split()] + [(each, False) for each in FALSE.split()]


@pytest.mark.parametrize(("text", "value"), [*BOOLEANS, *((each, None) for each in NEITHER)])
def test_booleans(text: str, value: bool | None) -> None:
    assert boolean(text) is value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", ["a", "b"]),
        (" a\t\n b ", ["a", "b"]),
        ('"a.service" b', ['"a.service"', "b"]),
        ("a\\x2db", ["a\\x2db"]),
        ("a,b", ["a,b"]),
        ("", []),
    ],
)
def test_dependency_lists_split_at_blanks_only(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", ["a", "b"]),
        ('"a b" c', ["a b", "c"]),
        ("'a b'", ["a b"]),
        ('a"b c"d', ["ab cd"]),
        ('""', [""]),
        ("a\\x2db", ["a\\x2db"]),
        ("a\\", ["a\\"]),
        ('a "b', ["a"]),
        ("", []),
        ("a ''", ["a", ""]),
    ],
)
def test_other_lists_split_at_blanks_outside_quotes(text: str, expected: list[str]) -> None:
    assert strv(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/bin/a", [("", "/bin/a", ("/bin/a",))]),
        ("/bin/a b 'c d'", [("", "/bin/a", ("/bin/a", "b", "c d"))]),
        ("-/bin/a", [("-", "/bin/a", ("/bin/a",))]),
        ("@/bin/a b c", [("@", "/bin/a", ("b", "c"))]),
        ("-:!!/bin/a", [("-:!!", "/bin/a", ("/bin/a",))]),
        ("a x", [("", "a", ("a", "x"))]),
        ("/a ; /b c", [("", "/a", ("/a",)), ("", "/b", ("/b", "c"))]),
        ("/a \\; b", [("", "/a", ("/a", ";", "b"))]),
        ("/a ';' b", [("", "/a", ("/a", ";", "b"))]),
        ("/a;b", [("", "/a;b", ("/a;b",))]),
        ("; /a", [("", "/a", ("/a",))]),
        ("/a \\x41\\n\\101", [("", "/a", ("/a", "A\nA"))]),
        ("/a \\q", [("", "/a", ("/a", "\\q"))]),
        ("/a %i %%", [("", "/a", ("/a", "x", "%"))]),
        ("//a/./b", [("", "/a/b", ("//a/./b",))]),
        ('"/a', []),
        ("-relative/x", []),
        ("-/a %Q", []),
        ("", []),
    ],
)
def test_command_lines(text: str, expected: list[tuple[str, str, tuple[str, ...]]]) -> None:
    found = [(c.marks, c.path, c.argv) for c in commands(text, "a@x.service", HOST, None)]
    assert found == expected


@pytest.mark.parametrize(
    "text",
    ["a/b", "/a/", "@", "/a %Q", "/a 'b", '"/a b\\x22"', "/a ; b/c", "..", "@/a"],
)
def test_command_lines_for_which_systemd_refuses_the_unit(text: str) -> None:
    with pytest.raises(BadCommand):
        list(commands(text, "a.service", HOST, None))


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("%n", "a-b@c.service", "a-b@c.service"),
        ("%N", "a-b@c.service", "a-b@c"),
        ("%p", "a-b@c.service", "a-b"),
        ("%i", "a-b@c.service", "c"),
        ("%j", "a-b@c.service", "b"),
        ("%j", "ab.service", "ab"),
        ("x%i.y", "a.service", "x.y"),
        ("%m%b%H", "a.service", "abcdefbox.example"),
        ("%l", "a.service", "box"),
        ("%o-%w", "a.service", "debian-12"),
        ("%u%U%g%G", "a.service", "ann1000staff50"),
        ("%a%v", "a.service", "x86-646.1"),
        ("%%i", "a@c.service", "%i"),
        ("100%", "a.service", "100%"),
        ("%.", "a.service", "%."),
        ("%q", "a.service", "box.example"),
        ("%W", "a.service", ""),
    ],
)
def test_specifiers_in_names(text: str, unit: str, expected: str) -> None:
    assert expand(text, unit, HOST) == expected


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("%I", "a@b-c.service", "b/c"),
        ("%P", "a-b@c.service", "a/b"),
        ("%J", "a-b\\x2dc.service", "b-c"),
        ("%f", "a@b-c.service", "/b/c"),
        ("%f", "b-c.service", "/b/c"),
        ("%y %Y", "a.service", "/etc/a.service /etc"),
        ("%t %S %C %L %E", "a.service", "/run /var/lib /var/cache /var/log /etc"),
        ("%d", "a.service", "/run/credentials/a.service"),
        ("%h %s", "a.service", "/home/ann /bin/sh"),
        ("%T %V", "a.service", "/tmp /var/tmp"),
    ],
)
def test_specifiers_in_paths(text: str, unit: str, expected: str) -> None:
    file = "/etc/a.service"
    assert expand(text, unit, HOST, table=FULL_SPECIFIERS, fragment_file=file) == expected


@pytest.mark.parametrize("text", ["%I", "%P", "%f", "%t", "%Q", "%1"])
def test_what_means_nothing_in_a_name_is_an_error(text: str) -> None:
    with pytest.raises(UnknownSpecifier, match="means nothing here"):
        expand(text, "a.service", HOST)


@pytest.mark.parametrize("letter", ["m", "b", "H", "v", "a", "l"])
def test_what_is_not_known_of_a_root_is_an_error(letter: str) -> None:
    with pytest.raises(UnknownSpecifier, match="is not known"):
        expand(f"%{letter}", "a.service", Host())


def test_a_name_that_grows_too_long_is_an_error() -> None:
    with pytest.raises(ValueError, match="too long"):
        expand("%n" * 30, "a" * 20 + ".service", HOST)


@given(st.text(max_size=30))
def test_text_without_a_percent_sign_stays_and_doubling_it_does_too(text: str) -> None:
    doubled = text.replace("%", "%%")
    assert expand(doubled, "a.service", HOST, max_length=99) == text


@given(st.text("%inpN.a", max_size=20))
def test_expanding_is_total_over_the_small_specifiers(text: str) -> None:
    assert isinstance(expand(text, "a@b.service", HOST, max_length=999), str)


def test_the_small_table_is_part_of_the_full_one() -> None:
    assert NAME_SPECIFIERS.items() <= FULL_SPECIFIERS.items()


@pytest.mark.parametrize(
    ("word", "repeats"),
    [
        ("x@%i.service", False),
        ("x@%i-more.service", True),
        ("x@%n.service", True),
        ("x@%N", True),
        ("x@%%i.service", False),
        ("x@%%%i.service", True),
        ("x@a.service", False),
        ("%i.service", False),
    ],
)
def test_a_template_that_repeats_its_instance_would_go_on_for_ever(
    word: str, repeats: bool
) -> None:
    assert repeats_instance(word) is repeats
