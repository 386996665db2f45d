"""The verbs: one table for the parser, the overview, completion and the manual. Loads nothing."""

from sdqueue.words.errors import UsageError
from sdqueue.words.names import did_you_mean, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Verb:
    """One verb: its module in `sdqueue.cli`, what follows it on the command line, one line of help.

    `words` says what completion offers for its arguments: keys of `completion.WORDS`.
    """

    __slots__ = ("aliases", "group", "help", "module", "name", "usage", "words")

    def __init__(
        self,
        group: str,
        name: str,
        usage: str,
        help: str,
        *,
        aliases: "Sequence[str]" = (),
        words: str = "",
    ) -> None:
        self.group = group
        self.name = name
        # A module named list would hide the builtin from the package; import is a keyword.
        self.module = {"list": "listing", "import": "importing"}.get(name, name.replace("-", "_"))
        self.usage = usage
        self.help = help
        self.aliases = tuple(aliases)
        self.words = words


SUBMITTING, LOOKING, STEERING, SETTING_UP = (
    "Submitting",
    "Looking",
    "Steering",
    "Setting up",
)

VERBS: tuple[Verb, ...] = (
    Verb(
        SUBMITTING,
        "submit",
        "[OPTIONS…] -- COMMAND… | --script FILE | -f JOBFILE… | -",
        "put jobs in the queue, durably, and print their names",
        aliases=("add",),
        words="files",
    ),
    Verb(
        SUBMITTING,
        "run",
        "[OPTIONS…] -- COMMAND… | --script FILE | -f JOBFILE",
        "submit one job and follow it to its end",
        words="files",
    ),
    Verb(SUBMITTING, "check", "JOBFILE…", "say what is wrong with job files", words="files"),
    Verb(
        LOOKING,
        "status",
        "[JOB…]",
        "lanes, who holds them, what waits and why; of a job, everything",
        aliases=("st",),
        words="jobs",
    ),
    Verb(LOOKING, "list", "[PATTERN…]", "list jobs", aliases=("ls",), words="jobs"),
    Verb(LOOKING, "show", "JOB…", "all that is known of jobs, with their runs", words="jobs"),
    Verb(LOOKING, "why", "JOB…", "why a job does not run: the whole chain", words="queued"),
    Verb(
        LOOKING,
        "is-free",
        "LANE",
        "whether a lane can be had now; the exit status says it",
        words="lanes",
    ),
    Verb(LOOKING, "owners", "[LANE]", "who has or uses a lane now", words="lanes"),
    Verb(LOOKING, "plan", "", "what would start next, and what the rest waits for"),
    Verb(LOOKING, "logs", "JOB", "the journal of a job's runs", aliases=("log",), words="jobs"),
    Verb(LOOKING, "events", "[JOB…]", "what has happened in the queue", words="jobs"),
    Verb(
        LOOKING,
        "wait",
        "JOB… | --lane LANE | --all",
        "block until jobs have ended; the exit status says how",
        words="alive",
    ),
    Verb(
        STEERING,
        "cancel",
        "JOB…",
        "stop running jobs, set waiting ones aside",
        words="alive",
    ),
    Verb(
        STEERING,
        "park",
        "JOB…",
        "set jobs aside that wait or have failed",
        words="parkable",
    ),
    Verb(STEERING, "release", "JOB…", "put jobs back that were set aside", words="parked"),
    Verb(STEERING, "retry", "JOB…", "queue jobs anew, or end a wait for a time", words="ended"),
    Verb(
        STEERING,
        "move",
        "JOB… --lane LANE | --priority N | --first",
        "change jobs' lane, or their place in the line",
        words="movable",
    ),
    Verb(STEERING, "edit", "JOB…", "change jobs' files in an editor", words="jobs"),
    Verb(STEERING, "remove", "JOB…", "delete jobs", aliases=("rm",), words="movable"),
    Verb(
        STEERING,
        "hold",
        "LANE [OPTIONS…] -- COMMAND…",
        "run a command by hand that has the lane",
        words="lanes",
    ),
    Verb(
        STEERING,
        "adopt",
        "LANE UNIT|PID",
        "let what runs already have a lane until it ends",
        words="adoptable",
    ),
    Verb(STEERING, "pause", "LANE…", "start nothing new in a lane", words="lanes"),
    Verb(STEERING, "resume", "LANE…", "let a paused lane go on", words="lanes"),
    Verb(
        SETTING_UP,
        "lint-units",
        "[PATH…]",
        "prove that unit files will be started at boot",
        words="files",
    ),
    Verb(
        SETTING_UP,
        "install",
        "",
        "prove the units against this box, put them in place, start the controller",
    ),
    Verb(SETTING_UP, "upgrade", "", "put this version in place of the last one; jobs run on"),
    Verb(SETTING_UP, "uninstall", "", "take away what install has put in place; the spool stays"),
    Verb(SETTING_UP, "doctor", "", "say what is wrong with this box, and what mends it"),
    Verb(
        SETTING_UP,
        "import",
        "DIR",
        "take over the jobs of another directory queue",
        words="files",
    ),
    Verb(SETTING_UP, "daemon", "", "the controller, as sdqueue.service runs it"),
    Verb(SETTING_UP, "completion", "SHELL", "print a shell's completion script", words="shells"),
)

GLOBAL_OPTIONS: dict[str, str] = {
    "--user": "the queue of the calling user (the default, unless root calls)",
    "--system": "the queue of the machine (the default for root)",
    "--json": "print JSON: short (one line), pretty, or off",
    "--no-legend": "print no head lines and no sums",
    "--no-pager": "do not pipe long output into a pager",
    "--help": "print help",
    "-h": "the same",
    "--version": "print the version",
}

_BY_NAME = {name: verb for verb in VERBS for name in (verb.name, *verb.aliases)}


def verb_named(name: str) -> Verb:
    """Return the verb, or raise UsageError that names the nearest one."""
    verb = _BY_NAME.get(name)
    if verb is None:
        near = did_you_mean(name, list(_BY_NAME))
        raise UsageError(f"there is no verb {shown(name)}{near or '.'} See sdqueue --help.")
    return verb
