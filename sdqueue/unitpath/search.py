"""In which directories a manager looks for units, by scope and version.

Tables and a little joining; looks at nothing. Re-enacts lookup_paths_init(),
src/libsystemd/sd-path/path-lookup.c, v257 (src/basic in v252).
"""

from collections.abc import Mapping

from sdqueue.unitfile.directives_data import VERSIONS

# Each with the first version that looks there and the first that does not any more.
Places = tuple[tuple[str, int, int], ...]
_EVER = 1 << 30


def _always(*paths: str) -> Places:
    return tuple((path, 0, _EVER) for path in paths)


SYSTEM: Places = (
    *_always(
        "/etc/systemd/system.control",
        "/run/systemd/system.control",
        "/run/systemd/transient",
        "/run/systemd/generator.early",
        "/etc/systemd/system",
        "/etc/systemd/system.attached",
        "/run/systemd/system",
        "/run/systemd/system.attached",
        "/run/systemd/generator",
        "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system",
    ),
    ("/lib/systemd/system", 0, 255),
    *_always("/run/systemd/generator.late"),
)
USER: Places = (
    *_always(
        "{config_home}/systemd/user.control",
        "{runtime}/systemd/user.control",
        "{runtime}/systemd/transient",
        "{runtime}/systemd/generator.early",
        "{config_home}/systemd/user",
    ),
    ("{config_home}/systemd/user.attached", 258, _EVER),
    ("{config_dirs}/systemd/user", 0, _EVER),
    *_always("/etc/systemd/user", "{runtime}/systemd/user"),
    ("{runtime}/systemd/user.attached", 258, _EVER),
    *_always(
        "/run/systemd/user",
        "{runtime}/systemd/generator",
        "{data_home}/systemd/user",
        "{data_dirs}/systemd/user",
        "/usr/local/lib/systemd/user",
        "/usr/local/share/systemd/user",
        "/usr/lib/systemd/user",
        "/usr/share/systemd/user",
        "{runtime}/systemd/generator.late",
    ),
)
# From v257 on the configuration directories of XDG count only where the environment names them.
XDG_CONFIG_DIRS_UNTIL = 257
NEWEST = VERSIONS[-1]
GENERATORS = ("generator.early", "generator", "generator.late")
CONFIG = {False: "/etc/systemd/system", True: "/etc/systemd/user"}


def search_path(
    root: str = "",
    *,
    user: bool = False,
    generators: str | None = None,
    environ: Mapping[str, str] | None = None,
    version: int = NEWEST,
) -> tuple[str, ...]:
    """Return the unit directories, highest priority first, each with `root` in front.

    `generators` is a directory that stands in for /run/systemd, holding `generator.early`,
    `generator` and `generator.late`; no root is put in front of it. `environ` is looked at for
    SYSTEMD_UNIT_PATH (a ":" at its end appends the built-in list) and, for `user`, the XDG
    directories.
    """
    env = environ or {}
    given = env.get("SYSTEMD_UNIT_PATH")
    paths = [each for each in (given or "").split(":") if each]
    if given is None or given.endswith(":"):
        places = USER if user else SYSTEM
        built_in = [path for path, since, until in places if since <= version < until]
        paths += _filled(built_in, env, version) if user else built_in
    root = root.rstrip("/")
    return tuple(dict.fromkeys(_placed(each, root, generators) for each in paths))


def _placed(path: str, root: str, generators: str | None) -> str:
    name = path.rpartition("/")[2]
    if generators and name in GENERATORS:
        return f"{generators.rstrip('/')}/{name}"
    return f"{root}{path}"


def _filled(paths: list[str], env: Mapping[str, str], version: int) -> list[str]:
    """Put a user's directories into the table's paths; what is not known is left out."""
    home = env.get("HOME", "/root")
    default = "/etc/xdg" if version < XDG_CONFIG_DIRS_UNTIL else ""
    words = {
        "{config_home}": env.get("XDG_CONFIG_HOME") or f"{home}/.config",
        "{data_home}": env.get("XDG_DATA_HOME") or f"{home}/.local/share",
        "{runtime}": env.get("XDG_RUNTIME_DIR") or "",
        "{config_dirs}": env.get("XDG_CONFIG_DIRS") or default,
        "{data_dirs}": env.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share",
    }
    found: list[str] = []
    for path in paths:
        word, slash, rest = path.partition("/")
        starts = words[word].split(":") if word in words else [word]
        found += [f"{start}{slash}{rest}" for start in starts if start or not word]
    return found
