"""Real parts to test against: a private user manager, booted containers, and what they stand on.

manager.py    a private `systemd --user` with its own bus and journal
container.py  a booted container with systemd 252, 257 or 262 as PID 1
sandbox.py    namespaces and a cgroup whose end is bound to this process (both stand on it)
waiting.py    waiting for what is seen from outside; running a coroutine under watch
leftovers.py  what a test left behind
tools.py      what this machine offers, and what the word "required" means

Nothing in here knows sdqueue's code, so that it can judge it; all of it works outside pytest too.
"""
