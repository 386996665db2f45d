"""Where the configuration lies, and reading it: `sdqueue.toml`, then its drop-ins by name."""

import os
from collections.abc import Mapping

from sdqueue.config import load
from sdqueue.core.lane import Config
from sdqueue.words.problem import Problem

SYSTEM_DIR = "/etc/sdqueue"


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
    texts: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for file in config_files(config_dir(environ, system=system)):
        try:
            with open(file, encoding="utf-8") as stream:
                texts.append((file, stream.read()))
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(file, 0, f"it can't be read: {error}"))
    return _loaded(texts, problems)


def _loaded(
    texts: list[tuple[str, str]], problems: list[Problem]
) -> tuple[Config, tuple[Problem, ...]]:
    loaded = load(texts)
    return loaded.config, (*problems, *loaded.problems)
