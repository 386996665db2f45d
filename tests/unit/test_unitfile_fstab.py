"""The emulated generators: mounts, swaps, login prompts. The real ones are asked elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.unitfile.fstab import Machine, generate, node, options_of, rows
from sdqueue.unitfile.getty import getty
from sdqueue.unitfile.parse import parse
from sdqueue.words import unitname

REMOUNT = "local-fs.target.wants/systemd-remount-fs.service"


def links(line: str, version: int = 257) -> set[str]:
    return set(generate(line, Machine(version)).links) - {REMOUNT}


def values(line: str, name: str, key: str, version: int = 257) -> list[str]:
    text = generate(line, Machine(version)).files[name]
    return [each.value for each in parse(text.encode(), "f").settings if each.key == key]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/dev/x /a ext4 defaults 0 0", "local-fs.target.requires/a.mount"),
        ("/dev/x /a ext4 nofail 0 0", "local-fs.target.wants/a.mount"),
        ("/dev/x /a ext4 nofail,fail 0 0", "local-fs.target.requires/a.mount"),
        ("s:/x /a nfs defaults 0 0", "remote-fs.target.requires/a.mount"),
        ("/dev/x /a ext4 _netdev 0 0", "remote-fs.target.requires/a.mount"),
        ("/dev/x /a ext4 x-systemd.automount 0 0", "local-fs.target.requires/a.automount"),
        ("/dev/x /a ext4 x-systemd.wanted-by=b.service 0 0", "b.service.wants/a.mount"),
        ("/dev/x none swap sw 0 0", "swap.target.requires/dev-x.swap"),
        ("/dev/x none swap nofail 0 0", "swap.target.wants/dev-x.swap"),
    ],
)
def test_a_line_is_pulled_in_by_a_target(line: str, expected: str) -> None:
    assert links(line) == {expected}


@pytest.mark.parametrize(
    "line",
    [
        "/dev/x /a ext4 noauto 0 0",
        "/dev/x none ext4 x 0 0",
        "proc /proc proc x 0 0",
        "# /dev/x /a ext4",
    ],
)
def test_some_lines_pull_in_nothing(line: str) -> None:
    assert links(line) == set()


def test_what_a_line_says_of_dependencies_is_in_the_unit() -> None:
    options = "x-systemd.requires=b,x-systemd.before=/c,x-systemd.requires-mounts-for=/d"
    line = f"UUID=1 /a ext4 {options} 0 2"
    fsck = "systemd-fsck@dev-disk-by\\x2duuid-1.service"
    assert values(line, "a.mount", "Requires") == ["b.mount", fsck]
    assert values(line, "a.mount", "Before") == ["c.mount", "local-fs.target"]
    assert values(line, "a.mount", "RequiresMountsFor") == ["/d"]
    assert values(line, "a.mount", "What") == ["/dev/disk/by-uuid/1"]


def test_a_network_device_waits_for_the_network() -> None:
    name = "dev-x.device.d/50-netdev-dependencies.conf"
    line = "/dev/x /a ext4 _netdev 0 0"
    assert values(line, name, "After") == ["network-online.target network.target"]


def test_from_256_on_wanted_by_takes_away_the_default_dependencies() -> None:
    line = "/dev/x /a ext4 x-systemd.wanted-by=b.service 0 0"
    assert values(line, "a.mount", "DefaultDependencies", 255) == []
    assert values(line, "a.mount", "DefaultDependencies", 256) == ["no"]


def test_two_lines_for_one_place_are_said_with_the_line() -> None:
    made = generate("/dev/x /a ext4\n\n/dev/y /a ext4\n", Machine(), source="/etc/fstab")
    assert [(problem.file, problem.line) for problem in made.problems] == [("/etc/fstab", 3)]


def test_a_container_has_no_swap() -> None:
    made = generate("/dev/x none swap sw 0 0", Machine(container=True))
    assert set(made.links) == {REMOUNT}


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("LABEL=a b", "/dev/disk/by-label/a\\x20b"),
        ('LABEL="x/y"', "/dev/disk/by-label/x\\x2fy"),
        ("PARTUUID=1", "/dev/disk/by-partuuid/1"),
        ("a=b", "a=b"),
        ("/dev/x", "/dev/x"),
    ],
)
def test_tags_are_nodes_of_udev(what: str, expected: str) -> None:
    assert node(what) == expected


def test_options_split_at_commas_without_a_backslash() -> None:
    assert options_of("a,,b\\,c,d=e\\") == ["a", "b\\,c", "d=e\\"]


def test_blanks_in_fields_are_octal() -> None:
    assert next(rows("a\\040b /c\\134 ext4 x 0 1")).what == "a b"


fields = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\v\f\x85\u2028\u2029"), max_size=8
)


@given(
    st.lists(st.lists(fields, max_size=7).map(" ".join), max_size=5).map("\n".join),
    st.integers(250, 262),
)
def test_any_fstab_makes_units_with_valid_names_or_problems(text: str, version: int) -> None:
    made = generate(text, Machine(version))
    for path in (*made.files, *made.links):
        owner, _, inner = path.partition("/")
        assert unitname.is_valid(owner if not inner else owner.rpartition(".")[0])


@pytest.mark.parametrize(
    ("consoles", "expected"),
    [
        (("tty0",), set()),
        (("ttyS0", "tty1"), {"serial-getty@ttyS0.service"}),
        (("hvc0",), {"serial-getty@hvc0.service"}),
    ],
)
def test_serial_consoles_get_a_login_prompt(consoles: tuple[str, ...], expected: set[str]) -> None:
    assert set(getty(consoles).links) == {f"getty.target.wants/{name}" for name in expected}


def test_a_container_gets_one_on_its_console_and_on_its_ptys() -> None:
    made = getty(("ttyS0",), container=True, ptys="pts/1 /dev/pts/2 tty3")
    assert set(made.links) == {
        "getty.target.wants/console-getty.service",
        "getty.target.wants/container-getty@1.service",
        "getty.target.wants/container-getty@2.service",
    }
