"""What the objects on the bus have in common: names, paths, what a client can ask for, and rows.

Rows travel as a{sv}; a value that does not apply is left out.
"""

from collections.abc import Iterable, Mapping

from sdqueue.bus.wire import Variant

NAME = "org.sdqueue1"
PATH = "/org/sdqueue1"
MANAGER = f"{NAME}.Manager"
LANE = f"{NAME}.Lane"
LANES = f"{PATH}/lane"
JOB = f"{NAME}.Job"
JOBS = f"{PATH}/job"
LEASE = f"{NAME}.Lease"
LEASES = f"{PATH}/lease"
FEATURES = ("list", "why", "plan", "cancel", "pause", "events", "lanes", "jobs", "owners", "leases")
"""What a client can ask for by name, and fail closed where it is missing."""


def row(values: Mapping[str, object]) -> dict[str, Variant]:
    """Give a row as a{sv}."""
    return {key: _variant(value) for key, value in values.items() if value is not None}


def rows(found: Iterable[Mapping[str, object]]) -> list[dict[str, Variant]]:
    """Give rows as aa{sv}."""
    return [row(each) for each in found]


_INT64 = range(-(2**63), 2**63)


def _variant(value: object) -> Variant:
    if isinstance(value, int) and value not in _INT64:  # a driver's counter may be any number
        value = max(_INT64[0], min(value, _INT64[-1]))
    for kind, signature in _SIGNATURES:
        if isinstance(value, kind):
            return Variant(signature, row(value) if isinstance(value, dict) else value)
    raise TypeError(f"no D-Bus type for {value!r}")


_SIGNATURES: tuple[tuple[type, str], ...] = (
    (bool, "b"),
    (int, "x"),
    (float, "d"),
    (str, "s"),
    (list, "as"),
    (dict, "a{sv}"),
)
