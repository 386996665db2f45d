"""What systemd-getty-generator makes of the consoles of a machine: login prompts on serial lines.

Re-enacts src/getty-generator/getty-generator.c, v252. Differs: which consoles there are is a
parameter; nobody looks whether they can be opened.
"""

import re

from sdqueue.unitfile.fstab import LIB, Generated
from sdqueue.words import unitname

TARGET = "getty.target"
_VIRTUAL = re.compile(r"tty[0-9]+")
_PTY = re.compile(r"(?:/dev/)?pts/(.+)")


def getty(consoles: tuple[str, ...], *, container: bool = False, ptys: str = "") -> Generated:
    """Return the links for the kernel's consoles ("ttyS0"), or for a container.

    `ptys` is what the container manager puts into $container_ttys.
    """
    out = Generated()
    if container:
        out.link(TARGET, "wants", f"{LIB}/console-getty.service")
        found = (_PTY.fullmatch(word) for word in ptys.split())
        for tty in (each.group(1) for each in found if each):
            _instance(out, "container-getty", tty)
        return out
    for tty in consoles:
        if not _VIRTUAL.fullmatch(tty):
            _instance(out, "serial-getty", tty)
    return out


def _instance(out: Generated, prefix: str, tty: str) -> None:
    name = unitname.build(prefix, unitname.path_escape(tty), "service")
    out.link(TARGET, "wants", f"{LIB}/{prefix}@.service", name)
