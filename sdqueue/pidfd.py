"""Descriptors of processes: whether the one that a descriptor stands for has ended.

A pid comes round; a descriptor of a process does not. What was read by pid is of that process if
its descriptor says afterwards that it has not ended.
"""

import select


def has_ended(pidfd: int) -> bool:
    """Say whether the process has ended; one that nobody has collected yet has."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
