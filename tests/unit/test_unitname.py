"""Unit names: validity, parts, escaping; the last part against the real systemd-escape."""

import shutil
import string
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.words import unitname
from sdqueue.words.unitname import NameKind

ESCAPE = shutil.which("systemd-escape")
needs_escape = pytest.mark.skipif(ESCAPE is None, reason="no systemd-escape")
CHARS = string.ascii_letters + string.digits + ":-_.\\"
prefixes = st.text(CHARS, min_size=1, max_size=20)
instances = st.text(CHARS + "@", min_size=1, max_size=20)
types = st.sampled_from(unitname.UNIT_TYPES)
LONG = "/" + "a" * 200 + "/" + "b" * 200


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.service", NameKind.PLAIN),
        ("-.mount", NameKind.PLAIN),
        ("a@.service", NameKind.TEMPLATE),
        ("a@b.service", NameKind.INSTANCE),
        ("a@b@c.service", NameKind.INSTANCE),
        ("a@@.service", NameKind.INSTANCE),
        ("a.b.service", NameKind.PLAIN),
        ("\\x2d:_.scope", NameKind.PLAIN),
        ("." + "service.service", NameKind.PLAIN),
        ("x" * 247 + ".service", NameKind.PLAIN),
        ("x" * 248 + ".service", None),
        ("@b.service", None),
        ("a.services", None),
        ("a", None),
        (".service", None),
        ("", None),
        ("a b.service", None),
        ("a/b.service", None),
        ("ä.service", None),
        ("a.service\n", None),
        ("a.service ", None),
        ('"a.service"', None),
        ("%i.service", None),
    ],
)
def test_a_name_is_of_one_kind_or_not_valid(name: str, kind: NameKind | None) -> None:
    assert unitname.kind_of(name) is kind


@given(prefixes, st.none() | instances, types)
def test_what_is_built_comes_apart_into_the_same_parts(
    prefix: str, instance: str | None, unit_type: str
) -> None:
    name = unitname.build(prefix, instance, unit_type)
    assert unitname.prefix_of(name) == prefix
    assert unitname.instance_of(name) == instance
    assert unitname.type_of(name) == unit_type


@given(prefixes, instances, types)
def test_a_template_filled_with_the_instance_is_the_instance_again(
    prefix: str, instance: str, unit_type: str
) -> None:
    name = unitname.build(prefix, instance, unit_type)
    template = unitname.template_of(name)
    assert unitname.is_template(template)
    assert unitname.with_instance(template, instance) == name


@pytest.mark.parametrize("call", [unitname.type_of, unitname.prefix_of, unitname.instance_of])
def test_taking_apart_what_is_no_name_is_an_error(call: object) -> None:
    with pytest.raises(ValueError, match="not a valid unit name"):
        call("not a name")  # type: ignore[operator]


def test_a_plain_name_has_no_template() -> None:
    with pytest.raises(ValueError, match="no template"):
        unitname.template_of("a.service")


def test_an_instance_that_makes_the_name_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="not a valid"):
        unitname.with_instance("a@.service", "x" * 250)


@pytest.mark.parametrize(
    ("name", "shorter"),
    [
        ("a-b-c.service", ["a-b-.service", "a-.service"]),
        ("a-b-.service", ["a-.service"]),
        ("a-b@x.service", ["a-@x.service"]),
        ("a.service", []),
        ("-a.service", []),
        ("-.mount", []),
        ("a-.service", []),
        ("a--b.service", ["a--.service"]),
        ("foo--.service", []),
    ],
)
def test_dash_prefixes_go_from_special_to_general(name: str, shorter: list[str]) -> None:
    found = []
    current = unitname.less_specific(name)
    while current:
        found.append(current)
        current = unitname.less_specific(current)
    assert found == shorter


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_escaping_text_can_be_undone_and_is_valid_in_a_name(text: str) -> None:
    escaped = unitname.escape(text)
    assert unitname.unescape(escaped) == text
    assert not text or unitname.prefix_is_valid(escaped)


@pytest.mark.parametrize("text", ["a\\", "a\\y41", "a\\x4", "\\xzz"])
def test_a_backslash_that_begins_no_byte_cannot_be_undone(text: str) -> None:
    with pytest.raises(ValueError, match="backslash"):
        unitname.unescape(text)


