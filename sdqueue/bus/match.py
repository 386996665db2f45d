"""Signals, the rules that say which of them are wanted, and who then gets them.

Touches no connection. Knows the text of a match rule and how to ask the same question here: the bus
sends a signal once however many of our rules it fits, and sends what is addressed to us without any
rule at all, so each rule is applied again to what arrives.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sdqueue.bus.header import Header

log = logging.getLogger(__name__)

BUS_NAME = "org.freedesktop.DBus"


class Signal:
    """One signal; `sender` is a unique name, put there by the bus and so beyond forgery.

    `body` is unmarshalled when it is first looked at; ValueError then, where that is impossible.
    """

    __slots__ = ("_arg0", "_body", "_read_body", "interface", "member", "path", "sender")

    def __init__(self, header: Header, read_body: Callable[[], tuple[object, ...]]) -> None:
        self.sender = header.sender
        self.path = header.path
        self.interface = header.interface
        self.member = header.member
        self._arg0 = header.arg0
        self._read_body = read_body
        self._body: tuple[object, ...] | None = None

    @property
    def body(self) -> tuple[object, ...]:
        """The values that came with it."""
        if self._body is None:
            self._body = self._read_body()
        return self._body

    @property
    def arg0(self) -> str | None:
        """The first value if it is a string; does not need the body."""
        return self._arg0


@dataclass(frozen=True, slots=True)
class Match:
    """Which signals are wanted; "" is any. `sender` may be a well-known name."""

    sender: str = ""
    interface: str = ""
    member: str = ""
    path: str = ""
    path_namespace: str = ""
    arg0: str = ""

    def rule(self) -> str:
        """Return the rule as AddMatch takes it."""
        keys = ("sender", "interface", "member", "path", "path_namespace", "arg0")
        wanted = [(key, getattr(self, key)) for key in keys if getattr(self, key)]
        return ",".join(f"{key}={_quoted(value)}" for key, value in [("type", "signal"), *wanted])

    def accepts(self, signal: Signal, owner: str) -> bool:
        """Tell whether the signal fits, where `owner` is who owns `sender` now ("": nobody)."""
        return (
            (not self.sender or (owner != "" and signal.sender == owner))
            and (not self.member or signal.member == self.member)
            and (not self.interface or signal.interface == self.interface)
            and (not self.path or signal.path == self.path)
            and (not self.path_namespace or _is_below(signal.path, self.path_namespace))
            and (not self.arg0 or signal.arg0 == self.arg0)
        )


def _quoted(value: str) -> str:
    """Quote a rule's value; an apostrophe can only stand outside the quotes."""
    return "'" + value.replace("'", "'\\''") + "'"


def _is_below(path: str, namespace: str) -> bool:
    return path == namespace or namespace == "/" or path.startswith(namespace + "/")


SignalHandler = Callable[[Signal], None]


class Listeners:
    """Handlers by rule, and the owners of the names that the rules speak of.

    `owners` holds the unique name of each well-known sender, "" where nobody owns it; it is kept
    by whoever sees the owner change. What an unknown owner sends is nobody's.
    """

    def __init__(self) -> None:
        self.owners = {BUS_NAME: BUS_NAME}
        self._handlers: dict[Match, list[SignalHandler]] = {}

    def add(self, match: Match, handler: SignalHandler) -> bool:
        """Register a handler; return whether its rule is new, so that the bus must be told."""
        handlers = self._handlers.setdefault(match, [])
        handlers.append(handler)
        return len(handlers) == 1

    def remove(self, match: Match, handler: SignalHandler) -> bool:
        """Take a handler away; return whether its rule is needed no longer."""
        handlers = self._handlers[match]
        handlers.remove(handler)
        if not handlers:
            del self._handlers[match]
        return not handlers

    def dispatch(self, signal: Signal) -> None:
        """Call all handlers that the signal is for, in the order in which they were added."""
        for match, handlers in list(self._handlers.items()):
            if match.accepts(signal, self._owner(match.sender)):
                for handler in list(handlers):
                    _run(handler, signal)

    def _owner(self, sender: str) -> str:
        return sender if sender.startswith(":") else self.owners.get(sender, "")


def _run(handler: SignalHandler, signal: Signal) -> None:
    try:
        handler(signal)
    except Exception:
        log.exception("a handler of the signal %s.%s failed", signal.interface, signal.member)
