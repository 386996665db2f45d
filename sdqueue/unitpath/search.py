"""In which directories a manager looks for units, by scope and version.

Tables and a little joining; looks at nothing. Re-enacts lookup_paths_init(),
src/libsystemd/sd-path/path-lookup.c, v257 (src/basic in v252).
"""

from collections.abc import Mapping

CONTROL_RUNTIME = ("/run/systemd/system.control", "/run/systemd/transient")
SYSTEM = (
    "/etc/systemd/system.control",
    *CONTROL_RUNTIME,
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
USER = (
    "{config_home}/systemd/user.control",
    "{runtime}/systemd/user.control",
    "{runtime}/systemd/transient",
    "{runtime}/systemd/generator.early",
    "{config_home}/systemd/user",
    "{config_dirs}/systemd/user",
    "/etc/systemd/user",
    "{runtime}/systemd/user",
    "/run/systemd/user",
    "{runtime}/systemd/generator",
    "{data_home}/systemd/user",
    "{data_dirs}/systemd/user",
    "/usr/local/share/systemd/user",
    "/usr/share/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
    "{runtime}/systemd/generator.late",
)
GENERATORS = ("generator.early", "generator", "generator.late")
CONFIG = {False: "/etc/systemd/system", True: "/etc/systemd/user"}


def search_path(
    root: str = "",
    *,
    user: bool = False,
    generators: str | None = None,
    environ: Mapping[str, str] | None = None,
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
        paths += _user(env) if user else SYSTEM
    root = root.rstrip("/")
    return tuple(dict.fromkeys(_placed(each, root, generators) for each in paths))


def _placed(path: str, root: str, generators: str | None) -> str:
    name = path.rpartition("/")[2]
    if generators and name in GENERATORS:
        return f"{generators.rstrip('/')}/{name}"
    return f"{root}{path}"


def _user(env: Mapping[str, str]) -> list[str]:
    home = env.get("HOME", "/root")
    one = {
        "config_home": env.get("XDG_CONFIG_HOME") or f"{home}/.config",
        "data_home": env.get("XDG_DATA_HOME") or f"{home}/.local/share",
        "runtime": env.get("XDG_RUNTIME_DIR") or "",
    }
    many = {
        "{config_dirs}": (env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"),
        "{data_dirs}": (env.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":"),
    }
    found: list[str] = []
    for path in USER:
        if "{runtime}" in path and not one["runtime"]:
            continue
        word = path.partition("/")[0]
        starts = many.get(word, [word])
        found += [path.replace(word, start, 1).format(**one) for start in starts]
    return found
