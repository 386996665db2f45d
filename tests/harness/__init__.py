"""Real parts to test against: a private user manager, booted containers, and what they stand on.

manager.py    a private `systemd --user` with its own bus and journal, or the caller's own
container.py  a booted container with systemd 252, 257 or 262 as PID 1
images.py     what containers boot from, made once
sandbox.py    namespaces and a cgroup whose end is bound to this process; keeper.py holds them
loop.py       running a coroutine under watch
leftovers.py  what a test left behind
waiting.py    waiting for what is seen only from outside; notify.py: for what says READY=1
tools.py      what this machine offers, and what the word "needed" means

These know nothing of sdqueue's code, so that they can judge it, and all but tools.py work outside
pytest too.
"""
