"""A box with GPUs, as files: /proc, /sys and /dev below a directory, laid out as the kernel does.

root = GpuRoot(tmp_path)
root.amd("renderD128", "0000:03:00.0", vram_used=1 << 30)      nodes, sysfs, sizes
root.process(17, "llama-server")                                /proc/17
root.opens(17, 5, "/dev/dri/renderD128", fdinfo=amdgpu(1, 17, gtt_kib=…))
root.kfd(17, vram=3 << 30, queues=2)
root.seen(Lane(…))                                              one whole sweep

A device node is a link to a harmless one that exists anywhere, each to another, so that no
privilege is needed and numbers tell them apart.
"""

import shutil
from pathlib import Path

from sdqueue.core.lane import DEFAULT_LANES, Lane
from sdqueue.core.owner import Owner
from sdqueue.owners.sweep import LaneMemory, Seen, Sweep

GPU = next(lane for lane in DEFAULT_LANES if lane.name == "gpu")
STAND_INS = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
GIB, MIB = 1 << 30, 1 << 20


class GpuRoot:
    """One box. What is added twice is said anew."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.memory = LaneMemory()
        self._stand_ins = list(STAND_INS)
        for name in ("proc", "sys", "dev"):
            (directory / name).mkdir()

    def write(self, inside: str, text: str) -> Path:
        """Write a file."""
        file = self.directory / inside.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    # Devices

    def node(self, path: str) -> None:
        """Make a device node."""
        file = self.directory / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(self._stand_ins.pop(0))

    def amd(
        self,
        render: str = "renderD128",
        slot: str = "0000:03:00.0",
        *,
        vram_used: int = 200 * MIB,
        vram_total: int = 16 * GIB,
        gtt_used: int = 50 * MIB,
        gtt_total: int = 32 * GIB,
        status: str = "active",
    ) -> None:
        """Add a device of the amdgpu driver, with its card node."""
        device = self.directory / "sys/bus/pci/devices" / slot
        sizes = {"vram_used": vram_used, "vram_total": vram_total}
        sizes |= {"gtt_used": gtt_used, "gtt_total": gtt_total}
        for name, size in sizes.items():
            self.write(f"/sys/bus/pci/devices/{slot}/mem_info_{name}", f"{size}\n")
        self.write(f"/sys/bus/pci/devices/{slot}/power/runtime_status", f"{status}\n")
        card = f"card{int(render.removeprefix('renderD')) - 128}"
        for name in (render, card):
            (device / "drm" / name).mkdir(parents=True, exist_ok=True)
            link = self.directory / "sys/class/drm" / name / "device"
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(device)
                self.node(f"/dev/dri/{name}")

    def kfd(
        self,
        pid: int,
        *,
        vram: int = 0,
        queues: int = 0,
        occupancy: int | None = None,
        sdma_usec: int = 0,
    ) -> None:
        """Add a process's entry of /sys/class/kfd, and the device node where it is missing."""
        entry = f"/sys/class/kfd/kfd/proc/{pid}"
        self.write(f"{entry}/vram_51234", f"{vram}\n")
        self.write(f"{entry}/sdma_51234", f"{sdma_usec}\n")
        self.write(f"{entry}/pasid", "32771\n")
        for number in range(queues):
            self.write(f"{entry}/queues/{number}/gpuid", "51234\n")
            self.write(f"{entry}/queues/{number}/size", "4096\n")
        self.write(f"{entry}/stats_51234/evicted_ms", "0\n")
        if occupancy is not None:
            self.write(f"{entry}/stats_51234/cu_occupancy", f"{occupancy}\n")
        if not (self.directory / "dev/kfd").is_symlink():
            self.node("/dev/kfd")

    # Processes

    def process(
        self,
        pid: int,
        comm: str = "python3",
        *,
        ppid: int = 1,
        started: int | None = None,
        cgroup: str = "/user.slice/session-1.scope",
    ) -> None:
        """Add a process that has nothing open."""
        zeros = " ".join(["0"] * 17)
        started = pid if started is None else started
        self.write(f"/proc/{pid}/stat", f"{pid} ({comm}) S {ppid} {zeros} {started} 0 0\n")
        self.write(f"/proc/{pid}/comm", f"{comm}\n")
        self.write(f"/proc/{pid}/cgroup", f"0::{cgroup}\n")
        (self.directory / f"proc/{pid}/fd").mkdir(exist_ok=True)

    def opens(self, pid: int, fd: int, path: str, fdinfo: str = "pos:\t0\n") -> None:
        """Have a process open something; a path that the root lacks is one of the real box."""
        inside = self.directory / path.lstrip("/")
        link = self.directory / f"proc/{pid}/fd/{fd}"
        link.unlink(missing_ok=True)
        link.symlink_to(inside if inside.is_symlink() or inside.exists() else path)
        self.write(f"/proc/{pid}/fdinfo/{fd}", fdinfo)

    def ends(self, pid: int) -> None:
        """Have a process end; what the kernel lists of it elsewhere stays."""
        shutil.rmtree(self.directory / f"proc/{pid}")

    # Looking

    def sweep(self, lane: Lane = GPU, *, is_privileged: bool = True) -> Sweep:
        return Sweep(lane, self.memory, root=str(self.directory), is_privileged=is_privileged)

    def seen(self, lane: Lane = GPU, *, is_privileged: bool = True, is_full: bool = False) -> Seen:
        """Sweep, and say what was found; a second sample is taken where it is needed, at once."""
        sweep = self.sweep(lane, is_privileged=is_privileged)
        if sweep.first(is_full=is_full):
            sweep.again()
        return sweep.seen()

    def owners(self, lane: Lane = GPU) -> dict[int, Owner]:
        """Sweep, and give the owners by pid."""
        return {owner.pid: owner for owner in self.seen(lane).owners}


def fdinfo(driver: str, slot: str, client: int, **keys: str) -> str:
    """Write a client's file; `drm_engine_gfx="12 ns"` becomes its key."""
    lines = ["pos:\t0", "flags:\t02100002", "mnt_id:\t27", "ino:\t432"]
    lines += [f"drm-driver:\t{driver}", f"drm-client-id:\t{client}"]
    lines += [f"drm-pdev:\t{slot}"] if slot else []
    lines += [f"{key.replace('_', '-')}:\t{value}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def amdgpu(
    client: int, *, gfx_ns: int | None = None, vram: int = 0, gtt: int = 0, slot: str = ""
) -> str:
    """Write a client of amdgpu as Linux 6.12 does; an engine that did nothing is not told."""
    keys = {"drm_memory_vram": f"{vram >> 10} KiB", "drm_memory_gtt": f"{gtt >> 10} KiB"}
    keys["drm_memory_cpu"] = "8 KiB"
    if gfx_ns is not None:
        keys["drm_engine_gfx"] = f"{gfx_ns} ns"
    return fdinfo("amdgpu", slot or "0000:03:00.0", client, **keys)
