"""Asks the real `systemctl --root=R enable` which links it makes, over random unit files."""

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SYSTEMCTL = shutil.which("systemctl")
_IN_IMAGE = """
set -e
image=$1; root=$2; shift 2
mount --bind "$image" "$image"
cd "$image"
mount -t proc proc proc
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p "./$root"
mount --bind "$root" "./$root"
exec chroot . "$@"
"""
ETC, RUN, LIB = "etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system"
DIRECTORIES = (ETC, RUN, LIB)
NAMES = (
    "a.service",
    "a-b.service",
    "b.service",
    "t@.service",
    "t@one.service",
    "u@.service",
    "c.socket",
    "c.target",
    "d@.target",
    "e.mount",
    "f.timer",
)
TARGETS = ("x.target", "c.target", "d@.target", "d@q.target", "a.service", "%i.target", "%p.target")
TARGETS += (
    "%n",
    "bad",
    "%Q.target",
    '"c.target"',
    "t@.service",
    "",
    "%j.target",
    "x.target c.target",
)
ALIASES = (
    "al.service",
    "al@.service",
    "al@one.service",
    "al.target",
    "a.service",
    "x.target.wants/%n",
)
ALIASES += ("al.socket", "%p-x.service", "bad.wants/%n", "b.service", "x.target.wants/b.service")
ALSO = (
    "b.service",
    "c.socket",
    "t@one.service",
    "t@.service",
    "missing.service",
    "%p.socket",
    "u@%i.service",
)
INSTANCES = ("one", "%p", "", "a b", "x@y")


@dataclass(slots=True)
class Maker:
    """Fills a root with unit files that have [Install] sections, and links among them."""

    random: random.Random
    root: Path

    def fill(self) -> tuple[str, ...]:
        """Make the files; return the names to enable."""
        for each in (*DIRECTORIES, "opt"):
            (self.root / each).mkdir(parents=True)
        names = self.random.sample(NAMES, self.random.randint(3, 7))
        for name in names:
            self._unit(name, names)
        for _ in range(self.random.randint(0, 3)):
            self._dropin(self.random.choice(names))
        wanted = [each for each in names if self.random.random() < 0.5]
        if self.random.random() < 0.4:
            wanted.append(self.random.choice(("t@two.service", "u@two.service", "gone.service")))
        return tuple(wanted or names[:1])

    def text(self) -> str:
        pick, chance = self.random.choice, self.random.random
        lines = ["[Unit]", "Description=x", "[Install]"]
        for key, words, often in (
            ("WantedBy", TARGETS, 0.7),
            ("RequiredBy", TARGETS, 0.3),
            ("UpheldBy", TARGETS, 0.1),
            ("Alias", ALIASES, 0.4),
            ("Also", ALSO, 0.3),
            ("DefaultInstance", INSTANCES, 0.3),
            ("WantedBy", TARGETS, 0.2),
        ):
            if chance() < often:
                lines.append(f"{key}={pick(words)}")
        if chance() < 0.03:
            lines.append("[broken")
        return "\n".join(lines) + "\n"

    def _unit(self, name: str, names: list[str]) -> None:
        pick = self.random.choice
        path = self.root / pick((ETC, LIB, LIB)) / name
        what = self.random.random()
        if what < 0.7:
            path.write_text(self.text())
        elif what < 0.75:
            path.write_text("")
        elif what < 0.8:
            path.symlink_to("/dev/null")
        elif what < 0.87:
            path.symlink_to(f"/{pick((ETC, LIB))}/{pick(names)}")
        elif what < 0.9:
            path.symlink_to(pick(names))
        else:
            outside = self.root / "opt" / pick((name, "other.service"))
            outside.write_text(self.text())
            path.symlink_to(f"/opt/{outside.name}")

    def _dropin(self, name: str) -> None:
        pick = self.random.choice
        directory = self.root / pick(DIRECTORIES) / f"{pick((name, 't@.service'))}.d"
        directory.mkdir(exist_ok=True)
        (directory / pick(("1.conf", "2.conf"))).write_text(self.text())


def links(root: Path) -> dict[str, str]:
    """Return every link below /etc/systemd/system: where it is, what it says."""
    found = {}
    for directory, directories, files in os.walk(root / ETC):
        for name in (*directories, *files):
            path = Path(directory, name)
            if path.is_symlink():
                found[str(path)] = os.readlink(path)
    return found


def enable(
    root: Path, names: tuple[str, ...], image: Path | None = None
) -> tuple[dict[str, str], str]:
    """Run the real thing, or that of an image; return the links there are then, what it said."""
    argv = ["/usr/bin/systemctl", f"--root={root}", "enable", "--", *names]
    if image:
        enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _IN_IMAGE, "sh"]
        argv = [*enter, str(image), str(root), *argv]
    done = subprocess.run(
        argv,
        env={"PATH": "/usr/sbin:/usr/bin", "SYSTEMD_LOG_LEVEL": "info"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return links(root), done.stderr
