"""Where the configuration lies, and reading it: `sdqueue.toml`, then its drop-ins by name.

The generator reads it while the machine boots, so nothing here may block or take all memory,
whatever lies at these places, and where there is no file nothing that parses one is loaded.
"""

import os
import stat
from collections.abc import Mapping

from sdqueue.core.lane import Config
from sdqueue.words.problem import Problem

SYSTEM_DIR = "/etc/sdqueue"
FILE_MAX_BYTES = 1 << 20


def config_dir(environ: Mapping[str, str], *, system: bool) -> str:
    """Name the directory of the configuration."""
    if system:
        return SYSTEM_DIR
    home = environ.get("HOME") or os.path.expanduser("~")
    base = environ.get("XDG_CONFIG_HOME", "")
    return f"{base if base.startswith('/') else f'{home}/.config'}/sdqueue"


def config_files(directory: str) -> list[str]:
    """List the files that count, in the order in which they are read."""
    dropins = f"{directory}/sdqueue.toml.d"
    try:
        names = sorted(name for name in os.listdir(dropins) if name.endswith(".toml"))
    except OSError:
        names = []
    return [f"{directory}/sdqueue.toml", *(f"{dropins}/{name}" for name in names)]


def read_config(environ: Mapping[str, str], *, system: bool) -> tuple[Config, tuple[Problem, ...]]:
    """Read the configuration; where it has an error, the default lanes and what is wrong."""
    config, problems, _ = read_config_in(config_dir(environ, system=system))
    return config, problems


def read_config_in(directory: str) -> tuple[Config, tuple[Problem, ...], tuple[str, ...]]:
    """Read the configuration of a directory; the third are the files that were read."""
    contents: list[tuple[str, bytes]] = []
    problems: list[Problem] = []
    for file in config_files(directory):
        try:
            contents.append((file, read_plain(file, FILE_MAX_BYTES)))
        except FileNotFoundError:
            continue
        except OSError as error:
            why = error.strerror or error
            problems.append(Problem(file, 0, f"it can't be read: {why}"))
    if not contents:
        return Config(), tuple(problems), ()
    from sdqueue.config import load

    loaded = load(contents)
    files = tuple(file for file, _ in contents)
    return loaded.config, (*problems, *loaded.problems), files


def read_plain(file: str, limit_bytes: int) -> bytes:
    """Return a file's content, or raise OSError: also for what is no file, or larger than that."""
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "it is no regular file")
        parts: list[bytes] = []
        left = limit_bytes + 1
        while left > 0 and (part := os.read(fd, left)):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(fd)
    if left <= 0:
        raise OSError(0, f"it is larger than {limit_bytes} bytes")
    return b"".join(parts)
