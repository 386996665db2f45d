"""The graph builder in small: what each version, manager and machine makes of a few lines."""

import pytest

from sdqueue.boot.graph import INVERSE, KINDS, Kind
from sdqueue.boot.loading import Loaded, Manager, MountPoint, build, unit_of_mount
from sdqueue.boot.loading.mountneeds import prefixes
from sdqueue.boot.loading.settings import DEPENDENCY_KEYS, HANDLERS
from sdqueue.boot.loading.table import DEFAULTS, defaults
from sdqueue.unitfile.load import UnitSet
from sdqueue.unitpath.tree import Added, Tree
from sdqueue.words import unitname

ALL = range(252, 263)
SERVICE = "[Service]\nExecStart=/bin/true\n"


def load(files: dict[str, str], *wanted: str, **facts: object) -> Loaded:
    """Load units that exist only here; a text that begins with "->" is a link."""
    added = [
        Added(f"/u/{path}", text=text[2:])
        if text.startswith("->")
        else Added(f"/u/{path}", data=text.encode())
        for path, text in files.items()
    ]
    manager = Manager(**facts)  # type: ignore[arg-type]
    mounted = frozenset(name for m in manager.mounts if (name := unit_of_mount(m)))
    units = UnitSet(
        Tree("", ("/u",), tuple(added)),
        host=manager.host,
        version=manager.version,
        user=manager.user,
        present=mounted,
    )
    names = wanted or tuple(name for name in files if unitname.is_valid(name))
    return build(units.get, manager, names, fragment_of=units.fragment_file)


def others(loaded: Loaded, unit: str, kind: Kind) -> set[str]:
    return set(loaded.graph.neighbours(unit, kind))


def test_every_row_of_the_table_can_hold() -> None:
    for row in DEFAULTS:
        assert row.type in unitname.UNIT_TYPES
        assert unitname.is_valid(row.other)
        assert set(row.kinds) <= set(KINDS)
        assert row.since < row.until
        held = [
            row in defaults(row.type, version, row.when, user=user)
            for version in ALL
            for user in (False, True)
        ]
        assert any(held), row


def test_no_two_rows_of_one_type_state_the_same_at_once() -> None:
    for version in ALL:
        for traits in (row.when for row in DEFAULTS):
            for unit_type in unitname.UNIT_TYPES:
                rows = defaults(unit_type, version, traits, user=False)
                stated = [(kind, row.other) for row in rows for kind in row.kinds]
                assert len(stated) == len(set(stated)), (unit_type, version)


def test_every_dependency_list_states_a_kind_that_has_an_inverse() -> None:
    assert set(DEPENDENCY_KEYS.values()) <= set(INVERSE)
    for key in DEPENDENCY_KEYS:
        for unit_type in unitname.UNIT_TYPES:
            assert ("Unit", key) in HANDLERS[unit_type]


@pytest.mark.parametrize(("key", "since"), [("WantsMountsFor", 256), ("RequiresMountsFor", 0)])
def test_mounts_for_keys_count_since_their_version(key: str, since: int) -> None:
    files = {
        "a.service": f"[Unit]\n{key}=/srv/x\n{SERVICE}",
        "srv.mount": "[Mount]\nWhat=tmpfs\nWhere=/srv\n",
    }
    for version in ALL:
        after = others(load(files, version=version), "a.service", "After")
        assert ("srv.mount" in after) == (version >= since)


@pytest.mark.parametrize("version", ALL)
def test_private_tmp_needs_what_its_version_says(version: int) -> None:
    files = {
        "tmp.mount": "[Unit]\nDefaultDependencies=no\n[Mount]\nWhat=tmpfs\nWhere=/tmp\n",
        "var-tmp.mount": "[Unit]\nDefaultDependencies=no\n[Mount]\nWhat=tmpfs\nWhere=/var/tmp\n",
        "a.service": f"{SERVICE}PrivateTmp=yes\n",
        "d.service": f"{SERVICE}DynamicUser=yes\n",
    }
    loaded = load(files, version=version)
    assert "tmp.mount" in others(loaded, "a.service", "Wants")
    kind: Kind = "Wants" if version >= 256 else "Requires"
    assert "var-tmp.mount" in others(loaded, "a.service", kind)
    assert "systemd-tmpfiles-setup.service" in others(loaded, "a.service", "After")
    assert ("tmp.mount" in others(loaded, "d.service", "Wants")) == (version < 257)


