"""The keys of a job file's header: one table that parser, `submit`, `check` and manual read.

Knows for each key its field in JobSpec, how its value is read and written, and one line of help.
Values are plain (numbers, texts, tuples); `jobfile` makes a JobSpec of them. Kept apart from it
and free of slow imports, since `sdqueue submit` checks its options with this table alone.
"""

from sdqueue import jobvalues as values
from sdqueue.words.names import did_you_mean, shown
from sdqueue.words.spans import format_timespan
from sdqueue.words.times import parse_timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo
    from typing import Any


class Key:
    """One header key: `# NAME: value`.

    `read` turns the text into the value of JobSpec's `field`, or raises ValueError; `write` is its
    inverse. Lines of a key with `many` add up, other keys may be given once.
    """

    __slots__ = ("example", "field", "help", "many", "name", "read", "write")

    def __init__(
        self,
        name: str,
        field: str,
        read: "Callable[[str], Any]",
        write: "Callable[[Any], str]",
        *,
        help: str,
        example: str,
        many: bool = False,
    ) -> None:
        self.name = name
        self.field = field
        self.read = read
        self.write = write
        self.help = help
        self.example = example
        self.many = many

    def value(self, text: str, *, now_sec: float = 0.0, zone: "tzinfo | None" = None) -> "Any":
        """Return what `text` means, or raise ValueError; times count from `now_sec`."""
        if not text.strip():
            raise ValueError("it has no value; give it one or remove the line")
        if self.field == "not_before_sec":
            return parse_timestamp(text, now_sec=now_sec, zone=zone)
        return self.read(text)

    def lines(self, value: "Any") -> list[str]:
        """Return the texts of the header lines that say `value`."""
        if self.many:
            return [self.write((part,)) for part in value]
        return [self.write(value)]


KEYS: tuple[Key, ...] = (
    Key(
        "LANE",
        "lane",
        values.read_lane,
        str,
        help="the lane it runs in; without it the second word of the job's name is tried",
        example="gpu",
    ),
    Key(
        "DONE_IF",
        "done_if",
        values.read_command,
        str,
        help="bash command that decides whether the work is done, before a start and after a run",
        example="test -s results/laguna.jsonl",
    ),
    Key(
        "REQUIRES",
        "requires",
        values.read_command,
        str,
        help="bash command that must succeed before the job is started; until then it waits",
        example="test -f ~/models/laguna.gguf",
    ),
    Key(
        "RETRIES",
        "attempts_max",
        values.read_attempts,
        str,
        help="attempts in all; 3 where nothing else is said",
        example="3",
    ),
    Key(
        "RETRY_DELAY",
        "retry_delay_usec",
        values.read_delay,
        format_timespan,
        help="time between the end of a failed attempt and the next one",
        example="5min",
    ),
    Key(
        "TIMEOUT",
        "timeout_usec",
        values.read_timeout,
        format_timespan,
        help="wall clock of one attempt; the DONE_IF after it has the same time once more",
        example="8h",
    ),
    Key(
        "MEMORY",
        "memory",
        values.read_memory,
        values.write_memory,
        help="memory that must be usable at the start: a size, a percentage of the box, or"
        " size(FILE)+12%",
        example="37G",
    ),
    Key(
        "DISK",
        "disk",
        values.read_disk,
        values.write_disk,
        help="space that must be free, and the directory where (else the job's own)",
        example="200G /data",
    ),
    Key("NICE", "nice", values.read_nice, str, help="CPU nice level, -20 to 19", example="10"),
    Key(
        "CPU_WEIGHT",
        "cpu_weight",
        values.read_weight,
        str,
        help="CPUWeight= of the job's unit, 1 to 10000",
        example="50",
    ),
    Key(
        "NOT_BEFORE",
        "not_before_sec",
        float,
        lambda seconds: f"@{seconds:.6f}".rstrip("0").rstrip("."),
        help="the earliest start; +2h counts from the file's last change",
        example="2026-11-29 18:00",
    ),
    Key(
        "AFTER",
        "after",
        values.read_jobs,
        values.write_words,
        help="jobs that must be done first; one that failed keeps this one waiting",
        example="50-net-laguna",
        many=True,
    ),
    Key(
        "AFTER_ANY",
        "after_any",
        values.read_jobs,
        values.write_words,
        help="jobs that must have ended first, however",
        example="51-gpu-warmup",
        many=True,
    ),
    Key(
        "PRIORITY",
        "priority",
        values.read_priority,
        str,
        help="higher goes first within the lane; 0 where nothing else is said",
        example="10",
    ),
    Key(
        "ON_SUCCESS",
        "on_success",
        values.read_units,
        values.write_words,
        help="units to start when the job is done",
        example="publish.service",
        many=True,
    ),
    Key(
        "ON_FAILURE",
        "on_failure",
        values.read_units,
        values.write_words,
        help="units to start when the job has failed for good",
        example="alarm.service",
        many=True,
    ),
    Key(
        "ENV",
        "env",
        values.read_environment,
        values.write_environment,
        help='one environment variable; in double quotes \\n, \\t, \\" and \\\\ are understood',
        example="HF_HUB_OFFLINE=1",
        many=True,
    ),
    Key(
        "CWD",
        "cwd",
        values.read_directory,
        values.plain,
        help="directory of the job and of its checks; the owner's home where nothing is said",
        example="/data/bench",
    ),
    Key(
        "ON_CALENDAR",
        "on_calendar",
        values.read_text,
        values.plain,
        help="for files in jobs.d/: when to submit it, as OnCalendar= of a timer",
        example="Mon..Fri 22:00",
    ),
    Key(
        "DESCRIPTION",
        "description",
        values.read_text,
        values.plain,
        help="what people read in status",
        example="Laguna, 32k context",
    ),
)
BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}


def key_named(name: str) -> Key:
    """Return the key, or raise ValueError that names the nearest one."""
    key = BY_NAME.get(name)
    if key is None:
        raise ValueError(f"there is no key {shown(name)}{did_you_mean(name, list(BY_NAME))}")
    return key


def header_text(name: str, text: str, *, now_sec: float = 0.0, zone: "tzinfo | None" = None) -> str:
    """Return the text for a header line that means what `text` means now, or raise ValueError."""
    key = key_named(name)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{shown(text)} is not valid UTF-8, and units can't carry it")
    return " ".join(key.lines(key.value(text, now_sec=now_sec, zone=zone)))
