"""Files and directories on a command line, laid over a root as if they were installed."""

import os
from pathlib import Path

import pytest

from sdqueue.unitfile.unit import LoadState
from sdqueue.unitpath.given import given
from sdqueue.unitpath.host import read_host, systemd_version
from sdqueue.unitpath.prepare import Wish, prepare
from sdqueue.unitpath.search import NEWEST

SERVICE = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=t.target\n"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """A directory laid out like /etc/systemd/system."""
    made = tmp_path / "new"
    made.mkdir()
    (made / "a.service").write_text(SERVICE)
    (made / "t.target").write_text("[Unit]\n")
    (made / "b.service").symlink_to("a.service")
    (made / "README").write_text("not a unit")
    (made / "a.service.d").mkdir()
    (made / "a.service.d/x.conf").write_text("[Unit]\nDescription=x\n")
    (made / "t.target.wants").mkdir()
    (made / "t.target.wants/c.service").symlink_to("../c.service")
    return made


def test_a_directory_is_read_as_if_it_were_copied(new: Path, tmp_path: Path) -> None:
    done = prepare(Wish(paths=(str(new),), root=str(tmp_path), default_target="t"))
    unit = done.units.get("a.service")
    assert unit.fragment_file == f"{new}/a.service"
    assert unit.dropin_files == (f"{new}/a.service.d/x.conf",)
    assert unit.names == {"a.service", "b.service"}
    target = done.units.get("default.target")
    assert target.name == "t.target"
    assert {(link.other, link.install and link.install.line) for link in target.links} == {
        ("c.service", None),
        ("a.service", 4),
    }
    assert done.problems == ()


def test_the_base_is_the_root_without_what_was_given(new: Path, tmp_path: Path) -> None:
    done = prepare(Wish(paths=(str(new),), root=str(tmp_path)))
    assert done.units.get("a.service").loaded
    assert done.base.get("a.service").load_state is LoadState.NOT_FOUND


def test_a_file_is_shown_as_it_was_typed(
    new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(new)
    done = prepare(Wish(paths=("./a.service",), root=str(tmp_path)))
    assert done.units.get("a.service").fragment_file == "./a.service"
    assert done.enabled.links[0].place is not None
    assert done.enabled.links[0].place.file == "./a.service"


def test_only_what_is_named_is_enabled_and_masked(new: Path, tmp_path: Path) -> None:
    root, paths = str(tmp_path), (str(new),)
    assert prepare(Wish(paths=paths, root=root, enable=())).enabled.links == ()
    masked = prepare(Wish(paths=(f"{new}/t.target",), root=root, mask=("x", "y.socket")))
    assert masked.units.get("x.service").load_state is LoadState.MASKED
    assert masked.units.get("y.socket").load_state is LoadState.MASKED


def test_templates_are_enabled_by_default_only_with_an_instance(tmp_path: Path) -> None:
    for name, more in (("a@.service", ""), ("b@.service", "DefaultInstance=x\n")):
        (tmp_path / name).write_text(SERVICE + more)
    paths = tuple(str(tmp_path / name) for name in ("a@.service", "b@.service"))
    done = prepare(Wish(paths=paths, root=str(tmp_path)))
    assert [os.path.basename(each.path) for each in done.enabled.links] == ["b@x.service"]


def test_what_can_not_be_used_is_said_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    os.mkfifo(tmp_path / "f.service")
    (tmp_path / "loop.service").symlink_to("loop.service")
    names = ("a.txt", "missing.service", "f.service", "loop.service")
    what = given(tuple(str(tmp_path / name) for name in names), "/e")
    assert [problem.file for problem in what.problems] == [
        str(tmp_path / name) for name in names[:2]
    ]
    done = prepare(Wish(paths=tuple(str(tmp_path / name) for name in names), root=str(tmp_path)))
    for name in names[2:]:
        unit = done.units.get(name)
        assert unit.load_state is LoadState.NOT_FOUND
        assert unit.problems[0].file == str(tmp_path / name)


def test_of_two_files_of_one_name_the_later_counts_and_it_is_said(tmp_path: Path) -> None:
    for place in ("1", "2"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a.service").write_text(SERVICE)
    paths = tuple(f"{tmp_path}/{place}/a.service" for place in "12")
    done = prepare(Wish(paths=paths, root=str(tmp_path)))
    assert done.units.get("a.service").fragment_file == paths[1]
    assert paths[0] in done.problems[0].message


def test_the_facts_of_a_root_are_in_its_files(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("0123\n")
    (tmp_path / "etc/hostname").write_text("box\n")
    (tmp_path / "etc/os-release").write_text('ID=debian\n# x\nVERSION_ID="12"\n')
    host = read_host(str(tmp_path))
    assert (host.machine_id, host.hostname, host.kernel) == ("0123", "box", None)
    assert host.os_release == {"ID": "debian", "VERSION_ID": "12"}


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("usr/lib/systemd/libsystemd-shared-252.so", 252),
        ("usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-257.13-1.so", 257),
        ("usr/lib64/systemd/libsystemd-shared-262.so", 262),
        ("usr/lib/systemd/other.so", None),
    ],
)
def test_the_version_of_a_root_is_that_of_its_library(
    tmp_path: Path, file: str, version: int | None
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    assert systemd_version(str(tmp_path)) == version
    assert prepare(Wish(root=str(tmp_path))).version == (version or NEWEST)


def test_the_version_of_a_root_may_be_that_of_its_package(tmp_path: Path) -> None:
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    status = "Package: a\nVersion: 1\n\nPackage: systemd\nStatus: x\nVersion: 255.4-1\n\n"
    (tmp_path / "var/lib/dpkg/status").write_text(status)
    assert systemd_version(str(tmp_path)) == 255


def root_with_fstab(root: Path) -> str:
    for directory in (
        "etc",
        "usr/sbin",
        "usr/lib/systemd/system",
        "usr/lib/systemd/system-generators",
    ):
        (root / directory).mkdir(parents=True)
    (root / "etc/fstab").write_text(
        "/dev/x /data ext4 defaults 0 2\n/dev/y /link xfs defaults 0 2\n"
    )
    (root / "link").symlink_to("/elsewhere")
    (root / "usr/sbin/fsck.ext4").touch()
    (root / "usr/lib/systemd/system/local-fs.target").write_text("[Unit]\n")
    (root / "usr/lib/systemd/system-generators/systemd-fstab-generator").touch()
    return str(root)


def test_generators_are_emulated_where_nobody_ran_them(tmp_path: Path) -> None:
    done = prepare(Wish(root=root_with_fstab(tmp_path)))
    unit = done.units.get("data.mount")
    assert unit.fragment_file == f"{tmp_path}/run/systemd/generator/data.mount"
    assert "systemd-fsck@dev-x.service" in unit.value("Unit", "Requires")
    assert done.units.get("elsewhere.mount").value("Unit", "Requires") == ""
    links = {link.other for link in done.units.get("local-fs.target").links}
    assert links == {"data.mount", "elsewhere.mount", "systemd-remount-fs.service"}


def test_a_root_without_a_generator_gets_nothing_from_it(tmp_path: Path) -> None:
    root = root_with_fstab(tmp_path)
    (tmp_path / "usr/lib/systemd/system-generators/systemd-fstab-generator").unlink()
    assert prepare(Wish(root=root)).units.get("data.mount").load_state is LoadState.NOT_FOUND


def test_what_generators_wrote_is_taken_as_it_is(tmp_path: Path) -> None:
    root = root_with_fstab(tmp_path)
    (tmp_path / "run/systemd/generator").mkdir(parents=True)
    (tmp_path / "run/systemd/generator/other.mount").write_text("[Mount]\nWhat=x\n")
    assert prepare(Wish(root=root)).units.get("data.mount").load_state is LoadState.NOT_FOUND
    assert prepare(Wish(root=root)).units.get("other.mount").loaded


def test_a_directory_of_generators_may_be_given(tmp_path: Path) -> None:
    root, elsewhere = root_with_fstab(tmp_path / "r"), tmp_path / "copy"
    (elsewhere / "generator").mkdir(parents=True)
    (elsewhere / "generator/other.mount").write_text("[Mount]\nWhat=x\n")
    done = prepare(Wish(root=root, generators=str(elsewhere)))
    assert done.units.get("other.mount").fragment_file == f"{elsewhere}/generator/other.mount"
    assert done.units.get("data.mount").load_state is LoadState.NOT_FOUND


def test_generators_that_nobody_saw_run_are_named(tmp_path: Path) -> None:
    root = root_with_fstab(tmp_path)
    place = tmp_path / "usr/lib/systemd/system-generators"
    for name in ("mine", "systemd-fstab-generator", "systemd-cryptsetup-generator"):
        (place / name).touch()
    assert prepare(Wish(root=root)).unseen_generators == ("mine",)
    (tmp_path / "etc/crypttab").touch()
    assert prepare(Wish(root=root)).unseen_generators == ("mine", "systemd-cryptsetup-generator")
