"""What a DRM driver says of one client: the `drm-` keys of /proc/PID/fdinfo/FD. Pure.

Knows the kernel's drm-usage-stats and how drivers differ: amdgpu, i915 and amdxdna count an
engine's nanoseconds, xe its cycles out of all; the newer kernels say which memory is resident, the
older ones only how much there is. Keys come and go, and some drivers say nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sdqueue.owners.sighting import Engine

UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
NOT_ON_DEVICE = frozenset({"cpu"})
"""Regions whose memory a client has given back to the processor."""
MEMORY_KEYS = ("drm-resident-", "drm-memory-", "drm-total-")
"""Who says how much memory a region has, the most exact first."""

ClientId = tuple[str, str]
"""A device and the number of a client of it: the same for all descriptors that share it."""


@dataclass(frozen=True, slots=True)
class DrmClient:
    """One client of a DRM device. `memory_bytes` is None where its driver does not tell."""

    driver: str
    device: str
    number: str
    memory_bytes: int | None
    engines: Mapping[str, Engine]

    @property
    def id(self) -> ClientId:
        return self.device, self.number

    @property
    def is_mute(self) -> bool:
        """Say whether its driver tells nothing of what it does."""
        return self.memory_bytes is None and not self.engines


def parse(text: str) -> DrmClient | None:
    """Read the file of a descriptor; None where it is no DRM device's."""
    pairs = dict(_pairs(text))
    if "drm-driver" not in pairs:
        return None
    return DrmClient(
        driver=pairs["drm-driver"],
        device=pairs.get("drm-pdev", ""),
        number=pairs.get("drm-client-id", ""),
        memory_bytes=_memory(pairs),
        engines=_engines(pairs),
    )


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    for line in text.split("\n"):
        key, colon, value = line.partition(":")
        if colon and key.startswith("drm-"):
            yield key, value.strip()


def _memory(pairs: Mapping[str, str]) -> int | None:
    """Add up the regions, each as the most exact key has it; None where there is no region."""
    regions: dict[str, int] = {}
    for prefix in MEMORY_KEYS:
        for key, value in pairs.items():
            region = key.removeprefix(prefix)
            if region == key or region.startswith("cycles-") or region in regions:
                continue
            if (size := _number(value)) is not None:
                regions[region] = size
    on_device = [size for region, size in regions.items() if region not in NOT_ON_DEVICE]
    return sum(on_device) if regions else None


def _engines(pairs: Mapping[str, str]) -> dict[str, Engine]:
    found: dict[str, Engine] = {}
    for key, value in pairs.items():
        busy = _number(value)
        if busy is None:
            continue
        if key.startswith("drm-cycles-"):
            name = key.removeprefix("drm-cycles-")
            total = _number(pairs.get(f"drm-total-cycles-{name}", ""))
            if total:  # without it a number of cycles is no share of anything
                found[name] = Engine(busy, total, _capacity(pairs, name))
        elif key.startswith("drm-engine-") and not key.startswith("drm-engine-capacity-"):
            name = key.removeprefix("drm-engine-")
            found.setdefault(name, Engine(busy, 0, _capacity(pairs, name)))
    return found


def _capacity(pairs: Mapping[str, str], name: str) -> int:
    return max(1, _number(pairs.get(f"drm-engine-capacity-{name}", "")) or 1)


def _number(text: str) -> int | None:
    """Read `123`, `123 ns`, `12 KiB`; None where it is none of these."""
    digits, _, unit = text.partition(" ")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 20:
        return None
    return int(digits) * UNITS.get(unit.strip(), 1)
