"""Serving objects on a bus: from a method call to one answer, always.

Knows the tables of `interface` and the tree of objects, and what D-Bus itself says every object
has (Introspectable, Properties, Peer); it must not know what the objects do.

Every call that wants an answer gets exactly one, also when its handler raises, is cancelled, or
returns what can't be sent. An SdqueueError is the caller's to read, under its own name. Any other
exception is ours: it is logged here, once, and the caller learns that there was one and nothing
else, no path and no traceback. Text that D-Bus can't carry, a NUL in somebody's file name, is told
escaped: one odd job must not make a whole listing fail.
"""

import asyncio
import functools
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from sdqueue.bus.connection import Bus
from sdqueue.bus.header import Header
from sdqueue.bus.interface import Interface, Method, Property, SignalSpec, args, introspection_xml
from sdqueue.bus.tree import Node, ObjectTree
from sdqueue.bus.turnstile import Turnstile
from sdqueue.bus.wire import Message, Variant, escaped
from sdqueue.words.errors import BusError, LimitsExceeded, SdqueueError, UsageError

log = logging.getLogger(__name__)

FAILED = SdqueueError.bus_name
_ERROR = "org.freedesktop.DBus.Error"
_CREDENTIALS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who is at the other end, as the bus saw it when they connected.

    The uid is sure for as long as the connection lives. The process of that pid may have passed
    its connection on, or be gone.
    """

    uid: int
    pid: int


@dataclass(frozen=True, slots=True)
class Request:
    """One call, for its handler."""

    message: Message
    service: "Service"

    @property
    def sender(self) -> str:
        """The caller's unique name."""
        return self.message.sender

    async def credentials(self) -> Credentials:
        """Return who calls; raise BusError where the bus can't say, the caller being gone."""
        return await self.service.credentials(self.message.sender)


class _Refused(Exception):
    """A call that D-Bus itself says no to."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = f"{_ERROR}.{name}"


@dataclass(slots=True)
class Service:
    """Serves the objects of `tree` on `bus`, from `start()` to the end of the connection."""

    bus: Bus
    tree: ObjectTree
    _known: dict[str, Credentials] = field(default_factory=dict)

    def start(self, *, is_trusted: Callable[[int], bool] | None = None) -> None:
        """Answer calls from now on; own a name only after this.

        With `is_trusted`, calls of users of whom it says no go through a turnstile.
        """
        if is_trusted is None:
            self.bus.serve(self._on_call)
            return
        turnstile = Turnstile(self._uid_of, is_trusted, self.bus.deliver, self._refuse)
        self.bus.serve(self._on_call, turnstile.arrive)
        self.bus.spawn(turnstile.run(), "turnstile")

    async def _uid_of(self, sender: str) -> int:
        return (await self.credentials(sender)).uid

    def _refuse(self, header: Header, text: str) -> None:
        self.bus.refuse(header, LimitsExceeded.bus_name, text)

    # -- telling -----------------------------------------------------------------------------------

    def emit(self, path: str, interface: Interface, signal: str, *body: object) -> None:
        """Emit a signal that `interface` declares."""
        spec = interface.signal(signal)
        try:
            self.bus.emit(path, interface.name, signal, spec.signature, *body)
        except UsageError:
            told = map(escaped, body)
            self.bus.emit(path, interface.name, signal, spec.signature, *told)

    def changed(self, path: str, interface: Interface, *names: str) -> None:
        """Tell that properties of an object have new values, as each is declared to be told."""
        node = self.tree.node(path)
        if node is None:
            return
        found = [prop for prop in interface.properties if prop.name in names]
        values = {prop.name: _value(prop, node.target) for prop in found if prop.emits == "true"}
        invalidated = [prop.name for prop in found if prop.emits == "invalidates"]
        if values or invalidated:
            self.emit(path, PROPERTIES, "PropertiesChanged", interface.name, values, invalidated)

    async def credentials(self, sender: str) -> Credentials:
        """Return who owns a unique name; asked once, since such a name never changes hands."""
        if (known := self._known.get(sender)) is None:
            found = await self.bus.ask_bus("GetConnectionCredentials", "s", sender)
            known = _credentials(cast("dict[str, object]", found))
            if len(self._known) >= _CREDENTIALS_MAX:
                del self._known[next(iter(self._known))]
            self._known[sender] = known
        return known

    # -- answering ---------------------------------------------------------------------------------

    def _on_call(self, message: Message) -> "asyncio.Task[object] | None":
        try:
            method, target = self._resolve(message)
            result = method.run(Request(message, self), target, *message.body)
        except Exception as error:
            message.close_fds()
            self._fail(message, error)
            return None
        if not asyncio.iscoroutine(result):
            self._finish(message, method, result)
            return None
        task = self.bus.spawn(result, f"{method.name} for {message.sender}")
        # Not a coroutine around it: one that is cancelled before its first step answers nothing.
        task.add_done_callback(functools.partial(self._on_done, message, method))
        return task

    def _on_done(self, message: Message, method: Method, task: "asyncio.Task[object]") -> None:
        if task.cancelled():
            message.close_fds()
            self.bus.reply_error(message, FAILED, f"{method.name} was cancelled")
        elif (error := task.exception()) is None:
            self._finish(message, method, task.result())
        else:
            message.close_fds()
            self._fail(message, error)

    def _finish(self, message: Message, method: Method, result: object) -> None:
        message.close_fds()
        try:
            values = _values(method, result)
            try:
                self._reply(message, method.out_signature, values)
            finally:
                _close_given(method, values)
        except Exception as error:
            # What a handler returned can't be sent: its mistake, not the caller's.
            self._fail_inside(message, error)

    def _reply(self, message: Message, signature: str, values: tuple[object, ...]) -> None:
        try:
            self.bus.reply(message, signature, *values)
        except UsageError:
            self.bus.reply(message, signature, *map(escaped, values))

    def _fail(self, message: Message, error: BaseException) -> None:
        if isinstance(error, _Refused):
            self.bus.reply_error(message, error.name, str(error))
        elif isinstance(error, SdqueueError):
            self.bus.reply_error(message, error.bus_name, str(error))
        else:
            self._fail_inside(message, error)

    def _fail_inside(self, message: Message, error: BaseException) -> None:
        log.error("%s from %s failed", message.member, message.sender, exc_info=error)
        self.bus.reply_error(message, FAILED, f"{message.member}: internal error, see the journal")

    def _resolve(self, message: Message) -> tuple[Method, object]:
        """Find the method that is called, and what it is called on; raise _Refused."""
        node = self.tree.node(message.path)
        if node is None:
            if message.interface != PEER.name:
                raise _Refused("UnknownObject", f"no object {message.path}")
            node = Node(message.path, None, ())
        offered = (*node.interfaces, *STANDARD)
        if message.interface:
            offered = tuple(each for each in offered if each.name == message.interface)
            if not offered:
                raise _Refused(
                    "UnknownInterface", f"{message.path} has no interface {message.interface}"
                )
        for interface in offered:
            if method := interface.method(message.member):
                _check_signature(message, method)
                return method, node if interface in STANDARD else node.target
        raise _Refused("UnknownMethod", f"{message.path} has no method {message.member}")


def _check_signature(message: Message, method: Method) -> None:
    if message.signature != method.in_signature:
        raise _Refused(
            "InvalidArgs",
            f"{method.name} takes {method.in_signature!r}, not {message.signature!r}",
        )
    if len(message.fds) < method.in_signature.count("h"):
        raise _Refused("InvalidArgs", f"{method.name}: a descriptor is missing")


def _values(method: Method, result: object) -> tuple[object, ...]:
    """Return a handler's result as the values of a reply."""
    match len(method.gives):
        case 0:
            return ()
        case 1:
            return (result,)
        case _:
            return tuple(cast("tuple[object, ...]", result))


