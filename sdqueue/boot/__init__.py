"""Floor 2: what PID 1 does with loaded units, re-enacted as pure functions.

Knows dependencies, unit jobs and the steps of a transaction. Must not know files, the bus, or what
anybody thinks of the result: judging is `sdqueue.lint`'s.
"""
