"""One thread for all work on disk, put in front of PYTHONPATH by tests/bus/crash_scenario.py.

strace counts system calls for each thread; with one thread the N-th call is the same every time.
"""

import concurrent.futures.thread as pool

_initialize = pool.ThreadPoolExecutor.__init__


def _with_one_thread(self, _max_workers=None, *rest, **options):  # type: ignore[no-untyped-def]
    _initialize(self, 1, *rest, **options)


pool.ThreadPoolExecutor.__init__ = _with_one_thread  # type: ignore[method-assign, assignment]
