"""How a job becomes a unit: pure, from values to the properties of StartTransientUnit.

Each property is `(name, D-Bus signature, value)`; `bus` makes Variants of them. The manual's table
and the tests on real systemd walk the same list. Why each property is as it is:

- Type=oneshot, and started with mode `fail`: while it runs its *start job* stays queued, so any
  start that would need to stop it is refused (TransactionIsDestructive). This is the lock.
- Conflicts= and After= on the targets of excluded lanes, and only on targets: a refused unit is
  then garbage-collected at once. After= makes a later start wait for a cancelled run's processes.
- ExecStopPost= is the witness: the unit writes its own end down, whoever is alive to read it.
- No shell text is in an argv, and no property has a name in -Ex: systemd 252 writes both to the
  transient unit's file in a way that it does not read back, and reads it at each daemon-reload. A
  run that was under way then had neither DONE_IF nor a witness.
- TimeoutStartUSec= is the wall clock, since RuntimeMaxSec= does nothing for a oneshot. Each Exec
  line has its own, so DONE_IF's limit is the same figure, counted anew.
- Nothing in a user's unit runs as root: it would have the unit's Environment=, which is the user's
  word (ENV), and LD_PRELOAD in it would make the user root.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from sdqueue.core.spec import JobSpec, Lane
from sdqueue.words import names

Property = tuple[str, str, object]

WITNESS = """\
# Run by each job's unit at its end, to write that end down; sdqueue.service(8).
read -r boot </proc/sys/kernel/random/boot_id
echo "$SERVICE_RESULT $EXIT_CODE $EXIT_STATUS $INVOCATION_ID $boot" >"$1"
"""
"""The script that a unit runs as ExecStop= and ExecStopPost=: builtins only, `$1` is the file.

ExecStop= runs only where ExecStart= and ExecStartPost= came to their ends by themselves: a run that
is stopped, and whose process then exits 0, has a witness of success too.
"""

SHELL = "/bin/bash"
RELIED_ON: tuple[tuple[str, str], ...] = (
    ("Service", "Type"),
    ("Service", "Restart"),
    ("Service", "RemainAfterExit"),
    ("Service", "KillMode"),
    ("Service", "SendSIGKILL"),
    ("Unit", "CollectMode"),
    ("Unit", "After"),
    ("Unit", "Conflicts"),
    ("Unit", "BindsTo"),
    ("Unit", "PartOf"),
    ("Unit", "StopWhenUnneeded"),
    ("Unit", "IgnoreOnIsolate"),
    ("Unit", "RefuseManualStart"),
)
"""Section and key of what a drop-in for jobs or lanes must leave alone: the lock rests on these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Where and as whom one run happens.

    `script_file` is the snapshot, `done_if_file` holds `done_if_text`, `witness_script` holds
    `WITNESS`, `record_file` is run.json, `witness_file` what ExecStopPost= writes, `whole_file`
    what ExecStop= writes where the run was not cut short, `state_dir` the job's own directory.
    `home_dir` is the owner's. `user` is empty in a user manager, whose units can't have one. `boot`
    is the boot id, 32 digits.
    """

    attempt: int
    script_file: str
    done_if_file: str
    witness_script: str
    record_file: str
    witness_file: str
    whole_file: str
    state_dir: str
    home_dir: str
    boot: str
    user: str = ""
    system: bool = False


def job_properties(spec: JobSpec, lane: Lane, run: RunContext) -> list[Property]:
    """Give the properties of a job's unit."""
    argv = [*spec.interpreter, run.script_file]
    return [
        *lane_properties(lane, system=run.system),
        ("Description", "s", _description(spec, run)),
        ("SyslogIdentifier", "s", spec.name),
        ("LogExtraFields", "aay", _log_fields(spec, run)),
        ("CollectMode", "s", "inactive"),
        ("StartLimitIntervalUSec", "t", 0),
        ("TimeoutStartUSec", "t", spec.timeout_usec),
        ("Environment", "as", _environment(spec, run)),
        ("WorkingDirectory", "s", spec.cwd or run.home_dir),
        *_limits(spec),
        *_owner(run),
        ("ExecStart", "a(sasb)", [command(argv)]),
        *_done_if(spec, run),
        ("ExecStop", "a(sasb)", [_written(run, run.whole_file)]),
        ("ExecStopPost", "a(sasb)", [_written(run, run.witness_file)]),
    ]


