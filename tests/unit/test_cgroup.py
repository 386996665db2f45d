"""Control group paths: systemd's rules, one line a case, and that no text is too strange."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue import cgroup
from sdqueue.cgroup import Branch, Layout, Place, branch, layout_of, line_of, place

ID = "0123456789abcdef" * 4
USER = "/user.slice/user-1501.slice"
MANAGER = f"{USER}/user@1501.service"
OTHER = "user.slice/user-1502.slice/user@1502.service/app.slice/llm-engine-y.service"

# -- which line ------------------------------------------------------------------------------------

ROOTS = "30 1 0:26 / / rw - ext4 /dev/sda rw\n"
CG = "31 30 0:27 / /sys/fs/cgroup{} rw,nosuid shared:9 - {} {} rw\n"
MOUNTS = {
    Layout.UNIFIED: ROOTS + CG.format("", "cgroup2", "cgroup2"),
    Layout.HYBRID: ROOTS
    + CG.format("", "tmpfs", "tmpfs")
    + CG.format("/unified", "cgroup2", "cgroup2")
    + CG.format("/systemd", "cgroup", "cgroup"),
    Layout.V1: ROOTS + CG.format("", "tmpfs", "tmpfs") + CG.format("/systemd", "cgroup", "cgroup"),
}


@pytest.mark.parametrize("layout", Layout)
def test_the_mount_table_tells_the_layout(layout: Layout) -> None:
    assert layout_of(MOUNTS[layout]) is layout


def test_what_was_mounted_last_on_a_place_counts() -> None:
    assert layout_of(MOUNTS[Layout.HYBRID] + MOUNTS[Layout.UNIFIED]) is Layout.UNIFIED
    assert layout_of(MOUNTS[Layout.UNIFIED] + CG.format("", "tmpfs", "x")) is Layout.V1


BOTH = """\
4:memory:/a/memory
3:cpu,cpuacct:/a/cpu
2:name=other:/a/other
1:name=systemd:/a/named
0::/a/unified
"""
LINES = [
    (BOTH, Layout.UNIFIED, "/a/unified"),
    (BOTH, Layout.HYBRID, "/a/unified"),
    (BOTH, Layout.V1, "/a/named"),
    ("1:x,name=systemd,y:/joined\n", Layout.V1, "/joined"),
    ("1:xname=systemd:/a\n1:name=systemd2:/b\n", Layout.V1, None),
    ("10::/ten\n0::/zero\n", Layout.UNIFIED, "/zero"),
    ("0::/first\n0::/second\n", Layout.UNIFIED, "/first"),
    ("0::/with:colons: in it\n", Layout.UNIFIED, "/with:colons: in it"),
    ("0:/one colon\n", Layout.UNIFIED, None),
    ("0::/gone (deleted)\n", Layout.UNIFIED, "/gone (deleted)"),
    ("", Layout.UNIFIED, None),
    ("", Layout.V1, None),
]


@pytest.mark.parametrize(("text", "layout", "path"), LINES)
def test_the_line_is_the_one_that_systemd_takes(
    text: str, layout: Layout, path: str | None
) -> None:
    assert line_of(text, layout) == path


@pytest.mark.parametrize("end", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\0"])
def test_no_name_of_a_directory_makes_a_line_of_its_own(end: str) -> None:
    text = f"1:name=systemd:/evil{end}0::/system.slice/good.service\n0::/evil\n"
    assert line_of(text, Layout.HYBRID) == "/evil"


# -- what a path says ------------------------------------------------------------------------------

BRANCHES = [
    ("/", Branch()),
    ("", Branch()),
    ("/init.scope", Branch((), "init.scope")),
    ("/system.slice", Branch(("system.slice",))),
    ("/system.slice/a.service", Branch(("system.slice",), "a.service")),
    ("/a.slice/a-b.slice/x.scope", Branch(("a.slice", "a-b.slice"), "x.scope")),
    # The first unit counts, and what is below it is its own affair.
    ("/system.slice/a.service/.control", Branch(("system.slice",), "a.service", ".control")),
    ("/system.slice/a.service/b.service", Branch(("system.slice",), "a.service", "b.service")),
    ("/a.service/b.slice/c.service", Branch((), "a.service", "b.slice/c.service")),
    ("/system.slice/no-unit/a.service", Branch(("system.slice",), "", "no-unit/a.service")),
    # Instances, and escapes of unit names, which stay; the escape of cgroups, which goes, once.
    ("/system.slice/a@b.service", Branch(("system.slice",), "a@b.service")),
    ("/app-llm\\x2dengine.slice/e@q.service", Branch(("app-llm\\x2dengine.slice",), "e@q.service")),
    ("/_cpu.slice/_tasks.service", Branch(("cpu.slice",), "tasks.service")),
    ("/__a.service", Branch((), "_a.service")),
    ("/_cgroup.service/_x", Branch((), "cgroup.service", "_x")),
    # No units: templates, strange names, a slice where a unit should be.
    ("/a@.service", Branch((), "", "a@.service")),
    ("/a@b.slice/c.service", Branch((), "", "a@b.slice/c.service")),
    ("/.slice/a.service", Branch((), "", ".slice/a.service")),
    ("/b\xfcro.service", Branch((), "", "b\xfcro.service")),
    ("/a b.service", Branch((), "", "a b.service")),
    ("/a.servicex", Branch((), "", "a.servicex")),
    ("/x", Branch((), "", "x")),
    (f"/{'a' * 300}.service", Branch((), "", f"{'a' * 300}.service")),
    ("//system.slice///a.service//b/", Branch(("system.slice",), "a.service", "b")),
]  # fmt: skip


@pytest.mark.parametrize(("path", "expected"), BRANCHES)
def test_a_path_is_taken_apart_by_systemds_rules(path: str, expected: Branch) -> None:
    assert branch(path) == expected


APP = Branch(("app.slice",), "llm-engine-real.service")
# path, uid, manager, session, the user's word
PLACES = [
    ("/system.slice/a.service", None, "", "", None),
    (f"{MANAGER}/app.slice/llm-engine-real.service", 1501, "user@1501.service", "", APP),
    (f"{MANAGER}/init.scope", 1501, "user@1501.service", "", Branch((), "init.scope")),
    (MANAGER, 1501, "user@1501.service", "", Branch()),
    (f"{USER}/session-3.scope", 1501, "", "3", Branch()),
    (f"{USER}/session-c2.scope/x.service", 1501, "", "c2", Branch((), "x.service")),
    (f"{USER}/session-a_b.scope", 1501, "", "", None),
    (f"{USER}/user-runtime-dir@1501.service", 1501, "", "", None),
    (USER, 1501, "", "", None),
    ("/user.slice", None, "", "", None),
    ("/user-1501.slice/user-1501-x.slice/a.service", None, "", "", None),
    ("/system.slice/user@7.service/a.service", 7, "user@7.service", "", Branch((), "a.service")),
    ("/user.slice/user-7.slice/user@8.service", 8, "user@8.service", "", Branch()),
    ("/capsule@x.service/a.service", None, "capsule@x.service", "", Branch((), "a.service")),
    # No users at all.
    ("/user.slice/user-01501.slice/a.service", None, "", "", None),
    ("/user.slice/user-4294967295.slice/a.service", None, "", "", None),
    ("/user.slice/user-65535.slice/a.service", None, "", "", None),
    ("/user.slice/user-+1.slice/a.service", None, "", "", None),
    ("/user@root.service/a.service", None, "", "", None),
    ("/user@99999999999.service/a.service", None, "", "", None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "uid", "manager", "session", "claimed"), PLACES)
def test_a_place_says_whose_it_is(
    path: str, uid: int | None, manager: str, session: str, claimed: Branch | None
) -> None:
    found = place(path)
    assert (found.uid, found.manager, found.session) == (uid, manager, session)
    assert found.claimed == claimed
    assert (found.is_outside, found.is_deleted) == (False, False)


# The places where somebody gave a directory a name that is not his to give. What root made says
# whose it is, and the name comes no further than to be a word of that user's, or payload.
SPOOFS = [
    (f"{MANAGER}/app.slice/evil.service/llm-engine-x.service", "evil.service"),
    (f"{MANAGER}/app.slice/evil.service/{OTHER}", "evil.service"),
    (f"{MANAGER}/app.slice/llm-engine-fake.service", "llm-engine-fake.service"),
    (f"{MANAGER}/{OTHER}", ""),
    (f"{MANAGER}/user@1502.service/app.slice/llm-engine-y.service", "user@1502.service"),
    (f"{MANAGER}/session-9.scope/llm-engine-y.service", "session-9.scope"),
    (f"{MANAGER}/docker-{ID}.scope/init.scope", f"docker-{ID}.scope"),
    (f"{USER}/session-3.scope/{OTHER}", ""),
    (f"{USER}/session-3.scope/llm-engine-y.service", "llm-engine-y.service"),
]


@pytest.mark.parametrize(("path", "claimed"), SPOOFS)
def test_a_name_in_a_users_tree_stays_that_users_word(path: str, claimed: str) -> None:
    found = place(path)
    assert found.uid == 1501
    assert found.trusted.unit in ("user@1501.service", "session-3.scope")
    assert (found.trusted.container, found.trusted.machine) == ("", "")
    assert found.claimed
    if claimed:
        assert found.claimed.unit == claimed


@pytest.mark.parametrize("delegated", ["evil.service", f"docker-{ID}.scope", "machine-m.scope"])
def test_a_tree_delegated_by_the_system_is_no_users(delegated: str) -> None:
    found = place(f"/system.slice/{delegated}/{OTHER}")
    assert (found.uid, found.manager, found.claimed) == (None, "", None)
    assert found.trusted == Branch(("system.slice",), delegated, OTHER)


CONTAINERS = [
    (f"/system.slice/docker-{ID}.scope", "0123456789ab"),
    (f"/system.slice/docker-{ID}.scope/init.scope", "0123456789ab"),
    (f"/machine.slice/libpod-{ID}.scope/container", "0123456789ab"),
    (f"/kubepods.slice/kubepods-podx.slice/cri-containerd-{ID}.scope", "0123456789ab"),
    (f"/docker/{ID}/system.slice/a.service", "0123456789ab"),
    (f"/kubepods/burstable/pod-x/{ID}", "0123456789ab"),
    ("/lxc.payload.web-1/system.slice/a.service", "web-1"),
    ("/lxc.monitor.web-1", ""),
    (f"/system.slice/docker-{ID[1:]}.scope", ""),
    (f"/system.slice/docker-{ID.upper()}.scope", ""),
    (f"/system.slice/a.service/docker-{ID}.scope", ""),
    ("/system.slice/docker.service", ""),
]


@pytest.mark.parametrize(("path", "name"), CONTAINERS)
def test_a_container_is_known_by_its_scope_or_its_runtimes_directory(path: str, name: str) -> None:
    assert place(path).trusted.container == name


MACHINES = [
    ("/machine.slice/machine-web.scope/payload/init.scope", "web"),
    ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "qemu-1-vm"),
    ("/machine.slice/systemd-nspawn@web.service/payload", "web"),
    ("/machine.slice/machine-a\\xzz.scope", ""),
    ("/machine.slice/machine-a\\x1b[1m.scope", ""),
    ("/machine.slice/machine-a\\x1bb.scope", ""),
    ("/machine.slice/other.scope", ""),
    ("/system.slice/a.service/machine-web.scope", ""),
]


@pytest.mark.parametrize(("path", "name"), MACHINES)
def test_a_machine_is_known_by_its_unit(path: str, name: str) -> None:
    assert place(path).trusted.machine == name


# -- roots -----------------------------------------------------------------------------------------

ROOTED = [
    # The path, the root of the manager that is asked, and what it calls its unit.
    (f"{MANAGER}/app.slice/a.service", MANAGER, "a.service"),
    (f"{MANAGER}/app.slice/a.service", f"{MANAGER}/", "a.service"),
    ("/docker/x/system.slice/a.service", "/docker/x", "a.service"),
    ("/app.slice/a.service", "", "a.service"),
    ("/app.slice/a.service", "/", "a.service"),
    # Not below it: as if there were no root.
    ("/system.slice/a.service", MANAGER, "a.service"),
    ("/machine/a.service", "/mach", ""),
]


@pytest.mark.parametrize(("path", "root", "unit"), ROOTED)
def test_a_manager_finds_its_units_below_its_own_root(path: str, root: str, unit: str) -> None:
    assert place(path, root).trusted.unit == unit


BELOW = [
    ("/a", "", True),
    ("/a/b", "/a", True),
    ("/a", "/a", True),
    ("/ab", "/a", False),
    ("/", "/a", False),
    ("/a/../b", "/a", False),
    ("/../a", "", False),
]


@pytest.mark.parametrize(("path", "root", "expected"), BELOW)
def test_below_goes_by_whole_names(path: str, root: str, expected: bool) -> None:
    assert cgroup.is_below(path, root) is expected


def test_the_root_of_a_manager_is_told_by_its_own_path() -> None:
    assert cgroup.root_of("/init.scope") == ""
    assert cgroup.root_of(f"{MANAGER}/init.scope") == MANAGER
    assert cgroup.root_of("/docker/x") == "/docker/x"


@pytest.mark.parametrize("path", ["/..", "/../init.scope", "/../../system.slice/a.service"])
def test_of_what_is_outside_of_our_namespace_nothing_is_believed(path: str) -> None:
    assert place(path) == Place(is_outside=True)


def test_the_place_of_a_process_whose_group_is_gone_is_where_it_was() -> None:
    found = place("/system.slice/a.service (deleted)")
    assert (found.trusted.unit, found.is_deleted) == ("a.service", True)


# -- whatever the text -----------------------------------------------------------------------------

ODD = st.sampled_from(["/", "..", ".slice", ".service", "_", "@", "user@1.service", ":", "\n", "0"])
ANY = st.lists(ODD | st.text(max_size=4)).map("".join)


@given(ANY, ANY, st.sampled_from(Layout))
def test_no_text_is_too_strange(text: str, root: str, layout: Layout) -> None:
    layout_of(text)
    line_of(text, layout)
    found = place(text, root)
    for each in (found.trusted, found.claimed or Branch()):
        assert isinstance(each.container + each.machine, str)
    assert found.uid is None or found.uid >= 0
    assert isinstance(found.session + found.manager, str)


NAME = st.from_regex(r"[a-z_.][a-z0-9_.:\\]{0,8}", fullmatch=True)
SLICES = st.lists(NAME.map(lambda name: f"{name}.slice"), max_size=3).map(tuple)
UNITS = st.builds("{}.{}".format, NAME, st.sampled_from(["service", "scope", "mount"]))
BELOW_UNIT = st.lists(st.text("ab/_. \xe9", min_size=1), max_size=3).map(
    lambda parts: "/".join(part for text in parts for part in text.split("/") if part)
)


def escape(name: str) -> str:
    """Name a directory as systemd does, which escapes more than it has to be able to read."""
    special = name.startswith(("_", ".", "cgroup.", "cpu.", "io.", "memory.", "tasks"))
    return f"_{name}" if special else name


@given(SLICES, UNITS, BELOW_UNIT)
def test_a_path_made_of_names_says_these_names(
    slices: tuple[str, ...], unit: str, payload: str
) -> None:
    path = "/".join(["", *map(escape, slices), escape(unit), *([payload] if payload else [])])
    assert branch(path) == Branch(slices, unit, payload)


@given(st.integers(0, 65534), SLICES, UNITS)
def test_a_path_below_a_users_manager_is_read_as_that_manager_reads_it(
    uid: int, slices: tuple[str, ...], unit: str
) -> None:
    root = f"/user.slice/user-{uid}.slice/user@{uid}.service"
    path = "/".join([root, *map(escape, slices), escape(unit)])
    found = place(path)
    assert (found.uid, found.manager) == (uid, f"user@{uid}.service")
    assert found.claimed == Branch(slices, unit) == place(path, root).trusted
