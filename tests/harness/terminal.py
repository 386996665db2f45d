"""A terminal as a stand-in for a device: one whose number no other terminal of the box has.

Each container numbers its terminals from 0 on, and the kernel tells two of one number apart by
nothing that a device's number says. So one is taken that lies above all that others use.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

ABOVE = 100


@contextmanager
def lone_terminal() -> Iterator[str]:
    """Give the path of a terminal that nobody has open."""
    pairs: list[tuple[int, int]] = []
    name = ""
    try:
        while int(os.path.basename(name) or -1) < ABOVE:
            pairs.append(os.openpty())
            name = os.ttyname(pairs[-1][1])
        for master, slave in pairs:
            os.close(slave)
            if master != pairs[-1][0]:
                os.close(master)
        yield name
    finally:
        os.close(pairs[-1][0])
