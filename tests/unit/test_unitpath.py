"""Looking into a root: links stay inside it, and nothing hangs or is opened that is no file."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sdqueue.unitfile.files import Entry
from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.unit import LoadState, Place
from sdqueue.unitpath import Added, Tree, search_path
from sdqueue.unitpath.chase import Chaser, LinkLoop
from sdqueue.unitpath.tree import FILE_MAX_BYTES
from sdqueue.words.problem import Problem

ETC, LIB = "etc/systemd/system", "usr/lib/systemd/system"
TEXT = "[Service]\nExecStart=/bin/true\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with two empty unit directories."""
    for each in (ETC, LIB):
        (tmp_path / each).mkdir(parents=True)
    return tmp_path


def units(root: Path, *added: Added) -> UnitSet:
    return UnitSet(Tree(str(root), search_path(str(root)), added))


def entry(root: Path, name: str) -> Entry:
    return Tree(str(root), search_path(str(root))).listing(f"{root}/{ETC}")[name]


def test_a_link_out_of_the_root_stays_inside(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.service"
    outside.write_text(TEXT)
    (root / ETC / "a.service").symlink_to(os.path.relpath(outside, root / ETC))
    (root / ETC / "b.service").symlink_to(outside)
    assert units(root).get("a.service").load_state is LoadState.NOT_FOUND
    assert units(root).get("b.service").load_state is LoadState.NOT_FOUND


def test_dots_do_not_climb_above_the_root(root: Path) -> None:
    (root / "opt").mkdir()
    (root / "opt/a.service").write_text(TEXT)
    (root / ETC / "a.service").symlink_to("/../../../../opt/a.service")
    (root / ETC / "b.service").symlink_to("../" * 40 + "opt/a.service")
    assert units(root).get("a.service").load_state is LoadState.LOADED
    assert units(root).get("b.service").load_state is LoadState.LOADED


def test_a_link_through_a_directory_link_is_an_alias(root: Path) -> None:
    (root / "lib").symlink_to("usr/lib")
    (root / LIB / "real.service").write_text(TEXT)
    (root / ETC / "other.service").symlink_to("/lib/systemd/system/real.service")
    assert units(root).get("other.service").names == {"other.service", "real.service"}


def test_a_unit_directory_that_is_a_link_has_no_linked_units(root: Path) -> None:
    (root / "store").mkdir()
    (root / "store/real.service").write_text(TEXT)
    (root / "store/other.service").symlink_to("/store/real.service")
    (root / ETC).rmdir()
    (root / ETC).symlink_to("/store")
    assert units(root).get("other.service").name == "real.service"


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_loop_of_links_is_not_found(root: Path, length: int) -> None:
    for i in range(length):
        (root / ETC / f"l{i}.service").symlink_to(f"l{(i + 1) % length}.service")
    unit = units(root).get("l0.service")
    assert unit.load_state is LoadState.NOT_FOUND


def test_a_loop_of_directories_is_not_followed_for_ever(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / ETC / "x.service").symlink_to("/a/x.service")
    assert units(root).get("x.service").load_state is LoadState.NOT_FOUND
    with pytest.raises(LinkLoop):
        Chaser(str(root)).all(f"{root}/a/x")


def test_a_fifo_a_socket_and_a_directory_are_said_and_never_opened(root: Path) -> None:
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(root / "socket"))
    (root / "directory").mkdir()
    for name in ("fifo", "socket", "directory"):
        (root / ETC / f"{name}.service").symlink_to(f"/{name}")
        unit = units(root).get(f"{name}.service")
        assert unit.load_state is LoadState.NOT_FOUND
        assert str(unit.problems[0]).startswith(
            f"{root}/{ETC}/{name}.service: error: can't be read"
        )


def test_a_fifo_in_the_unit_directory_is_no_unit(root: Path) -> None:
    os.mkfifo(root / ETC / "a.service")
    assert units(root).get("a.service").load_state is LoadState.NOT_FOUND
    assert isinstance(Tree(str(root), ()).read(entry(root, "a.service")), Problem)


def test_a_device_is_a_mask_and_not_opened(root: Path) -> None:
    (root / ETC / "a.service").symlink_to("/dev/null")
    assert units(root).get("a.service").load_state is LoadState.MASKED


def test_a_drop_in_that_is_a_fifo_is_a_problem_and_the_unit_loads(root: Path) -> None:
    (root / ETC / "a.service").write_text(TEXT)
    (root / ETC / "a.service.d").mkdir()
    os.mkfifo(root / ETC / "a.service.d/x.conf")
    unit = units(root).get("a.service")
    assert unit.load_state is LoadState.LOADED
    assert "not a regular file" in str(unit.problems[0])


