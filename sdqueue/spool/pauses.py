"""`paused`: the lanes that a person has paused, one a line, which outlive the controller."""

from collections.abc import Iterable

from sdqueue.spool.files import read_small, replace
from sdqueue.spool.layout import Spool
from sdqueue.words.names import lane_name_fault


def load(spool: Spool) -> frozenset[str]:
    """Return the names of the paused lanes; what is no lane's name there is passed over."""
    data = read_small(spool.paused_file) or b""
    lines = data.decode("utf-8", "replace").split("\n")
    return frozenset(line for line in lines if not lane_name_fault(line))


def save(spool: Spool, lanes: Iterable[str]) -> None:
    """Write the names of the paused lanes, durably."""
    text = "".join(f"{lane}\n" for lane in sorted(lanes))
    replace(spool.paused_file, text.encode(), spool.aside_dir)