@pytest.mark.parametrize(
    ("path", "escaped"),
    [
        ("/", "-"),
        ("", "-"),
        ("/a/b", "a-b"),
        ("//a/./b//", "a-b"),
        ("/.a", "\\x2ea"),
        ("/a-b", "a\\x2db"),
        ("a", "a"),
    ],
)
def test_a_path_becomes_a_prefix(path: str, escaped: str) -> None:
    assert unitname.path_escape(path) == escaped


@pytest.mark.parametrize("path", ["/a/../b", "..", "/..", "."])
def test_a_path_that_is_not_normalized_names_no_unit(path: str) -> None:
    with pytest.raises(ValueError, match="not a normalized path"):
        unitname.path_escape(path)


@pytest.mark.parametrize("text", ["", "-a", "a-", "a--b", "a-..-b", "\\x2e"])
def test_what_no_path_would_become_is_no_path(text: str) -> None:
    with pytest.raises(ValueError, match="not an escaped path"):
        unitname.path_unescape(text)


def test_too_long_a_path_becomes_a_hashed_name_that_cannot_be_told_back() -> None:
    name = unitname.from_path(LONG, "mount")
    assert len(name) == unitname.NAME_MAX
    with pytest.raises(ValueError, match="hashed"):
        unitname.to_path(name)


def test_the_hash_is_siphash_2_4() -> None:
    """The test vector of the algorithm's own paper."""
    key, data = bytes(range(16)), bytes(range(15))
    assert unitname._siphash24(data, key) == 0xA129CA6149BE45E5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a", "a.service"),
        ("a.target", "a.target"),
        ("/dev/sda1", "dev-sda1.device"),
        ("/home/x", "home-x.mount"),
        ("a b", "a\\x20b.service"),
        ("a@b", "a@b.service"),
        ("a/b", "a-b.service"),
    ],
)
def test_a_person_may_leave_the_suffix_out(text: str, name: str) -> None:
    assert unitname.mangle(text) == name


@pytest.mark.parametrize(
    ("name", "parent"),
    [
        ("-.slice", None),
        ("a.slice", "-.slice"),
        ("a-b.slice", "a.slice"),
        ("a-b-c.slice", "a-b.slice"),
    ],
)
def test_a_slice_lies_in_the_slice_that_its_name_begins_with(name: str, parent: str | None) -> None:
    assert unitname.parent_slice(name) == parent


@pytest.mark.parametrize("name", ["-a.slice", "a-.slice", "a--b.slice", "a@b.slice", "a.service"])
def test_some_names_can_be_no_slice(name: str) -> None:
    assert not unitname.slice_is_valid(name)


def real(*arguments: str) -> str | None:
    """Return what systemd-escape says, None where it refuses."""
    assert ESCAPE
    done = subprocess.run(
        [ESCAPE, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.removesuffix("\n") if done.returncode == 0 else None


def ours(call: object, text: str) -> str | None:
    try:
        return call(text)  # type: ignore[operator, no-any-return]
    except ValueError:
        return None


SAMPLES = (
    "/",
    "a",
    "/a//b/",
    "/./a",
    "/a/../b",
    "..",
    "-x",
    ".x",
    "/.x",
    "ä/€",
    "a b\tc",
    "a\\x2db",
    "%i",
    "a@b",
    "/dev/disk/by-uuid/12-34",
    "/" + "x" * 300,
)


@needs_escape
@pytest.mark.parametrize("text", SAMPLES)
def test_escaping_agrees_with_systemd_escape(text: str) -> None:
    assert unitname.escape(text) == real("--", text)
    assert ours(unitname.path_escape, text) == real("--path", "--", text)
    mount = real("--path", "--suffix=mount", "--", text)
    assert ours(lambda path: unitname.from_path(path, "mount"), text) == mount


@needs_escape
@pytest.mark.parametrize("text", ["a-b", "-", "a\\x2db", "\\xe2\\x82\\xac", "a\\", "a--b", "-a"])
def test_unescaping_agrees_with_systemd_escape(text: str) -> None:
    assert ours(unitname.unescape, text) == real("--unescape", "--", text)
    assert ours(unitname.path_unescape, text) == real("--unescape", "--path", "--", text)


@needs_escape
@pytest.mark.parametrize(
    "text", ["a", "a.target", LONG, "/dev/x", "/a b", "a b", "a@b", "x.y", "a@.service"]
)
def test_mangling_agrees_with_systemd_escape(text: str) -> None:
    assert ours(unitname.mangle, text) == real("--mangle", "--", text)
