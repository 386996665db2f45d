"""The devices of a lane as the kernel lists them: how much memory is in use, and who sleeps.

Nothing here wakes a device: whether it sleeps is read first, and how busy it is never, since that
number is one of the whole device, and reading it wakes it.
"""

from collections.abc import Iterable
from contextlib import suppress

from sdqueue.core.lane import Lane
from sdqueue.owners.box import Box, Node
from sdqueue.owners.sighting import GIB, Gauge, Report

DRM = "/sys/class/drm"
SMALL_BYTES = 2 * GIB
"""A device with less memory of its own computes in the box's memory."""
POOLS = ("vram", "gtt")


def look(box: Box, lane: Lane) -> Report:
    """Read how much memory of the lane's devices is in use."""
    read = [(node.path, gauge(box, node.path)) for node in drm_nodes(box, lane)]
    told = {each.device: each for _, each in read if each}
    return Report(
        measured=frozenset(path for path, each in read if each), gauges=tuple(told.values())
    )


def gauge(box: Box, node: str) -> Gauge | None:
    """Read a node's device; None where it sleeps, or its driver does not tell."""
    card = _card(box, node)
    return None if sleeps(box, card) else _gauge(box, card)


def drm_nodes(box: Box, lane: Lane) -> list[Node]:
    """Return the lane's nodes that are of the kernel's graphics stack."""
    return [node for node in box.nodes(lane) if node.path.startswith("/dev/dri/")]


def family(box: Box, nodes: Iterable[Node]) -> list[Node]:
    """Add the other nodes of the same devices: a compositor has card0 open, not renderD128."""
    found = {node.path: node for node in nodes}
    for node in list(found.values()):
        name = node.path.rpartition("/")[2]
        if not node.path.startswith("/dev/dri/"):
            continue
        with suppress(OSError):
            for other in box.names(f"{DRM}/{name}/device/drm"):
                if other.startswith(("card", "renderD")) and "-" not in other:
                    sibling = box.node(f"/dev/dri/{other}")
                    if sibling:
                        found.setdefault(sibling.path, sibling)
    return list(found.values())


def _card(box: Box, node: str) -> str:
    """Return the directory of a node's device; all its nodes have the same."""
    device = f"{DRM}/{node.rpartition('/')[2]}/device"
    slot = box.link(device)
    by_slot = f"/sys/bus/pci/devices/{slot}"
    return by_slot if slot and _is_there(box, by_slot) else device


def _is_there(box: Box, directory: str) -> bool:
    try:
        return bool(box.names(directory))
    except OSError:
        return False


def sleeps(box: Box, device: str) -> bool:
    """Say whether a device is switched off until somebody needs it."""
    with suppress(OSError):
        return box.read(f"{device}/power/runtime_status").strip() == "suspended"
    return False


def _gauge(box: Box, device: str) -> Gauge | None:
    """Read one device; None where its driver does not tell."""
    used = [box.number(f"{device}/mem_info_{pool}_used") for pool in POOLS]
    if used[0] is None:
        return None
    name = device.rpartition("/")[2] if device.startswith("/sys/bus") else device
    return Gauge(name, sum(filter(None, used)), _total(box, device))


def _total(box: Box, device: str) -> int:
    """Say how large a device's memory is; the box's own counts where it has next to none."""
    vram, gtt = (box.number(f"{device}/mem_info_{pool}_total") or 0 for pool in POOLS)
    return vram if vram >= SMALL_BYTES else vram + gtt


def sizes(box: Box, lane: Lane) -> dict[str, int]:
    """Say how large the devices are, by their slot."""
    return {each.device: each.total_bytes for each in look(box, lane).gauges}


def amd_bytes(box: Box) -> int:
    """Say how large the smallest device is that tells its size; 0 if none does."""
    cards: list[str] = []
    with suppress(OSError):
        cards = [name for name in box.names(DRM) if name.startswith("renderD")]
    totals = [_total(box, f"{DRM}/{card}/device") for card in cards]
    return min(filter(None, totals), default=0)
