"""The pure parts of the bus: labels, addresses, match rules, object trees, descriptions."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdqueue.bus.address import (
    SYSTEM_BUS_ADDRESS,
    system_bus_address,
    unix_sockets,
    user_bus_address,
)
from sdqueue.bus.header import Header
from sdqueue.bus.interface import Interface, Method, Property, SignalSpec, args, introspection_xml
from sdqueue.bus.labels import escape_label, unescape_label
from sdqueue.bus.match import Listeners, Match, Signal
from sdqueue.bus.systemd_words import REFUSALS, reaction, unit_of_path, version_number
from sdqueue.bus.tree import ObjectTree, object_path
from sdqueue.words.errors import BusGone, RemoteError, UsageError

# -- labels ----------------------------------------------------------------------------------------

LABELS = {
    "": "_",
    "a": "a",
    "9a": "_39a",
    "a9": "a9",
    "52-gpu.job": "_352_2dgpu_2ejob",
    "_": "_5f",
    "ä": "_c3_a4",
}


@pytest.mark.parametrize(("name", "label"), LABELS.items())
def test_a_name_is_escaped_as_systemd_does(name: str, label: str) -> None:
    assert escape_label(name) == label
    assert unescape_label(label) == name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_name_comes_back_from_its_label(name: str) -> None:
    label = escape_label(name)
    assert unescape_label(label) == name
    assert label.replace("_", "a").isalnum()
    assert label.isascii()


@given(st.text("_0123456789abcdefg"))
def test_no_label_is_too_odd_to_be_unescaped(label: str) -> None:
    unescape_label(label)


def test_a_units_path_says_its_name() -> None:
    path = "/org/freedesktop/systemd1/unit/sdqueue_2djob_2d52_2dgpu_5cx20a_2eservice"
    assert unit_of_path(path) == r"sdqueue-job-52-gpu\x20a.service"


# -- addresses -------------------------------------------------------------------------------------


def test_the_users_bus_is_in_the_runtime_directory_first() -> None:
    both = {"XDG_RUNTIME_DIR": "/run/user/1000", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}
    assert user_bus_address(both) == "unix:path=/run/user/1000/bus"
    del both["XDG_RUNTIME_DIR"]
    assert user_bus_address(both) == "unix:path=/x"
    with pytest.raises(BusGone, match="XDG_RUNTIME_DIR"):
        user_bus_address({})


def test_an_odd_runtime_directory_is_escaped_and_found() -> None:
    address = user_bus_address({"XDG_RUNTIME_DIR": "/run/a b;c,d=é%"})
    assert unix_sockets(address) == ["/run/a b;c,d=é%/bus".encode()]


def test_the_system_bus_can_be_moved() -> None:
    assert system_bus_address({}) == SYSTEM_BUS_ADDRESS
    assert system_bus_address({"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x"}) == "unix:path=/x"


ADDRESSES: dict[str, list[bytes]] = {
    "unix:path=/a": [b"/a"],
    "unix:path=/a,guid=00": [b"/a"],
    "unix:abstract=/a": [b"\0/a"],
    "tcp:host=x;unix:path=/a;unix:path=/b": [b"/a", b"/b"],
    "unix:path=/a%20b": [b"/a b"],
}


@pytest.mark.parametrize(("address", "names"), ADDRESSES.items())
def test_an_address_names_its_sockets_in_order(address: str, names: list[bytes]) -> None:
    assert unix_sockets(address) == names


@pytest.mark.parametrize("address", ["", "x", "tcp:host=a", "unix:tmpdir=/a", "unix:path=/a%zz"])
def test_an_address_without_a_unix_socket_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="address"):
        unix_sockets(address)


# -- match rules -----------------------------------------------------------------------------------


def signal(sender: str = ":1.1", path: str = "/a/b", arg0: str | None = "x") -> Signal:
    header = Header(4, path, "a.B", "Told", sender, "s", arg0)
    return Signal(header, lambda: (arg0,))


def test_a_rule_is_spelled_as_the_bus_wants_it_quotes_and_all() -> None:
    match = Match("a.B", member="M", path_namespace="/a", arg0="it's")
    assert match.rule() == (
        "type='signal',sender='a.B',member='M',path_namespace='/a',arg0='it'\\''s'"
    )


ACCEPTED = [
    (Match(), True),
    (Match(":1.1"), True),
    (Match(":1.2"), False),
    (Match(interface="a.B", member="Told", path="/a/b", arg0="x"), True),
    (Match(member="Tol"), False),
    (Match(path="/a"), False),
    (Match(path_namespace="/a"), True),
    (Match(path_namespace="/a/b"), True),
    (Match(path_namespace="/"), True),
    (Match(path_namespace="/a/b/c"), False),
    (Match(path_namespace="/a/bc"), False),
    (Match(arg0="y"), False),
]


@pytest.mark.parametrize(("match", "wanted"), ACCEPTED)
def test_a_rule_accepts_what_the_bus_would_send_for_it(match: Match, *, wanted: bool) -> None:
    got: list[Signal] = []
    listeners = Listeners()
    assert listeners.add(match, got.append)
    listeners.dispatch(signal())
    assert bool(got) is wanted


def test_a_namespace_is_cut_at_slashes() -> None:
    listeners, got = Listeners(), list[Signal]()
    listeners.add(Match(path_namespace="/a"), got.append)
    listeners.dispatch(signal(path="/ab"))
    assert not got


def test_what_a_name_sends_is_believed_of_its_owner_only() -> None:
    listeners, got = Listeners(), list[Signal]()
    listeners.add(Match("a.Name"), got.append)
    listeners.dispatch(signal(sender=""))
    listeners.dispatch(signal())
    assert not got, "an owner that is not known sends nothing"
    listeners.owners["a.Name"] = ":1.1"
    listeners.dispatch(signal(sender=":1.2"))
    assert not got
    listeners.dispatch(signal())
    assert len(got) == 1


def test_the_bus_is_told_once_of_a_rule_that_two_want() -> None:
    listeners, got = Listeners(), list[Signal]()
    assert listeners.add(Match(), got.append)
    assert not listeners.add(Match(), got.append)
    listeners.dispatch(signal())
    assert len(got) == 2
    assert not listeners.remove(Match(), got.append)
    assert listeners.remove(Match(), got.append)
    listeners.dispatch(signal())
    assert len(got) == 2


def test_a_handler_that_fails_is_logged_and_the_next_one_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listeners, got = Listeners(), list[Signal]()
    listeners.add(Match(), lambda _: [][1])
    listeners.add(Match(), got.append)
    listeners.dispatch(signal())
    assert len(got) == 1
    assert [record.name for record in caplog.records] == ["sdqueue.bus.match"]


def test_a_body_is_read_when_it_is_looked_at_and_once() -> None:
    left = [("first",), ("second",)]
    lazy = Signal(Header(4), lambda: left.pop(0))
    assert len(left) == 2
    assert lazy.body == lazy.body == ("first",)
    assert len(left) == 1


# -- trees and descriptions ------------------------------------------------------------------------

THING = Interface("org.example.Thing")


def tree() -> ObjectTree:
    found = ObjectTree()
    found.add("/org/x", "root", THING)
    found.add_family("/org/x/job", {"1": "one", "10": "ten"}.get, lambda: ["1", "10"], THING)
    return found


PLACES = {
    "/org/x": "root",
    "/org/x/job/_31": "one",
    "/org/x/job/_310": "ten",
    "/org/x/job/_32": None,
    "/org/x/job/1": None,
    "/org/x/job/_31/_31": None,
    "/org/xy": None,
    "/o": None,
}


@pytest.mark.parametrize(("path", "target"), PLACES.items())
def test_an_object_is_found_by_its_one_path(path: str, target: str | None) -> None:
    node = tree().node(path)
    assert (node and node.target) == target


@pytest.mark.parametrize("path", ["/", "/org", "/org/x/job"])
def test_a_step_on_the_way_is_there_and_has_no_interfaces(path: str) -> None:
    node = tree().node(path)
    assert node is not None
    assert not node.interfaces


CHILDREN = {"/": ["org"], "/org": ["x"], "/org/x": ["job"], "/org/x/job": ["_31", "_310"]}


@pytest.mark.parametrize(("path", "children"), CHILDREN.items())
def test_children_are_by_whole_names_not_by_prefix(path: str, children: list[str]) -> None:
    assert tree().children(path) == children


def test_a_member_of_a_family_has_no_children() -> None:
    assert tree().children("/org/x/job/_31") == []
    assert object_path("/org/x/job", "1") == "/org/x/job/_31"


def test_a_description_holds_every_member_with_its_types() -> None:
    interface = Interface(
        "org.example.All",
        (Method("Do", print, args("a:s", "b:a{sv}"), args("c:u")),),
        (Property("P", "as", len, emits="invalidates"),),
        (SignalSpec("Done", args("d:t")),),
    )
    (found,) = ElementTree.fromstring(introspection_xml([interface], [])).findall("interface")
    arguments = [tuple(each.attrib.values()) for each in found.iter("arg")]
    assert arguments == [("a", "s", "in"), ("b", "a{sv}", "in"), ("c", "u", "out"), ("d", "t")]
    (prop,) = found.findall("property")
    assert prop.attrib == {"name": "P", "type": "as", "access": "read"}
    assert prop[0].attrib["value"] == "invalidates"


@pytest.mark.parametrize("spelled", ["a:", "a:ss", "a:z"])
def test_an_argument_has_one_complete_type(spelled: str) -> None:
    with pytest.raises((ValueError, UsageError)):
        args(spelled)


def test_a_signal_that_was_not_declared_can_not_be_emitted() -> None:
    with pytest.raises(KeyError, match="declares no signal"):
        THING.signal("Told")


# -- systemd's words -------------------------------------------------------------------------------

VERSIONS = {"252.39-1~deb12u1": 252, "257": 257, "v258~rc1-3": 258, "262.1-2": 262, "": 0}


@pytest.mark.parametrize(("text", "number"), VERSIONS.items())
def test_a_version_is_its_first_number(text: str, number: int) -> None:
    assert version_number(text) == number


def test_every_refusal_is_an_error_name_with_a_reaction() -> None:
    for name in REFUSALS:
        assert name.count(".") >= 2
        assert reaction(RemoteError(name)) == REFUSALS[name]
    assert reaction(RemoteError("org.example.Other")) is None
