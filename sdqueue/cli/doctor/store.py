"""Checks of files: the spool, what lies in queue/, the configuration."""

import os
import shlex
import stat
from collections.abc import Iterator

from sdqueue.cli.doctor.verdict import NOTE, OK, PROBLEM, Patient, Verdict
from sdqueue.config_files import read_config
from sdqueue.spool.layout import DIRECTORIES, SCHEMA
from sdqueue.spool.scan import scan
from sdqueue.spool.takeover import list_staged
from sdqueue.words.errors import SdqueueError
from sdqueue.words.names import SUFFIX
from sdqueue.words.spans import format_size

LEAST_FREE_BYTES = 1 << 30
VOLATILE = frozenset({"tmpfs", "ramfs"})
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"})


def configuration(patient: Patient) -> Iterator[Verdict]:
    """Whether the configuration can be understood."""
    _, problems = read_config(os.environ, system=patient.system)
    for problem in problems:
        level = PROBLEM if problem.severity == "error" else NOTE
        mend = f"${{EDITOR:-vi}} +{max(1, problem.line)} {shlex.quote(problem.file)}"
        yield Verdict(level, str(problem), mend)
    if not problems:
        yield Verdict(OK, f"lanes: {', '.join(patient.place.config.lanes)}")


def spool(patient: Patient) -> Iterator[Verdict]:
    """Whose the spool is, who may write there, its schema."""
    root = patient.place.spool.root
    if not os.path.isdir(root):
        yield Verdict(NOTE, f"there is no spool yet; {root} is made by the first submit")
        return
    found = [*_access(patient, root), *_schema(patient), *_import(patient)]
    yield from found
    if not found:
        yield Verdict(OK, f"{root} is yours alone")


def _access(patient: Patient, root: str) -> Iterator[Verdict]:
    owner = 0 if patient.place.spool.system else os.geteuid()
    for name in DIRECTORIES:
        directory = f"{root}/{name}".rstrip("/")
        try:
            status = os.stat(directory)
        except FileNotFoundError:
            continue
        quoted = shlex.quote(directory)
        if status.st_uid != owner:
            mend = f"chown -R {owner} {quoted}"
            yield Verdict(PROBLEM, f"{directory} belongs to uid {status.st_uid}", mend)
        mode = stat.S_IMODE(status.st_mode)
        right = patient.place.spool.mode_of(name)
        if mode & 0o022 & ~right:
            text = f"{directory} can be written by others: who may do that runs commands as you"
            yield Verdict(PROBLEM, text, f"chmod {right:o} {quoted}")


def _schema(patient: Patient) -> Iterator[Verdict]:
    file = patient.place.spool.schema_file
    try:
        with open(file, encoding="ascii", errors="replace") as stream:
            text = stream.read(64).strip()
    except OSError:
        return
    if text != str(SCHEMA):
        newer = text.isdecimal() and int(text) > SCHEMA
        mend = "" if newer else f"echo {SCHEMA} >{shlex.quote(file)}"
        why = "of a newer sdqueue: install that" if newer else "damaged"
        yield Verdict(PROBLEM, f"{file} says {text[:20]!r}, which is {why}", mend)


def _import(patient: Patient) -> Iterator[Verdict]:
    waiting = len(list_staged(patient.place.spool))
    if waiting:
        text = f"an import was cut off: {waiting} of its files wait in import/, where no job runs"
        yield Verdict(PROBLEM, text, "sdqueue import DIR")


def disk(patient: Patient, mounts_file: str = "/proc/self/mounts") -> Iterator[Verdict]:
    """What file system the spool is on, and how much room it has."""
    root = patient.place.spool.root
    while not os.path.isdir(root):
        root = os.path.dirname(root)
    kind = _file_system(root, mounts_file)
    found = os.statvfs(root)
    free = found.f_bavail * found.f_frsize
    if kind in VOLATILE:
        yield Verdict(PROBLEM, f"{root} is on {kind}: the queue is gone after a reboot")
    if kind in REMOTE:
        text = f"{root} is on {kind}: locks and changes made elsewhere are not seen there"
        yield Verdict(PROBLEM, text)
    if free < LEAST_FREE_BYTES:
        text = f"{root} has {format_size(free)} left: where nothing can be written nothing starts"
        yield Verdict(PROBLEM, text, f"du -xh {shlex.quote(root)} | sort -h | tail")
    elif kind not in VOLATILE | REMOTE:
        yield Verdict(OK, f"{root} is on {kind or 'a disk'}, {format_size(free)} free")


def _file_system(directory: str, mounts_file: str) -> str:
    """Return the type of the file system that a directory is on: of the longest mount above it."""
    real = os.path.realpath(directory)
    best, kind = "", ""
    with open(mounts_file, encoding="utf-8", errors="replace") as lines:
        for words in map(str.split, lines):
            point = words[1].replace("\\040", " ")
            inside = real == point or real.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind = point, words[2]
    return kind


def strays(patient: Patient) -> Iterator[Verdict]:
    """Whether something lies in queue/ that will never run."""
    directory = patient.place.spool.state_dir("queue")
    if not os.access(directory, os.R_OK):
        return
    try:
        bad = [entry for entry in scan(patient.place.spool, "queue") if entry.problem]
    except SdqueueError as error:
        yield Verdict(PROBLEM, str(error))
        return
    for entry in bad:
        yield Verdict(PROBLEM, str(entry.problem), _aside(_file_of(directory, entry.name)))
    told = {_file_of(directory, entry.name) for entry in bad}
    files = (f"{directory}/{name}" for name in sorted(os.listdir(directory)))
    others = [file for file in files if not file.endswith(SUFFIX) and file not in told]
    for file in others:
        text = f"queue/{os.path.basename(file)} is no job file, and nothing happens with it"
        yield Verdict(NOTE, text, _aside(file))
    if not bad and not others:
        yield Verdict(OK, "queue/ holds job files only")


def _file_of(directory: str, name: str) -> str:
    """Return the file of an entry, whose name is without .job where the file's has it."""
    file = f"{directory}/{name}{SUFFIX}"
    return file if os.path.lexists(file) else f"{directory}/{name}"


def _aside(file: str) -> str:
    return f"mv {shlex.quote(file)} ~"