@pytest.mark.parametrize("version", ALL)
def test_network_swap_waits_for_the_network_since_261(version: int) -> None:
    files = {"dev-x.swap": "[Swap]\nWhat=/dev/x\nOptions=_netdev\n"}
    loaded = load(files, version=version)
    before = others(loaded, "dev-x.swap", "Before")
    assert before >= {"umount.target"}
    assert ("swap.target" in before) == (version < 261)
    assert ("network-online.target" in others(loaded, "dev-x.swap", "Wants")) == (version >= 261)
    inside = load(files, version=version, container=True)
    assert others(inside, "dev-x.swap", "Before") == set()


@pytest.mark.parametrize("version", ALL)
def test_quota_units_are_pulled_in_until_256(version: int) -> None:
    files = {"srv.mount": "[Mount]\nWhat=/dev/x\nWhere=/srv\nType=ext4\nOptions=usrquota\n"}
    wanted = others(load(files, version=version), "srv.mount", "Wants")
    assert ("quotaon.service" in wanted) == (version < 256)


def test_without_udev_there_are_no_device_units() -> None:
    files = {"srv.mount": "[Mount]\nWhat=/dev/x\nWhere=/srv\n"}
    assert "dev-x.device" in others(load(files), "srv.mount", "Requires")
    assert "dev-x.device" not in load(files, devices=False).graph.nodes


def test_a_user_manager_knows_no_sysinit() -> None:
    loaded = load({"a.service": SERVICE}, user=True)
    assert others(loaded, "a.service", "Requires") == {"basic.target", "app.slice"}
    assert "sysinit.target" not in loaded.graph.nodes


def test_masked_units_keep_links_and_dropins_only_before_257() -> None:
    files = {
        "a.service": "->/dev/null",
        "a.service.d/x.conf": "[Unit]\nAfter=b.service\n",
        "a.service.wants/c.service": "->../c.service",
    }
    for version in ALL:
        found = others(load(files, "a.service", version=version), "a.service", "After")
        assert found == ({"b.service"} if version < 257 else set())


def test_upholds_directories_count_since_254() -> None:
    files = {
        "a.target": "[Unit]\n",
        "a.target.upholds/b.service": "->../b.service",
        "b.service": SERVICE,
    }
    for version in ALL:
        found = others(load(files, version=version), "a.target", "Upholds")
        assert found == ({"b.service"} if version >= 254 else set())


def test_a_target_is_not_ordered_after_what_is_ordered_after_it() -> None:
    files = {"t.target": "[Unit]\nWants=a.service b.service\n", "a.service": SERVICE,
             "b.service": f"[Unit]\nAfter=t.target\n{SERVICE}"}  # fmt: skip
    assert others(load(files), "t.target", "After") == {"a.service"}


def test_two_targets_that_want_each_other_are_told_to_be_chance() -> None:
    files = {"a.target": "[Unit]\nWants=b.target\n", "b.target": "[Unit]\nWants=a.target\n"}
    loaded = load(files)
    assert len(others(loaded, "a.target", "After") | others(loaded, "b.target", "After")) == 1
    assert {frozenset((u.unit, u.other)) for u in loaded.unsure} == {frozenset(files)}


def test_the_second_service_of_a_bus_name_is_in_error() -> None:
    text = f"{SERVICE}BusName=org.example.A\n"
    graph = load({"a.service": text, "b.service": text}).graph
    assert {graph.nodes[f"{name}.service"].load_state for name in "ab"} == {"loaded", "error"}


