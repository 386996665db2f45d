"""The lanes' targets and slices: there from the generator, or written by the controller.

A target can't be transient. Where the generator's output is absent (a private manager, a user who
has not installed), the controller writes what the same `generate()` gives to the manager's runtime
directory, and has it reload.
"""

import os
from collections.abc import Mapping

from sdqueue.bus.systemd import Systemd
from sdqueue.core.spec import Config
from sdqueue.generate import generate
from sdqueue.words.errors import SpoolError


async def ensure_lane_units(
    systemd: Systemd, config: Config, runtime_dir: str, *, regenerate: bool = False
) -> None:
    """See that every lane has its target and slice, as the configuration says.

    `regenerate`: the configuration is new, so a generator that provides them must run again.
    """
    properties = await systemd.manager_properties()
    wanted = generate(config, systemd_version=await systemd.version())
    unit_path = [str(directory) for directory in _list(properties.get("UnitPath"))]
    elsewhere = {name for name in wanted if _is_elsewhere(name, unit_path, runtime_dir)}
    if regenerate and elsewhere:
        await systemd.reload()
    missing = {
        name: text
        for name, text in wanted.items()
        if not _is_elsewhere(name, unit_path, runtime_dir) and _read(runtime_dir, name) != text
    }
    if missing:
        _write(runtime_dir, missing)
        await systemd.reload()


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _is_elsewhere(name: str, unit_path: list[str], runtime_dir: str) -> bool:
    """Say whether the generator, a package or an administrator provides this unit."""
    return any(
        os.path.exists(f"{directory}/{name}")
        for directory in unit_path
        if os.path.realpath(directory) != os.path.realpath(runtime_dir)
    )


def _read(directory: str, name: str) -> str | None:
    try:
        with open(f"{directory}/{name}", encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None  # then it is written, and the error of that is told


def _write(directory: str, files: Mapping[str, str]) -> None:
    try:
        os.makedirs(directory, exist_ok=True)
        for name, text in files.items():
            with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise SpoolError(f"can't write the lanes' units to {directory}: {error}") from error
