"""From names to units: aliases, templates, masks, drop-ins, links, refusals.

That all of it agrees with systemd is asked in tests/oracle; here each rule stands by itself.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.unitfile.load import UnitSet
from sdqueue.unitfile.refs import Ref, refs
from sdqueue.unitfile.specifier import Host
from sdqueue.unitfile.unit import LoadState, Unit
from sdqueue.unitpath import Added, Tree

E, L = "/e", "/l"
OK = "[Service]\nExecStart=/bin/true\n"


def units(files: dict[str, str], *, version: int = 257) -> UnitSet:
    """Return units of a search path /e, /l that only exists here; "-> X" is a link to X."""
    added = [
        Added(path, text=text[3:]) if text.startswith("-> ") else Added(path, data=text.encode())
        for path, text in files.items()
    ]
    return UnitSet(Tree("", (E, L), tuple(added)), Host(), version)


def load(files: dict[str, str], name: str, *, version: int = 257) -> Unit:
    return units(files, version=version).get(name)


def others(unit: Unit) -> set[tuple[str, str]]:
    return {(link.kind, link.other) for link in unit.links if not link.masked}


def test_the_first_directory_wins() -> None:
    files = {"/e/a.service": "[Unit]\nDescription=e\n" + OK, "/l/a.service": OK}
    assert load(files, "a.service").value("Unit", "Description") == "e"


def test_an_alias_and_its_unit_are_one_object_with_both_names() -> None:
    found = units(
        {"/l/a.service": OK, "/e/b.service": "-> /l/a.service", "/e/c.service": "-> b.service"}
    )
    assert found.get("c.service") is found.get("a.service")
    assert found.get("a.service").name == "a.service"
    assert found.get("b.service").names == {"a.service", "b.service", "c.service"}


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("b.socket", "a.service"),
        ("b@.service", "a.service"),
        ("b@x.service", "a@y.service"),
        ("b.mount", "a.mount"),
        ("b.service", "a@.service"),
    ],
)
def test_some_links_are_no_aliases_and_that_is_said(link: str, target: str) -> None:
    found = units({f"/l/{target}": OK, f"/e/{link}": f"-> /l/{target}"})
    assert link not in found.names.ids
    assert [problem.file for problem in found.names.problems] == [f"/e/{link}"]


def test_a_link_out_of_the_search_path_is_a_unit_of_its_own() -> None:
    files = {"/o/x.service": OK, "/e/a.service": "-> /o/x.service"}
    assert load(files, "a.service").names == {"a.service"}
    assert load(files, "a.service").fragment_file == "/e/a.service"


def test_an_instance_has_the_file_of_its_template_or_its_own() -> None:
    found = units({"/l/a@.service": OK, "/l/a@x.service": OK})
    assert found.get("a@x.service").fragment_file == "/l/a@x.service"
    assert found.get("a@y.service").fragment_file == "/l/a@.service"
    assert found.get("a@y.service").name == "a@y.service"


def test_an_alias_of_a_template_is_one_for_each_instance() -> None:
    found = units({"/l/a@.service": OK, "/e/b@.service": "-> /l/a@.service"})
    assert found.get("b@x.service").names == {"a@x.service", "b@x.service"}
    assert found.get("b@x.service") is not found.get("b@y.service")


def test_an_instance_may_be_an_alias_of_a_template() -> None:
    found = units({"/l/a@.service": OK, "/e/b@x.service": "-> /l/a@.service"})
    assert found.get("b@x.service").name == "a@x.service"
    assert found.get("b@y.service").load_state is LoadState.NOT_FOUND


def test_an_alias_that_makes_too_long_a_name_is_not_found() -> None:
    long = f"a@{'x' * 240}.service"
    files = {f"/l/{'b' * 20}@.service": OK, "/e/a@.service": f"-> /l/{'b' * 20}@.service"}
    unit = load(files, long)
    assert unit.load_state is LoadState.NOT_FOUND
    assert "not a valid unit name" in str(unit.problems[0])


NAMES = (
    "a.service",
    "a-b@.service",
    "a-b@x.service",
    "b@.service",
    "b@y@.target",
    "c.slice",
    "d.mount",
)
PLACES = (
    "",
    "a.service.d/x.conf",
    "a-.service.d/y.conf",
    "service.d/z.conf",
    "a-b@.service.wants/{}",
)
contents = st.text(st.sampled_from("[Unit]\nService=ExecWantsAfter@%i-x. \\\"'/;"), max_size=60)
whats = st.one_of(
    contents, st.sampled_from([f"-> {name}" for name in (*NAMES, "/dev/null", "../x")])
)


@given(
    st.dictionaries(
        st.builds(
            lambda d, name, place: f"{d}/{place.format(name) or name}",
            st.sampled_from([E, L]),
            st.sampled_from(NAMES),
            st.sampled_from(PLACES),
        ),
        whats,
        max_size=8,
    )
)
def test_any_tree_can_be_loaded(files: dict[str, str]) -> None:
    found = units(files)
    for name in NAMES:
        unit = found.get(name.replace("@.", "@i."))
        assert unit.name in unit.names
        assert found.get(unit.name).name == unit.name


@pytest.mark.parametrize("how", ["-> /dev/null", ""])
def test_a_mask_is_a_link_to_nothing_or_an_empty_file(how: str) -> None:
    files = {
        "/e/a.service": how,
        "/l/a.service": OK,
        "/e/a.service.wants/b.service": "-> b.service",
    }
    for version, links in ((252, {("wants", "b.service")}), (257, set())):
        unit = load(files, "a.service", version=version)
        assert unit.load_state is LoadState.MASKED
        assert not unit.settings
        assert others(unit) == links


def test_what_needs_no_file_is_loaded_and_what_needs_one_is_not_found() -> None:
    found = units({})
    for name in ("a.slice", "dev-x.device", "-.mount", "init.scope", "system.slice"):
        assert found.get(name).load_state is LoadState.LOADED
    for name in ("a.service", "a.target", "a.mount", "a.scope", "a.swap"):
        assert found.get(name).load_state is LoadState.NOT_FOUND


def test_what_is_always_there_can_not_be_masked() -> None:
    assert load({"/e/system.slice": "-> /dev/null"}, "system.slice").loaded
    assert load({"/e/a.slice": "-> /dev/null"}, "a.slice").load_state is LoadState.MASKED


def test_a_missing_unit_has_no_drop_ins_and_no_links() -> None:
    files = {"/e/a.service.d/x.conf": OK, "/e/a.service.wants/b.service": "-> b.service"}
    unit = load(files, "a.service")
    assert unit.dropin_files == ()
    assert unit.links == ()


DROPIN_DIRECTORIES = ("a-b@x.service", "a-b@.service", "a-@.service", "a-.service", "service")


@pytest.mark.parametrize("above", [*DROPIN_DIRECTORIES, "a-@x.service"])
def test_drop_ins_come_from_every_less_special_name(above: str) -> None:
    files = {"/l/a-b@.service": OK, f"/e/{above}.d/x.conf": "[Unit]\nDescription=d\n"}
    assert load(files, "a-b@x.service").dropin_files == (f"/e/{above}.d/x.conf",)


@pytest.mark.parametrize("other", ["b-.service", "a.service", "a-c.service", "socket", "-.service"])
def test_drop_ins_do_not_come_from_other_names(other: str) -> None:
    files = {"/l/a-b.service": OK, f"/e/{other}.d/x.conf": OK}
    assert load(files, "a-b.service").dropin_files == ()


def test_of_drop_ins_of_one_name_the_more_special_counts_in_one_directory() -> None:
    files = {"/l/a-b.service": OK}
    files |= {f"/e/{name}.d/x.conf": OK for name in ("service", "a-.service", "a-b.service")}
    assert load(files, "a-b.service").dropin_files == ("/e/a-b.service.d/x.conf",)


def test_a_higher_directory_beats_a_more_special_name_but_for_the_type() -> None:
    files = {"/l/a-b.service": OK, "/e/a-.service.d/x.conf": OK, "/l/a-b.service.d/x.conf": OK}
    files |= {"/e/service.d/y.conf": OK, "/l/a-b.service.d/y.conf": OK}
    found = load(files, "a-b.service").dropin_files
    assert found == ("/e/a-.service.d/x.conf", "/l/a-b.service.d/y.conf")


def test_drop_ins_are_read_in_the_order_of_their_names_after_the_unit() -> None:
    files = {"/l/a.service": "[Unit]\nDescription=0\n" + OK}
    for place, name in (("/l", "20.conf"), ("/e", "9.conf"), ("/e", "10.conf")):
        files[f"{place}/a.service.d/{name}"] = f"[Unit]\nDescription={name}\n"
    unit = load(files, "a.service")
    order = [setting.value for setting in unit.all("Unit", "Description")]
    assert order == ["0", "10.conf", "20.conf", "9.conf"]
    assert unit.last("Unit", "Description") is unit.all("Unit", "Description")[-1]


@pytest.mark.parametrize("name", ["x.txt", ".x.conf", "x.conf~", "x.conf.dpkg-old", "conf"])
def test_files_of_other_names_are_no_drop_ins(name: str) -> None:
    assert load({"/l/a.service": OK, f"/e/a.service.d/{name}": OK}, "a.service").dropin_files == ()


@pytest.mark.parametrize("mask", ["-> /dev/null", ""])
def test_a_masked_drop_in_hides_the_one_below(mask: str) -> None:
    files = {"/l/a.service": OK, "/e/a.service.d/x.conf": mask}
    files["/l/a.service.d/x.conf"] = "[Unit]\nDescription=hidden\n"
    assert not load(files, "a.service").all("Unit", "Description")


def test_links_of_all_names_and_types_count_and_upholds_since_254() -> None:
    files = {"/l/a-b.service": OK, "/e/c.service": "-> /l/a-b.service"}
    for path in ("a-b.service.wants/1", "c.service.wants/2", "a-.service.requires/3"):
        files[f"/e/{path}.service"] = "-> x.service"
    files |= {"/e/service.wants/4.target": "-> x", "/e/a-b.service.upholds/5.service": "-> x"}
    old = {("wants", "1.service"), ("wants", "2.service"), ("requires", "3.service")}
    old.add(("wants", "4.target"))
    assert others(load(files, "a-b.service", version=253)) == old
    assert others(load(files, "a-b.service", version=254)) == {*old, ("upholds", "5.service")}


def test_a_masked_entry_hides_that_of_a_lower_directory() -> None:
    files = {"/l/t.target": "[Unit]\n", "/e/t.target.wants/a.service": "-> /dev/null"}
    files["/l/t.target.wants/a.service"] = "-> ../a.service"
    unit = load(files, "t.target")
    assert others(unit) == set()
    assert [link.masked for link in unit.links] == [True]


def test_an_entry_that_is_no_link_is_ignored_and_that_is_said() -> None:
    unit = load({"/l/t.target": "[Unit]\n", "/e/t.target.wants/a.service": OK}, "t.target")
    assert unit.links == ()
    assert "not a symbolic link" in str(unit.problems[0])


def test_the_name_of_an_entry_counts_and_not_what_it_links_to() -> None:
    unit = load(
        {"/l/t.target": "[Unit]\n", "/e/t.target.wants/a.service": "-> ../b.service"}, "t.target"
    )
    assert others(unit) == {("wants", "a.service")}
    assert "different name" in str(unit.problems[0])


def test_a_template_in_a_wants_directory_gets_the_instance_of_the_unit() -> None:
    files = {"/l/t@.target": "[Unit]\n", "/e/t@.target.wants/a@.service": "-> ../a@.service"}
    assert others(load(files, "t@x.target")) == {("wants", "a@x.service")}


@pytest.mark.parametrize(("version", "place"), [(257, "/e"), (258, "/l")])
def test_a_link_to_itself_counts_until_258_and_then_hides_nothing(version: int, place: str) -> None:
    files = {"/l/t.target": "[Unit]\n", "/e/t.target.wants/a.service": "-> a.service"}
    files["/l/t.target.wants/a.service"] = "-> ../a.service"
    unit = load(files, "t.target", version=version)
    assert [link.file for link in unit.links] == [f"{place}/t.target.wants/a.service"]


REFUSED = [
    ("a.service", "[Service]\n"),
    ("a.service", "[Service]\nType=oneshot\n"),
    ("a.service", "[Service]\nExecStart=/a\nExecStart=/b\n"),
    ("a.service", "[Service]\nExecStart=/a\nType=oneshot\nRestart=always\n"),
    ("a.service", "[Service]\nExecStart=/a\nType=dbus\n"),
    ("a.service", "[Service]\nExecStart=a/b\n"),
    ("a.service", OK + "RootDirectory=x\n"),
    ("a.service", OK + "User=a:b\n"),
    ("a.service", OK + "WorkingDirectory=a\n"),
    ("a.service", OK + "PAMName=x\nKillMode=process\n"),
    ("a.socket", "[Socket]\n"),
    ("a.socket", "[Socket]\nListenFIFO=/x\nAccept=yes\n"),
    ("a.socket", "[Socket]\nListenStream=1\nSymlinks=/x\n"),
    ("a.timer", "[Timer]\n"),
    ("a.timer", "[Timer]\nOnBootSec=1\nOnBootSec=\n"),
    ("a.path", "[Path]\nPathExists=relative\n"),
    ("a.mount", "[Mount]\nWhat=x\nWhere=/b\n"),
    ("a.mount", "[Mount]\nWhere=/a\n"),
    ("proc.mount", "[Mount]\nWhat=x\n"),
    ("dev-a.swap", "[Swap]\nWhat=/dev/b\n"),
]


@pytest.mark.parametrize(("name", "text"), REFUSED)
def test_systemd_refuses_some_units_and_it_is_said_why(name: str, text: str) -> None:
    unit = load({f"/l/{name}": text}, name)
    assert unit.load_state is LoadState.BAD_SETTING
    assert unit.problems[-1].file == f"/l/{name}"


ACCEPTED = [
    ("a.service", "[Service]\nExecStart=-a/b\nExecStart=/a\n"),
    ("a.service", "[Service]\nExecStart=/a\nExecStart=\nExecStart=/b\n"),
    ("a.service", "[Service]\nType=oneshot\nExecStart=/a\nExecStart=/b\n"),
    ("a.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStop=/a\n"),
    ("a.service", "[Unit]\nSuccessAction=reboot\n[Service]\n"),
    ("a.service", OK + "WorkingDirectory=~\n"),
    ("a.service", OK + "User=1000\n"),
    ("a.service", OK + "Type=nonsense\n"),
    ("a.socket", "[Socket]\nListenStream=1\nAccept=yes\n"),
    ("a.timer", "[Timer]\nOnClockChange=yes\n"),
    ("a-b.mount", "[Mount]\nWhat=x\n"),
    ("a-b.slice", "[Slice]\nSlice=c.slice\n"),
    ("a.target", "[Unit]\n"),
]


@pytest.mark.parametrize(("name", "text"), ACCEPTED)
def test_systemd_accepts_others(name: str, text: str) -> None:
    assert load({f"/l/{name}": text}, name).problems == ()
    assert load({f"/l/{name}": text}, name).load_state is LoadState.LOADED


def test_what_stood_before_a_fault_counts_and_the_rest_does_not() -> None:
    text = "[Unit]\nAfter=x.service\n[broken\nBefore=y.service\n"
    unit = load({"/l/a.service": text, "/e/a.service.d/x.conf": OK}, "a.service")
    assert unit.load_state is LoadState.ERROR
    assert [setting.key for setting in unit.settings] == ["After"]
    assert not unit.extras
    assert unit.dropin_files == ()


@pytest.mark.parametrize("text", ["[broken\n", "[Service]\nExecStart=a/b\n", "-> /nowhere/x"])
def test_of_a_file_with_a_fault_every_name_is_a_unit_of_its_own(text: str) -> None:
    found = units({"/l/a.service": text, "/e/b.service": "-> /l/a.service"})
    for name in ("a.service", "b.service"):
        assert found.get(name).name == name
        assert found.get(name).names == {name}
        assert not found.get(name).loaded


def test_a_fault_in_a_drop_in_ends_that_drop_in_only() -> None:
    files = {"/l/a.service": OK, "/e/a.service.d/1.conf": "[Unit]\nAfter=x.service\n[b\nBefore=y\n"}
    files["/e/a.service.d/2.conf"] = "[Unit]\nWants=z.service\n"
    unit = load(files, "a.service")
    assert unit.load_state is LoadState.LOADED
    assert [s.key for s in unit.settings if s.section == "Unit"] == ["After", "Wants"]


def test_a_unit_refused_after_reading_has_its_default_dependencies() -> None:
    assert load({"/l/a.service": "[Service]\n"}, "a.service").extras
    assert not load({"/l/a.service": "[Service]\nExecStart=a/b\n"}, "a.service").extras
    assert not load({"/l/a--b.slice": "[Slice]\n"}, "a--b.slice").extras


def names(unit: Unit, key: str, found: UnitSet) -> list[str]:
    """Return the names of a dependency list; for trouble, the message."""
    listed = refs(unit, key, Host(), fragment_of=found.fragment_file)
    return [each.name if isinstance(each, Ref) else each.message for each in listed]


def test_dependency_lists_add_up_and_are_not_reset() -> None:
    found = units(
        {"/l/a.service": "[Unit]\nAfter=b.service c.service\nAfter=\nAfter=d.service\n" + OK}
    )
    assert names(found.get("a.service"), "After", found) == ["b.service", "c.service", "d.service"]


def test_dependency_lists_fill_templates_and_specifiers() -> None:
    text = "[Unit]\nWants=w@.service %p.target x@%i.service\n"
    found = units({"/l/a@.service": text + OK, "/l/b.service": text + OK})
    assert names(found.get("a@1.service"), "Wants", found) == [
        "w@1.service",
        "a.target",
        "x@1.service",
    ]
    assert names(found.get("b.service"), "Wants", found)[:2] == ["w@b.service", "b.target"]


def test_bad_names_in_a_dependency_list_are_said_and_the_others_count() -> None:
    found = units({"/l/a.service": '[Unit]\nWants="b.service" c.service %Q.service nope\n' + OK})
    listed = names(found.get("a.service"), "Wants", found)
    assert listed[1] == "c.service"
    assert [word for word in listed if "ignored" in word] == [listed[0], listed[2], listed[3]]


def test_a_template_that_would_pull_in_itself_for_ever_is_left_out() -> None:
    found = units({"/l/a@.service": "[Unit]\nWants=a@%n.service a@%i.service b@%n.service\n" + OK})
    assert names(found.get("a@1.service"), "Wants", found) == [
        "a@1.service",
        "b@a@1.service.service",
    ]
