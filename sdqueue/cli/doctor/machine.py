"""Checks of what is around the queue: systemd, cgroups, the controller, lingering, the clock."""

import getpass
import os
import shlex
import time
from collections.abc import Iterator
from glob import glob

from sdqueue import __version__
from sdqueue.cli.client import ask
from sdqueue.cli.doctor.verdict import NOTE, OK, PROBLEM, Patient, Verdict
from sdqueue.cli.settling import call, lingers
from sdqueue.cli.shipped import SERVICE
from sdqueue.generate import CONCURRENCY_SINCE
from sdqueue.unitfile.directives_data import VERSIONS
from sdqueue.words.errors import SdqueueError

OLDEST = VERSIONS[0]
UNIFIED_ONLY_SINCE = 258
"""From here on systemd knows no other layout of the cgroup tree."""
BUILT_SEC = 1_790_000_000
"""This program is younger than that (September 2026), so the clock must be too."""


def systemd(patient: Patient) -> Iterator[Verdict]:
    """Which systemd it is, and what it means for lanes."""
    version = patient.version
    if not version:
        mend = "" if patient.system else f"loginctl enable-linger {getpass.getuser()}"
        yield Verdict(PROBLEM, "the service manager does not answer", mend)
    elif version < OLDEST:
        yield Verdict(PROBLEM, f"systemd {version} is older than {OLDEST}, the oldest one tried")
    elif version < CONCURRENCY_SINCE:
        yield Verdict(
            NOTE,
            f"systemd {version} keeps lanes apart; the slots within a lane are counted by the"
            f" controller (from {CONCURRENCY_SINCE} on by systemd too)",
        )
    else:
        yield Verdict(OK, f"systemd {version} keeps lanes apart and counts their slots")


def cgroups(patient: Patient, mounts_file: str = "/proc/self/mounts") -> Iterator[Verdict]:
    """Which layout the cgroup tree has."""
    with open(mounts_file, encoding="utf-8", errors="replace") as lines:
        kinds = {words[1]: words[2] for words in map(str.split, lines) if len(words) > 2}
    if kinds.get("/sys/fs/cgroup") == "cgroup2":
        yield Verdict(OK, "the cgroup tree is unified")
    else:
        yield Verdict(
            PROBLEM if patient.version >= UNIFIED_ONLY_SINCE else NOTE,
            "the cgroup tree is not unified: settings of lanes' slices such as MemoryMax= may do"
            " nothing; boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line",
        )


def controller(patient: Patient) -> Iterator[Verdict]:
    """Whether one runs, is this version's, and is well."""
    unit = patient.show("--property=LoadState,ActiveState,UnitFileState,MainPID", SERVICE)
    installed = unit.get("LoadState") == "loaded"
    if not installed:
        yield Verdict(NOTE, f"{SERVICE} is not installed", f"{patient.sdqueue} install")
    elif unit.get("UnitFileState") not in ("enabled", "enabled-runtime", "static", "linked"):
        mend = f"{patient.systemctl} enable {SERVICE}"
        yield Verdict(PROBLEM, f"{SERVICE} is not enabled: no boot starts it", mend)
    try:
        properties = ask(patient.place, lambda client: client.properties())
    except SdqueueError as error:
        start = f"{patient.systemctl} restart {SERVICE}" if installed else ""
        yield Verdict(PROBLEM, str(error), start or f"{patient.sdqueue} install")
        return
    version = str(properties.get("Version"))
    if version != __version__:
        yield Verdict(
            PROBLEM,
            f"the controller is version {version}, this program {__version__}",
            f"{patient.sdqueue} upgrade",
        )
    else:
        yield Verdict(OK, f"the controller runs, version {version}")
    yield from _complaints(properties)


def _complaints(properties: dict[str, object]) -> Iterator[Verdict]:
    """What the controller says of itself."""
    troubles = properties.get("Trouble") or []
    notices = properties.get("Notices") or []
    for trouble in troubles if isinstance(troubles, list) else []:
        yield Verdict(PROBLEM, f"the controller says: {trouble}", "sdqueue status")
    for notice in notices if isinstance(notices, list) else []:
        yield Verdict(NOTE, f"the controller says: {notice}")


