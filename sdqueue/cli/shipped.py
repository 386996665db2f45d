"""What an installation consists of: each file's content and its place. Writes nothing.

Units, generators, policy and pages come from `sdqueue/share`, which is links in a checkout and
files in a wheel. What depends on the machine is where the program and its library are.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import sdqueue
from sdqueue.cli.completion import SCRIPTS
from sdqueue.generate import exec_word
from sdqueue.words.errors import SdqueueError, UsageError

SHARE = f"{os.path.dirname(os.path.abspath(sdqueue.__file__))}/share"
PREFIXES = ("/usr/local", "/usr")
"""Where systemd, D-Bus and man look by themselves."""
SERVICE = "sdqueue.service"
GENERATOR = "sdqueue-generator"
POLICY = "org.sdqueue1.conf"
ACTIONS = "org.sdqueue1.policy"
ACTIONS_DIR = "/usr/share/polkit-1/actions"
"""The only place where every polkit looks."""
_FOUND_BY_SYSTEMD = frozenset(f"{prefix}/{name}" for prefix in PREFIXES for name in ("bin", "sbin"))
_COMPLETIONS = {
    "bash": "bash-completion/completions/sdqueue",
    "zsh": "zsh/site-functions/_sdqueue",
    "fish": "fish/vendor_completions.d/sdqueue.fish",
}


class Put(NamedTuple):
    """One file of an installation; `file` is without the root."""

    file: str
    data: bytes
    mode: int = 0o644


class Target(NamedTuple):
    """Whose installation, below which root, and where the program will be when it runs.

    `prefix` is that of the machine, or a user's data home.
    """

    system: bool
    root: str
    prefix: str
    program: str

    @property
    def sides(self) -> tuple[str, ...]:
        """The managers whose units are installed: the machine's users may have queues too."""
        return ("system", "user") if self.system else ("user",)

    def unit_dir(self, side: str) -> str:
        """Name the directory of a manager's units."""
        return f"{self.prefix}/{'lib/' if self.system else ''}systemd/{side}"

    @property
    def share_dir(self) -> str:
        """Name the directory of pages and completions."""
        return f"{self.prefix}/share" if self.system else self.prefix


def target_for(
    environ: Mapping[str, str], *, system: bool, root: str, prefix: str, program: str
) -> Target:
    """Return the target that these words of the command line mean, or raise UsageError."""
    if system and (prefix or PREFIXES[0]) not in PREFIXES:
        raise UsageError(f"--prefix: systemd looks below {' and '.join(PREFIXES)} only")
    if prefix and not system:
        raise UsageError("--prefix is for --system; a user's files go below XDG_DATA_HOME")
    top = f"{os.path.abspath(root)}".rstrip("/") if root else ""
    where = (prefix or PREFIXES[0]) if system else _data_home(environ)
    return Target(system, top, where, program or own_program())


def _data_home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME") or os.path.expanduser("~")
    base = environ.get("XDG_DATA_HOME", "")
    return base if base.startswith("/") else f"{home}/.local/share"


def own_program() -> str:
    """Return the absolute path of the `sdqueue` that this is."""
    beside = os.path.join(os.path.dirname(sys.executable), "sdqueue")
    for file in (sys.argv[0], beside, shutil.which("sdqueue") or ""):
        if os.path.basename(file) == "sdqueue" and os.access(file, os.X_OK):
            return os.path.abspath(file)
    raise UsageError("there is no program sdqueue to be started; name it with --program")


def files(target: Target) -> list[Put]:
    """Return all that belongs to the installation."""
    return [
        *_units(target),
        *(_generators(target) if target.system else ()),
        *(_policy(target) if target.system else ()),
        *_pages(target),
        *_completions(target),
    ]


def _units(target: Target) -> Iterator[Put]:
    for side in target.sides:
        directory = target.unit_dir(side)
        yield Put(f"{directory}/{SERVICE}", _read(f"units/{side}/{SERVICE}"))
        if os.path.dirname(target.program) not in _FOUND_BY_SYSTEMD:
            yield Put(f"{directory}/{SERVICE}.d/10-program.conf", _dropin(target.program, side))


def _dropin(program: str, side: str) -> bytes:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    environment.filters["exec_word"] = exec_word
    template = environment.from_string(_read("units/templates/10-program.conf.in").decode())
    return template.render(program=program, side=side).encode()


def _generators(target: Target) -> Iterator[Put]:
    text = _read(f"generators/{GENERATOR}").decode()
    library = os.path.dirname(os.path.dirname(SHARE))
    if target.root and library.startswith(f"{target.root}/"):
        library = library.removeprefix(target.root)
    first, _, rest = text.partition("\n")
    interpreter = f"#!{os.path.realpath(sys.executable)}"
    for name, value in (("LIBRARY", library), ("PROGRAM", target.program)):
        empty = f'\n{name} = ""\n'
        if empty not in rest:
            raise SdqueueError(f"{SHARE}/generators/{GENERATOR} has no line for {name}")
        rest = rest.replace(empty, f"\n{name} = {value!r}\n")
    rendered = f"{interpreter} {first.split(' ', 1)[1]}\n{rest}".encode()
    for side in target.sides:
        yield Put(f"{target.prefix}/lib/systemd/{side}-generators/{GENERATOR}", rendered, 0o755)


def _policy(target: Target) -> Iterator[Put]:
    directory = "/usr/share/dbus-1/system.d" if target.prefix == "/usr" else "/etc/dbus-1/system.d"
    yield Put(f"{directory}/{POLICY}", _read(f"units/dbus-1/{POLICY}"))
    yield Put(f"{ACTIONS_DIR}/{ACTIONS}", _read(f"units/polkit-1/{ACTIONS}"))


def _pages(target: Target) -> Iterator[Put]:
    for name in sorted(os.listdir(f"{SHARE}/man")):
        section = name.rpartition(".")[2]
        if section.isdecimal():
            yield Put(f"{target.share_dir}/man/man{section}/{name}", _read(f"man/{name}"))


def _completions(target: Target) -> Iterator[Put]:
    for shell, place in _COMPLETIONS.items():
        yield Put(f"{target.share_dir}/{place}", SCRIPTS[shell].encode())


def _read(name: str) -> bytes:
    try:
        with open(f"{SHARE}/{name}", "rb") as file:
            return file.read()
    except OSError as error:
        raise SdqueueError(
            f"this installation of sdqueue is not complete: {error.filename}: {error.strerror}"
        ) from None
