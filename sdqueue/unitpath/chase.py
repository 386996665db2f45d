"""Follows symbolic links inside a root, step by step, so that none can lead out of it."""

import os
from dataclasses import dataclass, field

LINKS_MAX = 32


class LinkLoop(OSError):
    """More links on the way than systemd follows."""


@dataclass(slots=True)
class Chaser:
    """Resolves absolute paths (with the root in front) as seen from inside `root`.

    `root` is "" for the file system as it is; a path that does not lie in the root is resolved
    without one. What directories resolve to is remembered, so a
    chaser must not outlive one look at the tree. Re-enacts chase_symlinks(),
    src/basic/chase-symlinks.c, v252. Differs: who owns a link is not looked at.
    """

    root: str
    _directories: dict[str, str] = field(default_factory=dict)

    def directory(self, path: str) -> str:
        """Return the real path of a directory that may not exist: what is missing is taken as is.

        LinkLoop where there is no end to the links.
        """
        known = self._directories.get(path)
        if known is None:
            known = self._directories[path] = self._resolve(path)
        return known

    def but_last(self, path: str) -> str:
        """Return the path with all but its last part resolved."""
        parent, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            return self.directory(path)
        return f"{self.directory(parent or '/').rstrip('/')}/{name}"

    def all(self, path: str) -> str:
        """Return the path with everything resolved; not remembered."""
        return self._resolve(path)

    def link(self, text: str, directory: str) -> str:
        """Return where a link with `text` in `directory` leads, nothing resolved yet."""
        return f"{self.root}{text}" if text.startswith("/") else f"{directory}/{text}"

    def _resolve(self, path: str) -> str:
        root = self.root if path == self.root or path.startswith(f"{self.root}/") else ""
        done = root
        todo = _parts(path.removeprefix(root))
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                done = done.rpartition("/")[0] if done != root else root
                continue
            step = f"{done}/{part}"
            text = _readlink(step)
            if text is None:
                done = step
                continue
            links += 1
            if links > LINKS_MAX:
                raise LinkLoop(f"{path}: too many links")
            if text.startswith("/"):
                done = root
            todo += _parts(text)
        return done or "/"


def _parts(path: str) -> list[str]:
    """Return the parts of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _readlink(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def lstat(path: str) -> os.stat_result | None:
    """Return what is at the path itself, None where nothing can be seen."""
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None
