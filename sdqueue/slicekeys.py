"""Which settings a lane's slice may carry, and what their values may look like.

Everything written into a unit file from a configuration passes through here: a name that is not in
the table, or a value that its reader does not know, is refused, so that no value can end its line.
"""

from collections.abc import Callable

from sdqueue.words.names import did_you_mean, shown
from sdqueue.words.spans import INFINITY_USEC, parse_percent, parse_size, parse_timespan

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/:._-*+, ~@")


def _weight(text: str) -> None:
    if text != "idle" and not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 10000):
        raise ValueError(f"{shown(text)} is not 1 to 10000, or idle")


def _io_weight(text: str) -> None:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 10000):
        raise ValueError(f"{shown(text)} is not 1 to 10000")


def _quota(text: str) -> None:
    number = text.removesuffix("%")
    if not (text.endswith("%") and number.isascii() and number.isdecimal() and int(number[:9])):
        raise ValueError(f"{shown(text)} is no share of one CPU, such as 150%")


def _memory(text: str) -> None:
    if text == "infinity":
        return
    if text.endswith("%"):
        parse_percent(text)
    else:
        parse_size(text)


def _tasks(text: str) -> None:
    if text.endswith("%"):
        parse_percent(text)
    elif text != "infinity" and not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{shown(text)} is no number of tasks")


def _span(text: str) -> None:
    if parse_timespan(text) in (0, INFINITY_USEC):
        raise ValueError(f"{shown(text)} is no period")


def _boolean(text: str) -> None:
    if text not in ("yes", "no", "true", "false", "on", "off", "1", "0"):
        raise ValueError(f"{shown(text)} is neither yes nor no")


def _one_of(*words: str) -> Callable[[str], None]:
    def read(text: str) -> None:
        if text not in words:
            raise ValueError(f"{shown(text)} is none of {', '.join(words)}")

    return read


def _percent(text: str) -> None:
    parse_percent(text)


def _words(text: str) -> None:
    if not text or not _PLAIN.issuperset(text) or text != text.strip():
        raise ValueError(f"{shown(text)} has characters that do not belong into such a setting")


_OOM = _one_of("auto", "kill")
SLICE_KEYS: dict[str, Callable[[str], None]] = {
    "AllowedCPUs": _words,
    "AllowedMemoryNodes": _words,
    "CPUAccounting": _boolean,
    "CPUQuota": _quota,
    "CPUQuotaPeriodSec": _span,
    "CPUWeight": _weight,
    "StartupCPUWeight": _weight,
    "DeviceAllow": _words,
    "DevicePolicy": _one_of("auto", "closed", "strict"),
    "IOAccounting": _boolean,
    "IODeviceLatencyTargetSec": _words,
    "IODeviceWeight": _words,
    "IOReadBandwidthMax": _words,
    "IOReadIOPSMax": _words,
    "IOWeight": _io_weight,
    "IOWriteBandwidthMax": _words,
    "IOWriteIOPSMax": _words,
    "IPAccounting": _boolean,
    "IPAddressAllow": _words,
    "IPAddressDeny": _words,
    "ManagedOOMMemoryPressure": _OOM,
    "ManagedOOMMemoryPressureLimit": _percent,
    "ManagedOOMPreference": _one_of("none", "avoid", "omit"),
    "ManagedOOMSwap": _OOM,
    "MemoryAccounting": _boolean,
    "MemoryHigh": _memory,
    "MemoryLow": _memory,
    "MemoryMax": _memory,
    "MemoryMin": _memory,
    "MemorySwapMax": _memory,
    "MemoryZSwapMax": _memory,
    "RestrictNetworkInterfaces": _words,
    "TasksAccounting": _boolean,
    "TasksMax": _tasks,
}


def check_slice_setting(name: str, text: str) -> None:
    """Raise ValueError unless `name=text` may stand in a lane's slice."""
    read = SLICE_KEYS.get(name)
    if read is None:
        if name.startswith("Concurrency"):
            raise ValueError(f"{name} is written from the lane's slots; set slots")
        near = did_you_mean(name, list(SLICE_KEYS))
        raise ValueError(f"{shown(name)} is no setting of a lane's slice{near}")
    if not text.isprintable() or text.endswith("\\"):
        raise ValueError(f"{shown(text)} does not end with its line")
    read(text)
