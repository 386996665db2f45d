"""Values to bytes and back, headers looked at from outside, and bytes that are no message."""

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdqueue.bus import wire
from sdqueue.bus.framing import BrokenStream, message_length
from sdqueue.bus.header import peek
from sdqueue.bus.wire import Kind, Malformed, Message, Variant
from sdqueue.words.errors import UsageError
from tests.bus.busdaemon import marshalling_by


@pytest.fixture(autouse=True, params=wire.LIBRARIES, scope="module")
def _library(request: pytest.FixtureRequest) -> Iterator[None]:
    with marshalling_by(request.param):
        yield


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
integers = {token: st.integers(low, high) for token, (low, high) in sorted(wire._INTEGERS.items())}
PLAIN: dict[str, st.SearchStrategy[object]] = {
    **integers,
    "b": st.booleans(),
    "d": st.floats(allow_nan=False),
    "s": texts,
    "o": st.sampled_from(["/", "/a", "/a/b_1/C"]),
    "g": st.sampled_from(["", "s", "a{sv}(ii)"]),
    "ay": st.binary(max_size=20),
}


def listed(inner: st.SearchStrategy[tuple[str, object]]) -> st.SearchStrategy[tuple[str, object]]:
    """An array of values of one type: the first one's."""
    return inner.map(lambda typed: (f"a{typed[0]}", [typed[1], typed[1]])).filter(
        lambda typed: typed[0] != "ay"
    )


def structs(inner: st.SearchStrategy[tuple[str, object]]) -> st.SearchStrategy[tuple[str, object]]:
    return st.lists(inner, min_size=1, max_size=3).map(
        lambda members: (
            "(" + "".join(signature for signature, _ in members) + ")",
            tuple(value for _, value in members),
        )
    )


def mapped(inner: st.SearchStrategy[tuple[str, object]]) -> st.SearchStrategy[tuple[str, object]]:
    return st.tuples(texts, inner).map(lambda pair: (f"a{{s{pair[1][0]}}}", {pair[0]: pair[1][1]}))


simple = st.one_of([st.tuples(st.just(token), values) for token, values in PLAIN.items()])
typed_values = st.recursive(
    simple, lambda inner: st.one_of(listed(inner), structs(inner), mapped(inner)), max_leaves=6
)


def signal_of(signature: str, *body: object) -> Message:
    return Message(
        Kind.SIGNAL,
        7,
        path="/org/example",
        interface="org.example.Test",
        member="Told",
        sender=":1.5",
        signature=signature,
        body=body,
    )


@given(typed_values)
def test_what_is_sent_is_what_arrives(typed: tuple[str, object]) -> None:
    signature, value = typed
    data, fds = wire.encode(signal_of(signature, value))
    arrived = wire.decode(data)
    assert arrived.body == (value,)
    assert arrived.signature == signature
    assert fds == []


@given(typed_values)
def test_a_variant_arrives_as_the_value_in_it(typed: tuple[str, object]) -> None:
    data, _ = wire.encode(signal_of("a{sv}", {"key": Variant(*typed)}))
    assert wire.decode(data).body == ({"key": typed[1]},)


@given(texts, typed_values)
def test_a_header_looked_at_from_outside_says_what_unmarshalling_says(
    first: str, typed: tuple[str, object]
) -> None:
    data, _ = wire.encode(signal_of("s" + typed[0], first, typed[1]))
    header, message = peek(data), wire.decode(data)
    assert header is not None
    assert header.kind == message.kind
    for name in ("path", "interface", "member", "sender", "signature"):
        assert getattr(header, name) == getattr(message, name)
    assert header.arg0 == first
    assert message_length(data[:16]) == len(data)


def test_a_first_value_that_is_no_string_is_not_arg0() -> None:
    header = peek(wire.encode(signal_of("us", 1, "x"))[0])
    assert header is not None
    assert header.arg0 is None


@given(typed_values, st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4))
@settings(max_examples=300)
def test_bytes_that_were_tampered_with_are_read_or_malformed_and_nothing_else(
    typed: tuple[str, object], changes: list[tuple[int, int]]
) -> None:
    data = bytearray(wire.encode(signal_of(*typed))[0])
    for position, value in changes:
        data[position % len(data)] = value
    peek(bytes(data))
    try:
        wire.decode(bytes(data))
    except Malformed:
        pass
    try:
        message_length(data[:16])
    except BrokenStream:
        pass


@given(typed_values, st.integers(0, 10**6))
def test_a_message_cut_short_is_malformed(typed: tuple[str, object], cut: int) -> None:
    data = wire.encode(signal_of(*typed))[0]
    with pytest.raises(Malformed):
        wire.decode(data[: cut % len(data)])


def test_descriptors_become_indices_and_stay_the_callers() -> None:
    data, fds = wire.encode(signal_of("ha(sh)", 5, [("a", 6), ("b", 7)]))
    assert fds == [5, 6, 7]
    assert data.endswith(struct.pack("<I", 2))


@pytest.mark.parametrize("signature", ["", "s", "a{sv}", "(is)", "sa{sv}u"])
def test_a_signature_is_split_into_complete_types(signature: str) -> None:
    assert "".join(wire.signature_types(signature)) == signature


@pytest.mark.parametrize("body", [(), ("a", "b")])
def test_too_few_or_too_many_values_are_refused(body: tuple[object, ...]) -> None:
    with pytest.raises(UsageError, match=r"values\s+for the signature"):
        wire.encode(signal_of("s", *body))


def test_a_long_or_hostile_value_is_not_repeated_in_the_error() -> None:
    with pytest.raises(UsageError) as caught:
        wire.encode(signal_of("s", "\0" + "x" * 10_000))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("signature", "value"), [("y", 256), ("i", -(2**31) - 1), ("t", 2**64)])
def test_a_number_out_of_range_is_told_the_range(signature: str, value: int) -> None:
    low, high = wire._INTEGERS[signature]
    with pytest.raises(UsageError, match=f"must be from {low} to {high}"):
        wire.encode(signal_of(signature, value))


@pytest.mark.parametrize("big_endian", [False, True])
def test_the_length_of_a_message_is_read_in_its_own_byte_order(big_endian: bool) -> None:
    order = ">" if big_endian else "<"
    fixed = (b"B" if big_endian else b"l") + b"\4\0\1" + struct.pack(f"{order}III", 10, 1, 5)
    assert message_length(fixed) == 16 + 8 + 10


def test_an_unknown_library_is_refused() -> None:
    with pytest.raises(ImportError, match="must be one of dbus_next, dbus_fast"):
        wire.use_library("dbus_slow")
