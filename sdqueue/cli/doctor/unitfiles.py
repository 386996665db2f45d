"""Checks of unit files: the lanes' own, strangers that stop jobs, drop-ins, the boot."""

import os
import shlex
from collections.abc import Iterator

from sdqueue.cli.doctor.verdict import NOTE, OK, PROBLEM, Patient, Verdict
from sdqueue.cli.lint_world import Wish, look
from sdqueue.cli.proving import CYCLES
from sdqueue.config_files import read_plain
from sdqueue.core.unit import RELIED_ON
from sdqueue.generate import generate
from sdqueue.lint.finding import Finding, at_least
from sdqueue.lint.judge import judge
from sdqueue.unitfile.parse import parse
from sdqueue.words.names import JOB_UNIT_PREFIX, UNIT_PREFIX, target_of_lane
from sdqueue.words.unitname import is_valid

FILE_MAX_BYTES = 1 << 20
STRANGERS = frozenset({"conflicts-with-lane", "stops-a-job"})


def lanes(patient: Patient) -> Iterator[Verdict]:
    """Whether the lanes' units are those of the generator, and of the present configuration."""
    wanted = generate(patient.place.config, systemd_version=patient.version)
    for lane in patient.place.config.lanes.values():
        name = target_of_lane(lane.name)
        file = patient.show("--property=FragmentPath", name).get("FragmentPath", "")
        verdict = _of_lane(patient, lane.name, file, wanted[name])
        if verdict:
            yield verdict
            return
    yield Verdict(OK, "each lane has its units, made by the generator")


def _of_lane(patient: Patient, lane: str, file: str, wanted: str) -> Verdict | None:
    if not file:
        text = f"lane {lane} has no units, so no job of it can start"
        return Verdict(PROBLEM, text, f"{patient.sdqueue} install")
    try:
        text = read_plain(file, FILE_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        mend = f"{patient.systemctl} daemon-reload"
        return Verdict(PROBLEM, f"{file} can't be read: {error.strerror or error}", mend)
    if _conflicts(text) != _conflicts(wanted):
        mend = f"{patient.systemctl} daemon-reload"
        return Verdict(PROBLEM, f"{file} is not what the configuration says now", mend)
    if "/generator" not in file:
        text = f"{file} was not made by the generator"
        return Verdict(NOTE, text, "sudo sdqueue --system install")
    return None


def _conflicts(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith("Conflicts=")}


def strangers(patient: Patient) -> Iterator[Verdict]:
    """Whether other units, loaded or not, would stop jobs when they start or stop."""
    files = [file for file in _unit_files(patient) if _names_us(file)]
    found: list[Finding] = []
    if files:
        wish = Wish(paths=tuple(files), user=not patient.system)
        found = [each for each in judge(look(wish).situation) if each.rule in STRANGERS]
    for each in found:
        yield Verdict(PROBLEM, f"{each.file}:{each.line}: {each.message}", _edit(patient, each))
    if not found:
        yield Verdict(OK, "no other unit stops jobs")


def _edit(patient: Patient, finding: Finding) -> str:
    return f"{patient.systemctl} edit --full {shlex.quote(finding.unit)}"


def _unit_files(patient: Patient) -> Iterator[str]:
    """Yield the files of units that are not ours, each name from where the manager takes it."""
    seen: set[str] = set()
    for directory in patient.unit_dirs:
        for name in _names(directory):
            if name not in seen and not name.startswith("sdqueue") and is_valid(name):
                seen.add(name)
                yield f"{directory}/{name}"


def _names_us(file: str) -> bool:
    try:
        return UNIT_PREFIX.encode() in read_plain(file, FILE_MAX_BYTES)
    except OSError:
        return False


def dropins(patient: Patient) -> Iterator[Verdict]:
    """Whether drop-ins change what makes jobs safe."""
    found = False
    for file in _job_dropins(patient):
        try:
            data = read_plain(file, FILE_MAX_BYTES)
        except OSError:
            continue
        for setting in parse(data, file).settings:
            if (setting.section, setting.key) in RELIED_ON:
                found = True
                text = f"{file}:{setting.place.line}: {setting.key}= of jobs is the queue's to set"
                mend = f"sed -i {setting.place.line}d {shlex.quote(file)} && {patient.systemctl}"
                yield Verdict(PROBLEM, text, f"{mend} daemon-reload")
    if not found:
        yield Verdict(OK, "no drop-in changes what makes jobs safe")


def _job_dropins(patient: Patient) -> Iterator[str]:
    """Yield drop-ins that reach jobs: of one job, of a prefix, of all services."""
    for directory in patient.unit_dirs:
        for name in _names(directory):
            stem = name.removesuffix(".service.d")
            reaches = stem.startswith(JOB_UNIT_PREFIX) or stem == UNIT_PREFIX
            if name == "service.d" or (stem != name and reaches):
                for each in _names(f"{directory}/{name}"):
                    if each.endswith(".conf"):
                        yield f"{directory}/{name}/{each}"


def boot(patient: Patient) -> Iterator[Verdict]:
    """Whether boot starts all that it should, the queue above all."""
    world = look(Wish(user=not patient.system))
    found = [
        each
        for each in judge(world.situation)
        if at_least(each.severity, "error")
        and (each.rule in CYCLES or each.unit.startswith("sdqueue"))
    ]
    option = "" if patient.system else " --user"
    for each in found:
        mend = f"sdqueue{option} lint-units --all"
        yield Verdict(PROBLEM, f"{each.unit}: {each.message} ({each.rule})", mend)
    if not found:
        yield Verdict(OK, "boot drops nothing that it should start")


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