def test_an_alias_speaks_for_itself_while_the_file_is_read() -> None:
    files = {"real.service": f"[Unit]\nAfter=x-%p.service t@.service\n{SERVICE}",
             "alias.service": "->real.service"}  # fmt: skip
    by_alias = others(load(files, "alias.service"), "real.service", "After")
    assert by_alias >= {"x-alias.service", "t@alias.service"}
    by_name = others(load(files, "real.service", "alias.service"), "real.service", "After")
    assert by_name >= {"x-real.service", "t@real.service"}


@pytest.mark.parametrize("where", ["/proc", "/sys/fs/cgroup/x", "/run/host", "/run/host/os"])
def test_what_is_systemds_own_to_mount_has_no_unit(where: str) -> None:
    assert unit_of_mount(MountPoint(where)) is None


def test_what_the_kernel_has_mounted_is_active_and_needed() -> None:
    mount = MountPoint("/srv", "/dev/x", "ext4")
    api = MountPoint("/sys/fs/cgroup", "cgroup2", "cgroup2")
    loaded = load(
        {"a.service": f"[Unit]\nRequiresMountsFor=/srv/y\n{SERVICE}"}, mounts=(mount, api)
    )
    node = loaded.graph.nodes["srv.mount"]
    assert (node.load_state, node.active_state) == ("loaded", "active")
    ((_, origin),) = loaded.graph.origins("srv.mount", "Before", "local-fs.target")
    assert origin.mask == "mountinfo"
    assert "srv.mount" in others(loaded, "a.service", "After")
    assert "sys-fs-cgroup.mount" not in loaded.graph.nodes


def test_dependencies_that_systemd_refuses_are_dropped_with_a_warning() -> None:
    files = {
        "a.service": f"[Unit]\nAfter=a.service\nBefore=dev-x.device\n{SERVICE}",
        "b.slice": "[Unit]\nOnFailure=a.service\n",
    }
    loaded = load(files)
    assert len(loaded.problems) == 3
    assert all(problem.line for problem in loaded.problems)
    assert not others(loaded, "b.slice", "OnFailure")


def test_the_root_is_above_every_path() -> None:
    assert prefixes("/a/b/") == ("/a/b", "/a", "")
    assert prefixes("/") == ("",)


NASTY = (
    "", "%", "%i", "%f", "@.service", "a@.service", "..", "/", "//x/../y", "\0", "a" * 300, "-",
    "x.slice", "é.service", "%I.service", "a-.slice", '"', "\\x2d.mount", "/" + "a" * 5000,
)  # fmt: skip
READ = {
    "Unit": (*DEPENDENCY_KEYS, "RequiresMountsFor", "WantsMountsFor", "DefaultDependencies"),
    "Service": ("Slice", "Sockets", "BusName", "StateDirectory", "LogNamespace", "RootImage",
                "WorkingDirectory", "StandardOutput", "StandardInput", "PrivateTmp"),
    "Socket": ("ListenStream", "ListenFIFO", "Service", "BindToDevice", "Slice", "Accept"),
    "Timer": ("OnCalendar", "Unit", "Persistent"),
    "Path": ("PathExists", "Unit"),
    "Mount": ("What", "Where", "Type", "Options"),
    "Swap": ("What", "Options"),
    "Automount": ("Where",),
}  # fmt: skip


@pytest.mark.parametrize("version", [252, 256, 262])
@pytest.mark.parametrize("name", ["a@i.service", "a.socket", "a.timer", "a.path", "a-b.mount",
                                  "a.swap", "a.automount", "a-.slice", "a.target"])  # fmt: skip
def test_no_value_of_a_setting_ends_the_loading(name: str, version: int) -> None:
    section = name.rpartition(".")[2].capitalize()
    for value in NASTY:
        lines = [f"[Unit]\n{key}={value}\n" for key in READ["Unit"]]
        lines += [f"[{section}]\n{key}={value}\n" for key in READ.get(section, ())]
        loaded = load({name: "".join(lines)}, version=version)
        assert name in loaded.graph.nodes
