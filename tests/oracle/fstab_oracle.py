"""Asks the real systemd-fstab-generator: this machine's, or one in an unpacked image."""

import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

GENERATOR = "usr/lib/systemd/system-generators/systemd-fstab-generator"
# Nothing of the image is changed: what is written goes to a directory from outside.
_IN_IMAGE = """
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount --bind "$2" "$1/mnt"
export SYSTEMD_FSTAB=/mnt/fstab SYSTEMD_IN_INITRD=0
exec chroot "$1" /{generator} /mnt/out /mnt/out /mnt/out
"""
DEVICES = (
    "/dev/sda1",
    "UUID=ab-cd",
    "LABEL=a\\040b",
    'LABEL="x/y"',
    "PARTUUID=1",
    "tmpfs",
    "srv:/x",
)
DEVICES += ("//srv/share", "/file", "none", "/dev/mapper/a-b", "PARTLABEL=é%")
WHERE = (
    "/",
    "/usr",
    "/home",
    "/home/x",
    "/a\\040b",
    "/a-b",
    "none",
    "/proc",
    "/dev/shm",
    "/var//tmp/",
)
WHERE += ("/.x", "swap", "/srv/%i", "/net")
TYPES = (
    "ext4",
    "xfs",
    "auto",
    "nfs",
    "nfs4",
    "tmpfs",
    "swap",
    "autofs",
    "cifs",
    "fuse.sshfs",
    "vfat",
)
OPTIONS = ("defaults", "ro", "nofail", "fail", "noauto", "auto", "_netdev", "bg", "fg", "x=%i")
OPTIONS += ("x-systemd.automount", "comment=systemd.automount", "x-systemd.idle-timeout=1min")
OPTIONS += (
    "x-systemd.device-timeout=5",
    "x-systemd.device-timeout=0",
    "x-systemd.mount-timeout=90",
)
OPTIONS += ("x-systemd.requires=a.service", "x-systemd.requires=/b", "x-systemd.after=c.target")
OPTIONS += ("x-systemd.before=/dev/x", "x-systemd.requires-mounts-for=/y", "x-initrd.mount")
OPTIONS += ("x-systemd.wants-mounts-for=/z", "x-systemd.wanted-by=w.service", "x-systemd.makefs")
OPTIONS += ("x-systemd.required-by=v.target", "x-systemd.growfs", "x-systemd.rw-only", "usrquota")
OPTIONS += ("x-systemd.mount-timeout=0", "x-systemd.mount-timeout=nonsense", "")


@dataclass(frozen=True, slots=True)
class Said:
    """What the generator wrote, by path below its directory."""

    files: dict[str, str]
    links: dict[str, str]
    log: str


def random_fstab(seed: int) -> str:
    """Return an fstab of a few lines; the later fields are sometimes missing."""
    pick = random.Random(seed)
    lines = ["# a comment", ""]
    for _ in range(pick.randint(1, 5)):
        options = ",".join(pick.sample(OPTIONS, pick.choice((1, 1, 2, 3, 5))))
        fields = [pick.choice(DEVICES), pick.choice(WHERE), pick.choice(TYPES), options]
        fields += ["0", pick.choice("0012")]
        lines.append(pick.choice(("\t", " ")).join(fields[: pick.choice((6, 6, 6, 6, 4, 3))]))
    return "\n".join(lines) + "\n"


def ask(fstab: str, work: Path, image: Path | None = None) -> Said:
    """Run the generator over a text, in `work`."""
    out = work / "out"
    out.mkdir()
    (work / "fstab").write_text(fstab)
    if image:
        script = _IN_IMAGE.format(generator=GENERATOR)
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
        argv += [str(image), str(work)]
    else:
        argv = [f"/{GENERATOR}", *[str(out)] * 3]
    env = {"PATH": "/usr/sbin:/usr/bin", "SYSTEMD_FSTAB": f"{work}/fstab"}
    env |= {"SYSTEMD_LOG_TARGET": "console", "SYSTEMD_PROC_CMDLINE": "quiet"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    files, links = {}, {}
    for directory, _, names in os.walk(out):
        for name in names:
            path = Path(directory, name)
            at = str(path.relative_to(out))
            if path.is_symlink():
                links[at] = os.readlink(path)
            else:
                files[at] = path.read_text()
    return Said(files, links, done.stderr)
