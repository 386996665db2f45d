"""Declaring what an object offers, and describing it to those who ask.

Pure: tables of methods, properties and signals, and the introspection XML that is made from them;
no connection. The same tables are what calls are checked against and what the manual is made from.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import quoteattr

from sdqueue.bus.wire import signature_types

Emits = Literal["true", "invalidates", "const", "false"]
"""What PropertiesChanged says of a property: its value, that it changed, never, nothing."""


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument: its name, for people, and its one complete type."""

    name: str
    signature: str


def args(*spelled: str) -> tuple[Arg, ...]:
    """Return arguments spelled `name:signature`; raise ValueError where a type is not just one."""
    found = tuple(Arg(*each.split(":", 1)) for each in spelled)
    for arg in found:
        if len(signature_types(arg.signature)) != 1:
            raise ValueError(f"{arg.name}: {arg.signature!r} is not one complete type")
    return found


@dataclass(frozen=True, slots=True)
class Method:
    """A method. `run(request, target, *values)` returns nothing, one value, or a tuple of several
    as `gives` says; or it is a coroutine function that does.

    Descriptors among the values are closed when it is done: what is to be kept is duplicated.
    Descriptors that it returns, arguments of type `h`, pass to the service, which closes them.
    """

    name: str
    run: Callable[..., object]
    takes: tuple[Arg, ...] = ()
    gives: tuple[Arg, ...] = ()

    @property
    def in_signature(self) -> str:
        """The signature of a call's body."""
        return "".join(arg.signature for arg in self.takes)

    @property
    def out_signature(self) -> str:
        """The signature of a reply's body."""
        return "".join(arg.signature for arg in self.gives)


@dataclass(frozen=True, slots=True)
class Property:
    """A property that can be read; `get(target)` returns its value and must not wait."""

    name: str
    signature: str
    get: Callable[..., object]
    emits: Emits = "true"


@dataclass(frozen=True, slots=True)
class SignalSpec:
    """A signal that the object may emit."""

    name: str
    args: tuple[Arg, ...] = ()

    @property
    def signature(self) -> str:
        """The signature of its body."""
        return "".join(arg.signature for arg in self.args)


@dataclass(frozen=True, slots=True)
class Interface:
    """A named set of members."""

    name: str
    methods: tuple[Method, ...] = ()
    properties: tuple[Property, ...] = ()
    signals: tuple[SignalSpec, ...] = ()

    def method(self, name: str) -> Method | None:
        """Return a method by name."""
        return next((each for each in self.methods if each.name == name), None)

    def property(self, name: str) -> Property | None:
        """Return a property by name."""
        return next((each for each in self.properties if each.name == name), None)

    def signal(self, name: str) -> SignalSpec:
        """Return a signal by name; raise KeyError where it was not declared."""
        for each in self.signals:
            if each.name == name:
                return each
        raise KeyError(f"{self.name} declares no signal {name}")


_DOCTYPE = (
    '<!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"\n'
    ' "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">\n'
)
_EMITS_CHANGED = "org.freedesktop.DBus.Property.EmitsChangedSignal"


def introspection_xml(interfaces: Iterable[Interface], children: Iterable[str]) -> str:
    """Return the answer to Introspect: the interfaces of an object and the nodes right below."""
    lines = ["<node>"]
    for interface in interfaces:
        lines += [f" <interface name={quoteattr(interface.name)}>"]
        lines += [line for each in interface.methods for line in _method_xml(each)]
        lines += [line for each in interface.properties for line in _property_xml(each)]
        lines += [line for each in interface.signals for line in _signal_xml(each)]
        lines += [" </interface>"]
    lines += [f" <node name={quoteattr(child)}/>" for child in children]
    return _DOCTYPE + "\n".join([*lines, "</node>", ""])


def _method_xml(method: Method) -> list[str]:
    return [
        f"  <method name={quoteattr(method.name)}>",
        *(_arg_xml(arg, ' direction="in"') for arg in method.takes),
        *(_arg_xml(arg, ' direction="out"') for arg in method.gives),
        "  </method>",
    ]


def _property_xml(prop: Property) -> list[str]:
    return [
        f'  <property name={quoteattr(prop.name)} type={quoteattr(prop.signature)} access="read">',
        f'   <annotation name="{_EMITS_CHANGED}" value="{prop.emits}"/>',
        "  </property>",
    ]


def _signal_xml(signal: SignalSpec) -> list[str]:
    return [
        f"  <signal name={quoteattr(signal.name)}>",
        *(_arg_xml(arg, "") for arg in signal.args),
        "  </signal>",
    ]


def _arg_xml(arg: Arg, direction: str) -> str:
    return f"   <arg name={quoteattr(arg.name)} type={quoteattr(arg.signature)}{direction}/>"
