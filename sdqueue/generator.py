"""The generator: configuration → unit files, while the machine boots and at each daemon-reload.

Writes the lanes' targets and slices, and timers for the jobs in jobs.d/ that have ON_CALENDAR, into
the first of the three directories that it is given, and nowhere else. Knows what early boot has: no
bus, perhaps no /home and no /var, a root that can't be written. Whatever is wrong, it says so in
the kernel's log and ends with 0: a queue without its lanes is a nuisance, a boot that a generator
holds up is worse. Without a configuration, or with one that has an error, it writes the default
lanes.

Imports little: systemd waits for every generator before it starts anything.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from sdqueue.config_files import config_dir, read_config_in, read_plain
from sdqueue.core.lane import Config
from sdqueue.generate import generate, generate_timers, timer_links, timer_of_job
from sdqueue.jobtext import HEADER_MAX_BYTES, JOB_MAX_BYTES, read_header
from sdqueue.words.names import job_name_fault

MESSAGES_MAX = 20
KERNEL_LOG = "/dev/kmsg"
WARNING = 4
_SHARED = "libsystemd-shared-"


def main(argv: Sequence[str], environ: Mapping[str, str], *, program: str = "sdqueue") -> int:
    """Run as systemd.generator(7) says, with argv NORMAL EARLY LATE; the answer is always 0.

    `program` is the `sdqueue` that the timers' services start.
    """
    messages: list[str] = []
    try:
        if len(argv) not in (1, 3):
            raise ValueError("usage: sdqueue-generator NORMAL-DIR [EARLY-DIR LATE-DIR]")
        system = is_system(argv[0], environ)
        write(argv[0], units(environ, system=system, program=program, messages=messages))
    except Exception as error:
        # A bug of ours too must not do more harm than leave the units out.
        messages.append(f"{type(error).__name__}: {error}")
    say(messages, environ)
    return 0


def is_system(normal_dir: str, environ: Mapping[str, str]) -> bool:
    """Tell the system's manager from a user's: by its word, else by the directory, else by uid."""
    scope = environ.get("SYSTEMD_SCOPE", "")
    if scope in ("system", "user"):
        return scope == "system"
    if normal_dir.startswith("/run/systemd/"):
        return True
    return os.geteuid() == 0 and not normal_dir.startswith("/run/user/")


# What there is to write -------------------------------------------------------------------------


class Units:
    """Texts by relative path, and links by relative path."""

    __slots__ = ("links", "texts")

    def __init__(self, texts: dict[str, str], links: dict[str, str]) -> None:
        self.texts = texts
        self.links = links


def units(
    environ: Mapping[str, str], *, system: bool, program: str, messages: list[str], root: str = ""
) -> Units:
    """Return all units of one manager; what is wrong with the configuration goes to `messages`.

    `root` is put before every path that is read.
    """
    directory = root + config_dir(environ, system=system)
    config, sources = _configuration(directory, messages)
    texts = generate(config, systemd_version=systemd_version(root), sources=sources)
    jobs = list(_calendar_jobs(f"{directory}/jobs.d", messages))
    command = (program, "--system" if system else "--user")
    timers = generate_timers(jobs, command=command)
    for name, _, file in jobs:
        if timer_of_job(name) not in timers:
            messages.append(f"{file}: error: ON_CALENDAR is no calendar; it gets no timer")
    return Units(texts | timers, timer_links(timers))


def _configuration(directory: str, messages: list[str]) -> tuple[Config, tuple[str, ...]]:
    """Return the configuration and its files; with an error in it the default lanes."""
    try:
        config, problems, files = read_config_in(directory)
    except Exception as error:
        messages.append(f"{directory}: {type(error).__name__}: {error}; the default lanes are used")
        return Config(), ()
    messages += map(str, problems)
    if any(problem.severity == "error" for problem in problems):
        messages.append(f"{directory}: the default lanes are used")
        return Config(), ()
    return config, files


def _calendar_jobs(directory: str, messages: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (name, ON_CALENDAR, file) of the job files that have a calendar."""
    for entry in _names(directory):
        name, dot, suffix = entry.rpartition(".")
        file = f"{directory}/{entry}"
        if not dot or suffix != "job":
            continue
        if fault := job_name_fault(name):
            messages.append(f"{file}: error: {fault}")
            continue
        try:
            data = read_plain(file, JOB_MAX_BYTES)
        except OSError as error:
            messages.append(f"{file}: error: it can't be read: {error.strerror or error}")
            continue
        for _, key, value in read_header(data[:HEADER_MAX_BYTES]).lines:
            if key == b"ON_CALENDAR":
                yield name, value.decode("utf-8", "replace"), file
                break


def systemd_version(root: str = "") -> int:
    """Return the version of the systemd that is installed, 0 where it is not to be seen.

    Its private library has the number in its name; to run `systemctl --version` would take longer
    than all the rest.
    """
    for directory in _library_dirs(f"{root}/usr/lib"):
        for name in _names(directory):
            rest = name.removeprefix(_SHARED)
            # As in 252.so, 257.9-1.fc42.so, 262~rc3.so.
            number = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            if rest != name and number:
                return int(number)
    return 0


def _library_dirs(base: str) -> Iterator[str]:
    """Yield where distributions keep that library."""
    yield f"{base}/systemd"
    yield f"{base}64/systemd"
    yield from (f"{base}/{name}/systemd" for name in _names(base) if "-linux-" in name)


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


# Writing ----------------------------------------------------------------------------------------


def write(directory: str, made: Units) -> None:
    """Write below `directory`; what is in the way there is replaced, no link is followed."""
    for path, text in made.texts.items():
        place = _place(directory, path)
        _remove(place)
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with open(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    for path, target in made.links.items():
        place = _place(directory, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        _remove(place)
        os.symlink(target, place)


def _place(directory: str, path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{path!r} is outside of the generator's directory")
    return f"{directory}/{path}"


def _remove(place: str) -> None:
    try:
        os.unlink(place)
    except FileNotFoundError:
        pass


# Saying -----------------------------------------------------------------------------------------


def say(messages: Sequence[str], environ: Mapping[str, str]) -> None:
    """Put messages into the kernel's log when the system's manager runs us, else on stderr."""
    shown = [*messages[:MESSAGES_MAX]]
    if len(messages) > MESSAGES_MAX:
        shown.append(f"and {len(messages) - MESSAGES_MAX} more")
    for message in shown:
        line = "".join(each if each.isprintable() else "?" for each in message)[:900]
        if environ.get("SYSTEMD_SCOPE") != "system" or not _to_kernel(line):
            print(f"sdqueue-generator: {line}", file=sys.stderr)


def _to_kernel(line: str) -> bool:
    """Write one record of kmsg; False where that can't be."""
    record = f"<{WARNING}>sdqueue-generator[{os.getpid()}]: {line}\n"
    try:
        fd = os.open(KERNEL_LOG, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, record.encode("utf-8", "replace"))
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