def _close_given(method: Method, values: tuple[object, ...]) -> None:
    """Close the descriptors that a handler gave away; the bus has its own copies."""
    for arg, value in zip(method.gives, values, strict=False):
        if arg.signature == "h" and isinstance(value, int) and value >= 0:
            os.close(value)


def _credentials(found: dict[str, object]) -> Credentials:
    uid, pid = found.get("UnixUserID"), found.get("ProcessID", 0)
    if not isinstance(uid, int) or not isinstance(pid, int):
        raise BusError("the bus does not say which user calls")
    return Credentials(uid, pid)


# -- what every object has -------------------------------------------------------------------------


def _value(prop: Property, target: object) -> Variant:
    return Variant(prop.signature, prop.get(target))


def _interfaces(node: Node, name: str) -> tuple[Interface, ...]:
    """Return the interface of that name, or all for ""; raise _Refused where it has none such."""
    if not name:
        return node.interfaces
    found = tuple(each for each in (*node.interfaces, *STANDARD) if each.name == name)
    if not found:
        raise _Refused("UnknownInterface", f"{node.path} has no interface {name}")
    return found


def _get(_request: Request, node: Node, interface: str, name: str) -> Variant:
    for each in _interfaces(node, interface):
        if prop := each.property(name):
            return _value(prop, node.target)
    raise _Refused("UnknownProperty", f"{node.path} has no property {name}")


def _get_all(_request: Request, node: Node, interface: str) -> dict[str, Variant]:
    found = _interfaces(node, interface)
    return {prop.name: _value(prop, node.target) for each in found for prop in each.properties}


def _set(request: Request, node: Node, interface: str, name: str, _value: object) -> None:
    _get(request, node, interface, name)
    raise _Refused("PropertyReadOnly", f"{name} can't be set")


def _introspect(request: Request, node: Node) -> str:
    children = request.service.tree.children(node.path)
    return introspection_xml((*node.interfaces, *STANDARD), children)


def _machine_id(_request: Request, _node: Node) -> str:
    return Path("/etc/machine-id").read_text(encoding="ascii").strip()


PEER = Interface(
    "org.freedesktop.DBus.Peer",
    (
        Method("Ping", lambda _request, _node: None),
        Method("GetMachineId", _machine_id, gives=args("machine_uuid:s")),
    ),
)
INTROSPECTABLE = Interface(
    "org.freedesktop.DBus.Introspectable",
    (Method("Introspect", _introspect, gives=args("xml_data:s")),),
)
PROPERTIES = Interface(
    "org.freedesktop.DBus.Properties",
    (
        Method("Get", _get, args("interface_name:s", "property_name:s"), args("value:v")),
        Method("GetAll", _get_all, args("interface_name:s"), args("props:a{sv}")),
        Method("Set", _set, args("interface_name:s", "property_name:s", "value:v")),
    ),
    signals=(
        SignalSpec(
            "PropertiesChanged",
            args("interface_name:s", "changed_properties:a{sv}", "invalidated_properties:as"),
        ),
    ),
)
STANDARD = (PEER, INTROSPECTABLE, PROPERTIES)