def lane_properties(lane: Lane, *, system: bool) -> list[Property]:
    """Give what makes a unit an occupant of its lane; units of checks have the same."""
    excluded = [names.target_of_lane(other) for other in sorted(lane.excludes)]
    target = names.target_of_lane(lane.name)
    return [
        ("Type", "s", "oneshot"),
        ("RemainAfterExit", "b", False),
        ("Slice", "s", names.slice_of_lane(lane.name)),
        ("Requires", "as", [target]),
        ("After", "as", [target, *excluded]),
        ("Conflicts", "as", excluded),
        ("IgnoreOnIsolate", "b", True),
        ("Documentation", "as", ["man:sdqueue.job(5)"]),
        *(_SYSTEM_ONLY if system else ()),
        *((("DevicePolicy", "s", "closed"),) if system and not lane.devices else ()),
    ]


_SYSTEM_ONLY: tuple[Property, ...] = (("IPAccounting", "b", True),)
"""A user manager accepts these and does nothing."""


def command(argv: Sequence[str]) -> tuple[str, list[str], bool]:
    """Give one command of ExecStart= and its like, as systemd must read it to run just `argv`.

    systemd expands `$NAME` in arguments of transient units too, and `$$` is its dollar.
    """
    return (argv[0], [arg.replace("$", "$$") for arg in argv], False)


def _done_if(spec: JobSpec, run: RunContext) -> list[Property]:
    if not spec.done_if:
        return []
    return [("ExecStartPost", "a(sasb)", [command([SHELL, run.done_if_file])])]


def done_if_text(spec: JobSpec, run: RunContext) -> str:
    """Write DONE_IF as a script with its environment: the unit's may be lost at a reload."""
    environment = {**dict(spec.env), **_queue_env(spec, run)}
    exports = [f"export {key}={shlex.quote(value)}\n" for key, value in environment.items()]
    return f"{''.join(exports)}{spec.done_if}\n"


def _written(run: RunContext, file: str) -> tuple[str, list[str], bool]:
    """Have the unit write its end down, as the job's own user: then no link in the run's directory,
    which is that user's, leads it further than the job could go itself. A failure is ignored."""
    path, argv, _ = command(["/bin/sh", run.witness_script, file])
    return (path, argv, True)


def _description(spec: JobSpec, run: RunContext) -> str:
    words = f"[{spec.lane}] {spec.name}, attempt {run.attempt} of {spec.attempts_max}"
    return f"{words}: {_one_line(spec.description)}" if spec.description else words


def _one_line(text: str) -> str:
    """Make text fit for Description=, which systemd writes into the unit's file as it is.

    With a line break in it the rest would be settings, in force from the next daemon-reload on: in
    system mode a command of root's for whoever wrote the job file.
    """
    plain = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(plain.split()).rstrip("\\")


def _log_fields(spec: JobSpec, run: RunContext) -> list[bytes]:
    fields = {"JOB": spec.name, "LANE": spec.lane, "ATTEMPT": str(run.attempt)}
    return [f"SDQUEUE_{key}={value}".encode() for key, value in fields.items()]


def _environment(spec: JobSpec, run: RunContext) -> list[str]:
    return [f"{key}={value}" for key, value in (*spec.env, *_queue_env(spec, run).items())]


def _queue_env(spec: JobSpec, run: RunContext) -> dict[str, str]:
    return {
        "SDQUEUE_JOB": spec.name,
        "SDQUEUE_LANE": spec.lane,
        "SDQUEUE_ATTEMPT": str(run.attempt),
        "SDQUEUE_RUN": run.record_file,
        "SDQUEUE_BOOT": run.boot,
        "STATE_DIRECTORY": run.state_dir,
    }


def _limits(spec: JobSpec) -> list[Property]:
    nice: list[Property] = [] if spec.nice is None else [("Nice", "i", spec.nice)]
    weight: list[Property] = (
        [] if spec.cpu_weight is None else [("CPUWeight", "t", spec.cpu_weight)]
    )
    return nice + weight


def _owner(run: RunContext) -> list[Property]:
    return [("User", "s", run.user)] if run.user else []