def rivals(patient: Patient, proc_dir: str = "/proc") -> Iterator[Verdict]:
    """Whether other controllers are on this machine."""
    mine = _holder(patient)
    unit = patient.show("--property=MainPID,ActiveState", SERVICE)
    if unit.get("ActiveState") == "active" and mine and unit.get("MainPID") not in ("0", str(mine)):
        mend = f"kill {mine}"
        yield Verdict(PROBLEM, f"process {mine} has the spool, and not {SERVICE}", mend)
    others = [pid for pid in _controllers(proc_dir) if pid != mine]
    for pid in others:
        yield Verdict(
            NOTE,
            f"process {pid} is the controller of another queue: lanes exclude each other within"
            " one manager only. A machine with several users runs one queue of the system",
        )
    if not others:
        yield Verdict(OK, "there is no other controller")


def _holder(patient: Patient) -> int:
    if not patient.place.has_controller():
        return 0
    try:
        with open(patient.place.spool.lock_file, encoding="ascii", errors="replace") as file:
            text = file.read(32).strip()
    except OSError:
        return 0
    return int(text) if text.isdecimal() else 0


def _controllers(proc_dir: str) -> Iterator[int]:
    """Yield the processes that are `sdqueue … daemon`, by argv's words and not by a search."""
    for name in os.listdir(proc_dir):
        if not name.isdecimal():
            continue
        try:
            with open(f"{proc_dir}/{name}/cmdline", "rb") as file:
                words = file.read(4096).split(b"\0")[:-1]
        except OSError:
            continue
        program = next((n for n, w in enumerate(words[:4]) if os.path.basename(w) == b"sdqueue"), 9)
        if words[-1:] and b"daemon" in words[program + 1 :]:
            yield int(name)


def lingering(patient: Patient) -> Iterator[Verdict]:
    """Whether a user's queue outlives the user's sessions."""
    user = getpass.getuser()
    if patient.system:
        return
    if lingers(user):
        yield Verdict(OK, f"{user} lingers: the queue runs without a session")
    else:
        mend = f"loginctl enable-linger {shlex.quote(user)}"
        yield Verdict(NOTE, "the queue ends with your last session", mend)


def clock(patient: Patient) -> Iterator[Verdict]:
    """Whether the clock can be right, and whether somebody keeps it so."""
    now_sec = time.time()
    try:
        last_sec = os.stat(patient.place.spool.events_file).st_mtime
    except OSError:
        last_sec = 0.0
    if now_sec < BUILT_SEC or last_sec > now_sec + 60:
        text = "the clock is behind" + ("" if now_sec < BUILT_SEC else " the queue's last event")
        yield Verdict(PROBLEM, text, "timedatectl set-ntp true")
        return
    synchronized = call(["timedatectl", "show", "--property=NTPSynchronized", "--value"]).stdout
    if synchronized.strip() == "no":
        text = "nobody keeps the clock right; NOT_BEFORE and calendars go by it"
        yield Verdict(NOTE, text, "timedatectl set-ntp true")
    else:
        yield Verdict(OK, "the clock can be right")


def devices(patient: Patient) -> Iterator[Verdict]:
    """Whether jobs of this user can open the lanes' devices."""
    if patient.system:
        return
    for lane in patient.place.config.lanes.values():
        found = [device for each in lane.devices for device in sorted(glob(each))]
        closed = [device for device in found if not os.access(device, os.R_OK | os.W_OK)]
        if closed:
            mend = f"sudo usermod -aG render,video {shlex.quote(getpass.getuser())}"
            text = f"lane {lane.name}: {', '.join(closed)} can't be opened by your jobs"
            yield Verdict(NOTE, text, mend)
        elif found:
            yield Verdict(OK, f"lane {lane.name}: {len(found)} devices can be opened")
