"""Where a bus is: addresses, and which one the caller means.

Knows the syntax of D-Bus addresses and the two environment variables. Unix sockets only: a queue
and its manager are on one machine.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes

from sdqueue.words.errors import BusGone, UsageError

SYSTEM_BUS_ADDRESS = "unix:path=/run/dbus/system_bus_socket"


def user_bus_address(env: Mapping[str, str]) -> str:
    """Return the address of the bus that the user's manager is on.

    XDG_RUNTIME_DIR goes first: the session bus of the other variable may be one without a manager.
    """
    if runtime_dir := env.get("XDG_RUNTIME_DIR"):
        return f"unix:path={quote(runtime_dir, safe='/')}/bus"
    if address := env.get("DBUS_SESSION_BUS_ADDRESS"):
        return address
    raise BusGone("no user bus: neither XDG_RUNTIME_DIR nor DBUS_SESSION_BUS_ADDRESS is set")


def system_bus_address(env: Mapping[str, str]) -> str:
    """Return the address of the system bus."""
    return env.get("DBUS_SYSTEM_BUS_ADDRESS") or SYSTEM_BUS_ADDRESS


def unix_sockets(address: str) -> list[bytes]:
    """Return the socket names of an address, to be tried in order, an abstract one with its NUL.

    Raise UsageError where the address is malformed or names no Unix socket.
    """
    names = [_unix_socket(each, address) for each in address.split(";") if each]
    found = [name for name in names if name]
    if not found:
        raise UsageError(f"{address!r}: only unix:path= and unix:abstract= addresses are possible")
    return found


def _unix_socket(part: str, address: str) -> bytes:
    """Return one alternative's socket name, b"" where it is of another transport."""
    transport, colon, rest = part.partition(":")
    if not colon:
        raise UsageError(f"{address!r} is not a D-Bus address")
    if transport != "unix":
        return b""
    options = dict(option.split("=", 1) for option in rest.split(",") if "=" in option)
    for key, prefix in (("path", b""), ("abstract", b"\0")):
        if value := options.get(key):
            return prefix + _unescaped(value, address)
    return b""


def _unescaped(value: str, address: str) -> bytes:
    if re.search(r"%(?![0-9A-Fa-f]{2})", value) or "\0" in value:
        raise UsageError(f"{address!r}: bad escape in a D-Bus address")
    return unquote_to_bytes(value.encode(errors="surrogateescape"))