@pytest.mark.parametrize("extra", [0, 1])
def test_a_file_larger_than_the_limit_is_a_problem(root: Path, extra: int) -> None:
    file = root / ETC / "a.service"
    line = b"#" + b"x" * 1022 + b"\n"
    file.write_bytes(line * (FILE_MAX_BYTES // 1024) + b"\n" * extra)
    read = Tree(str(root), search_path(str(root))).read(entry(root, "a.service"))
    assert isinstance(read, Problem) is bool(extra)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be someone to whom permissions apply."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_what_may_not_be_read_is_a_problem() -> None:
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        directory = Path(made, ETC)
        directory.mkdir(parents=True)
        for name, mode in (("a.service", 0), ("b.service.d", 0)):
            path = directory / name
            path.mkdir() if name.endswith(".d") else path.write_text(TEXT)
            path.chmod(mode)
        (directory / "b.service").write_text(TEXT)
        with as_nobody():
            tree = Tree(made, search_path(made))
            found = UnitSet(tree)
            assert "Permission denied" in str(found.get("a.service").problems[0])
            assert found.get("b.service").load_state is LoadState.LOADED
        assert [problem.file for problem in tree.problems] == [f"{directory}/b.service.d"]


def test_a_root_without_unit_directories_has_no_units(tmp_path: Path) -> None:
    found = units(tmp_path)
    assert list(found.known()) == []
    assert found.get("a.service").load_state is LoadState.NOT_FOUND
    assert found.get("-.slice").load_state is LoadState.LOADED


def test_a_name_with_a_nul_or_a_slash_is_no_unit(root: Path) -> None:
    for name in ("a\0.service", "../a.service", "a/b.service", "a@.service"):
        with pytest.raises(ValueError, match="not the name of a unit"):
            units(root).get(name)


def test_file_names_that_are_no_text_are_passed_over(root: Path) -> None:
    (root / ETC / os.fsdecode(b"\xff.service")).write_text(TEXT)
    (root / ETC / "a.service").write_text(TEXT)
    assert list(units(root).known()) == ["a.service"]


def test_what_is_imagined_takes_the_place_of_what_is_there(root: Path, tmp_path: Path) -> None:
    (root / ETC / "a.service").write_text("[Unit]\nDescription=old\n" + TEXT)
    new = tmp_path / "elsewhere.txt"
    new.write_text("[Unit]\nDescription=new\n" + TEXT)
    unit = units(root, Added(f"{root}/{ETC}/a.service", file=str(new))).get("a.service")
    assert unit.value("Unit", "Description") == "new"
    assert unit.fragment_file == str(new)
    assert unit.last("Unit", "Description") == unit.settings[0]


def test_imagined_links_have_imagined_files_at_their_end(root: Path) -> None:
    line = Place("x", 7)
    made = units(
        root,
        Added(f"{root}/{ETC}/t.target", data=b"[Unit]\n"),
        Added(f"{root}/{ETC}/a.service", data=TEXT.encode()),
        Added(f"{root}/{ETC}/b.service", text="a.service"),
        Added(f"{root}/{ETC}/t.target.wants/b.service", text=f"/{ETC}/a.service", install=line),
        Added(f"{root}/{ETC}/m.service", text="/dev/null"),
        Added(f"{root}/{ETC}/e.service", data=b""),
    )
    assert [(link.other, link.install) for link in made.get("t.target").links] == [
        ("b.service", line)
    ]
    assert made.get("b.service") is made.get("a.service")
    assert made.get("m.service").load_state is LoadState.MASKED
    assert made.get("e.service").load_state is LoadState.MASKED


def test_only_what_is_asked_for_is_read(root: Path) -> None:
    for name in ("a", "b"):
        (root / ETC / f"{name}.service").write_text(TEXT)
    found = units(root)
    found.get("a.service")
    assert [unit.name for unit in found.units] == ["a.service"]


def test_the_search_path_has_the_root_in_front_and_generators_where_they_are() -> None:
    path = search_path("/r/", generators="/g")
    assert path[0] == "/r/etc/systemd/system.control"
    assert [each for each in path if each.startswith("/g/")] == [
        "/g/generator.early",
        "/g/generator",
        "/g/generator.late",
    ]
    assert path.index("/r/etc/systemd/system") < path.index("/r/usr/lib/systemd/system")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("/a:/b", ("/a", "/b")), ("/a", ("/a",)), ("/a:/a", ("/a",)), ("", ())],
)
def test_systemd_unit_path_replaces_the_list(given: str, expected: tuple[str, ...]) -> None:
    assert search_path(environ={"SYSTEMD_UNIT_PATH": given}) == expected


def test_systemd_unit_path_with_a_colon_at_its_end_comes_before_the_list() -> None:
    path = search_path(environ={"SYSTEMD_UNIT_PATH": "/a:"})
    assert path[:2] == ("/a", "/etc/systemd/system.control")


def test_a_user_manager_looks_in_the_homes_of_its_user() -> None:
    path = search_path(user=True, environ={"HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/1"})
    assert path[0] == "/h/.config/systemd/user.control"
    assert "/run/user/1/systemd/generator" in path
    assert path.index("/h/.config/systemd/user") < path.index("/etc/systemd/user")
    assert path.index("/h/.local/share/systemd/user") < path.index("/usr/lib/systemd/user")
    assert not [each for each in search_path(user=True, environ={}) if "{" in each]
