"""Where and as whom a job's runs and checks happen: directories, files, user, home."""

import pwd
from functools import lru_cache

from sdqueue.controller.places import Places
from sdqueue.core.checks import CheckContext
from sdqueue.core.spec import JobSpec
from sdqueue.core.unit import RunContext
from sdqueue.spool import runs


def run_context(places: Places, spec: JobSpec, attempt: int, run: int) -> RunContext:
    """Say where and as whom a run happens."""
    directory = places.spool.run_dir(spec.name, run)
    return RunContext(
        attempt=attempt,
        script_file=f"{directory}/{runs.SCRIPT}",
        done_if_file=f"{directory}/{runs.DONE_IF}",
        witness_script=places.witness_script,
        record_file=f"{directory}/{runs.RECORD}",
        witness_file=f"{directory}/{runs.WITNESS}",
        whole_file=f"{directory}/{runs.WHOLE}",
        state_dir=places.spool.work_dir(spec.name),
        home_dir=home_of(spec.uid),
        boot=places.boot,
        user=user_of(places, spec),
        system=places.system,
    )


def check_context(places: Places, spec: JobSpec, limit_sec: float) -> CheckContext:
    """Say where a job's checks happen, and make its work directory where that is missing."""
    state_dir = runs.work_dir(places.spool, spec.name, owner=owner_of(places, spec))
    return CheckContext(spec, home_of(spec.uid), state_dir, limit_sec)


def user_of(places: Places, spec: JobSpec) -> str:
    """Name the user that a job runs as: its file's owner, in system mode only."""
    return str(spec.uid) if places.system and spec.uid else ""


def owner_of(places: Places, spec: JobSpec) -> runs.Owner | None:
    """Give the uid and gid to whom a run's files belong, None where that is ourselves."""
    if not places.system or not spec.uid:
        return None
    try:
        return (spec.uid, pwd.getpwuid(spec.uid).pw_gid)
    except KeyError:
        return (spec.uid, -1)  # removed meanwhile; PID 1 will say so


@lru_cache(maxsize=256)
def home_of(uid: int) -> str:
    """Give a user's home directory, `/` for one who has none."""
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"
