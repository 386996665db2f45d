"""Takes the dependency facts out of a tree's unit files: what `sdqueue.unitbase` is made of.

A fact is a line that can have a say in dependencies or in whether a unit loads, at its line number;
everything else in a file, its texts and commands, is left out. Run as a program it prints a module:

    python -m sdqueue.unitpath.facts ROOT > sdqueue/unitbase/NAME.py
"""

import base64
import os
import re
import sys
import zlib
from collections.abc import Iterator

from sdqueue.unitfile.parse import parse
from sdqueue.unitfile.unit import Setting
from sdqueue.words import unitname

DIRECTORIES = tuple(
    f"{top}/systemd/{kind}" for top in ("etc", "usr/lib") for kind in ("system", "user")
)
TEXTS = re.compile(r"^(?:Description|Documentation|X-.*|Condition.*|Assert.*|SourcePath)$")
COMMAND = re.compile(r"^Exec[A-Z]")
ANY_COMMAND = "/bin/true"
_SAID = """
    Type BusName Sockets RemainAfterExit SuccessAction Restart KillMode PAMName ExitType
    RestartForceExitStatus StandardInput StandardOutput StandardError PrivateTmp DynamicUser
    StateDirectory CacheDirectory LogsDirectory RuntimeDirectory ConfigurationDirectory Slice
    LogNamespace RootImage RootDirectory WorkingDirectory ManagedOOMSwap ManagedOOMMemoryPressure
    Service Accept BindToDevice What Where Options Unit Persistent"""
SAID = frozenset(_SAID.split())
PREFIXES = ("Listen", "On", "Path", "Directory")
WIDTH = 96


def facts_of(root: str) -> str:
    """The facts of a tree: a line for each file and link, and under a file a line for each fact."""
    lines: list[str] = []
    for directory in DIRECTORIES:
        for path in _walk(f"{root}/{directory}"):
            lines += _entry(path, path.removeprefix(f"{root}/"))
    return "\n".join(lines) + "\n"


def _walk(directory: str) -> Iterator[str]:
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        path = f"{directory}/{name}"
        if os.path.isdir(path) and not os.path.islink(path):
            yield from _walk(path)
        else:
            yield path


def _entry(path: str, shown: str) -> list[str]:
    if os.path.islink(path):
        return [f"> {shown} {os.readlink(path)}"]
    if os.path.getsize(path) == 0:
        return [f"> {shown} /dev/null"]
    name = shown.rpartition("/")[2]
    if not (unitname.is_valid(name) or name.endswith(".conf")):
        return []
    with open(path, "rb") as file:
        parsed = parse(file.read(), path)
    lines, section = [f"@ {shown}"], ""
    for setting in parsed.settings:
        kept = _kept(setting)
        if kept is not None:
            head = "" if setting.section == section else f"[{setting.section}]"
            section = setting.section
            lines.append(f"{setting.place.line}{head} {setting.key}={kept}")
    return lines


def _kept(setting: Setting) -> str | None:
    """The value as far as it is a fact, None where the line is none."""
    if setting.section in ("Unit", "Install"):
        return None if TEXTS.match(setting.key) else setting.value
    if COMMAND.match(setting.key):
        return ANY_COMMAND if setting.value else ""
    told = setting.key in SAID or setting.key.startswith(PREFIXES)
    return setting.value if told else None


def module_of(facts: str, root: str) -> str:
    """The facts as a Python module."""
    data = base64.b85encode(zlib.compress(facts.encode(), 9)).decode()
    rows = [data[at : at + WIDTH] for at in range(0, len(data), WIDTH)]
    name = _pretty_name(root)
    head = f'"""Dependency facts of {name}; made by sdqueue.unitpath.facts."""\n\n'
    return head + 'DATA = """\\\n' + "\\\n".join(rows) + '"""\n'


def _pretty_name(root: str) -> str:
    with open(f"{root}/etc/os-release") as file:
        found = re.search(r'^PRETTY_NAME="?([^"\n]+)', file.read(), re.M)
    return found.group(1) if found else "a tree"


if __name__ == "__main__":
    sys.stdout.write(module_of(facts_of(sys.argv[1].rstrip("/")), sys.argv[1].rstrip("/")))
