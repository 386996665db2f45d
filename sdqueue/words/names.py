"""Names of jobs and lanes: which are allowed, how they sort, which unit stands for each.

Knows what a file name, a unit name and a terminal can bear. Knows nothing of files: whether a job
of a name exists is for the spool to say. Imports next to nothing: `sdqueue submit` needs it.
"""

from sdqueue.words.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from re import Match, Pattern

SUFFIX = ".job"
UNIT_PREFIX = "sdqueue-"
JOB_UNIT_PREFIX = "sdqueue-job-"
JOB_UNIT_SUFFIX = ".service"
LEASE_UNIT_PREFIX = "sdqueue-lease-"
LANE_TARGET_PREFIX = "sdqueue-lane-"
UNIT_NAME_MAX = 255
# NAME.job and NAME.json would fit a file system's 255 bytes longer than the unit's name does, so
# the unit's name is the only limit that is ever met.
JOB_NAME_MAX = UNIT_NAME_MAX - len(JOB_UNIT_PREFIX) - len(JOB_UNIT_SUFFIX)
LANE_NAME_MAX = 64
DEFAULT_LANE_NAMES = ("cpu", "gpu", "net")

_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset("0123456789")
_LANE_CHARACTERS = _LOWER | _DIGITS | {"_"}
_UNIT_CHARACTERS = _LANE_CHARACTERS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ:.-")
_COMMAND_CHARACTERS = _UNIT_CHARACTERS - {":"} | {"+"}
_ESCAPE = {
    number: f"\\x{number:02x}" for number in range(256) if chr(number) not in _UNIT_CHARACTERS
}
# What moves the cursor, ends a line, or turns the direction of writing on a terminal.
_CONTROL_RANGES = ((0, 0x20), (0x7F, 0xA0), (0x2028, 0x202F), (0x2066, 0x206A))
_CONTROL = frozenset(chr(n) for first, end in _CONTROL_RANGES for n in range(first, end))


def job_name_fault(name: str) -> str | None:
    """Say why `name` (without `.job`) can't be a job's name, or None when it can."""
    for refuses, why in _FAULTS:
        if refuses(name):
            return why
    return None


def _too_long(name: str) -> bool:
    return len(_escaped(name)) > JOB_NAME_MAX


def _has_control(name: str) -> bool:
    return not _CONTROL.isdisjoint(name)


def _not_unicode(name: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in name)


def has_noncharacter(text: str) -> bool:
    """Say whether `text` has a code point that Unicode calls no character: systemd takes none."""
    return not text.isprintable() and any(
        ord(character) & 0xFFFE == 0xFFFE or "\ufdd0" <= character <= "\ufdef" for character in text
    )


_FAULTS = (
    (lambda name: not name, "it is empty"),
    (lambda name: name in (".", ".."), "it is a directory's own name"),
    (lambda name: "/" in name, "it has a '/' in it, and a name is one file's name, not a path"),
    (lambda name: name.startswith("."), "it begins with a dot, and hidden files are no jobs"),
    (_has_control, "it has a line break or another control character in it"),
    (_not_unicode, "it is not valid UTF-8"),
    (has_noncharacter, "it has a code point in it that is no character"),
    (
        lambda name: _DIGITS.issuperset(name),
        "it has only digits, which would be taken for a number; add a word to it",
    ),
    (lambda name: name.endswith(SUFFIX), "it ends in .job twice"),
    (
        _too_long,
        f"it is too long: its unit's name may have {UNIT_NAME_MAX} bytes, which leaves"
        f" {JOB_NAME_MAX} for the job, and each unusual byte counts four",
    ),
)


def job_name(text: str) -> str:
    """Return the job's name that `text` means, with or without `.job`, or raise UsageError."""
    name = text.removesuffix(SUFFIX)
    fault = job_name_fault(name)
    if fault is not None:
        raise UsageError(f"{shown(text)} can't be a job's name: {fault}.")
    return name


def lane_name_fault(name: str) -> str | None:
    """Say why `name` can't be a lane's name, or None when it can."""
    if not name:
        return "it is empty"
    if name[0] not in _LOWER or not _LANE_CHARACTERS.issuperset(name):
        # A dash would nest the lane's slice in another one.
        return "a lane's name is a small letter, then small letters, digits and '_'"
    if len(name) > LANE_NAME_MAX:
        return f"it is longer than {LANE_NAME_MAX} characters"
    return None


def shown(text: str) -> str:
    """Quote `text` so that it is safe and short enough to print in a message."""
    text = text if len(text) <= 80 else f"{text[:60]}…{text[-10:]}"
    odd = _has_control(text) or _not_unicode(text) or has_noncharacter(text)
    return ascii(text) if odd else f"'{text}'"


def second_word(name: str) -> str:
    """Return the second of the words that dashes separate (`52-gpu-laguna` → `gpu`), or ''."""
    words = name.split("-", 2)
    return words[1] if len(words) > 1 else ""


def command_word(argv: "Sequence[str]") -> str:
    """Return a word for a job's name that reminds of the command."""
    word = argv[0].rstrip("/").rpartition("/")[2] if argv else ""
    word = "".join(c if c in _COMMAND_CHARACTERS else "_" for c in word)[:40]
    return word.removesuffix(SUFFIX).strip("-.") or "job"


def numbered_name(number: int, lane: str, word: str) -> str:
    """Return the name that `submit` gives a job without one."""
    return f"{number:03}-{lane}-{word}"


def leading_number(name: str) -> int:
    """Return the number at the head of `name`, 0 where there is none or an absurd one."""
    digits = name[: len(name) - len(name.lstrip("0123456789"))]
    return int(digits) if 0 < len(digits) <= 9 else 0


def unit_of_job(name: str) -> str:
    """Return the name of the job's service unit."""
    return f"{JOB_UNIT_PREFIX}{_escaped(name)}{JOB_UNIT_SUFFIX}"


def _escaped(name: str) -> str:
    return name.encode("utf-8", "surrogatepass").decode("latin-1").translate(_ESCAPE)


def job_of_unit(unit: str) -> str | None:
    """Return the job that the unit stands for, or None when it is no job's unit."""
    if not (unit.startswith(JOB_UNIT_PREFIX) and unit.endswith(JOB_UNIT_SUFFIX)):
        return None
    escaped = unit[len(JOB_UNIT_PREFIX) : -len(JOB_UNIT_SUFFIX)]
    name = _unescaped(escaped) if "\\" in escaped else escaped
    # Only what unit_of_job() writes is ours: `\x61` for an `a` is some stranger's unit.
    if name is None or job_name_fault(name) or unit_of_job(name) != unit:
        return None
    return name


def _unescaped(escaped: str) -> str | None:
    first, *rest = escaped.split("\\x")
    try:
        raw = first.encode("ascii") + b"".join(
            bytes((int(piece[:2], 16),)) + piece[2:].encode("ascii") for piece in rest
        )
        return raw.decode("utf-8")
    except ValueError:
        return None


def target_of_lane(lane: str) -> str:
    """Return the name of the lane's target unit."""
    return f"{LANE_TARGET_PREFIX}{lane}.target"


def unit_of_checks(lane: str) -> str:
    """Return the name of the unit that asks DONE_IF and REQUIRES of jobs of a lane."""
    return f"sdqueue-check-{lane}.service"


def unit_of_lease(lane: str, lease: str) -> str:
    """Return the name of the unit that stands for a lease."""
    return f"{LEASE_UNIT_PREFIX}{lane}-{lease}{JOB_UNIT_SUFFIX}"


def unit_of_verdict(job: str) -> str:
    """Return the name of the unit that asks DONE_IF of one job after a failed run."""
    return f"sdqueue-ask-{_escaped(job)}{JOB_UNIT_SUFFIX}"


def slice_of_lane(lane: str) -> str:
    """Return the name of the lane's slice unit."""
    return f"{UNIT_PREFIX}{lane}.slice"


def sort_key(name: str) -> str:
    """Return a key that sorts names as people number them: `9-b` before `10-a`.

    Each number is led by its length, so that comparing the keys as strings compares numbers.
    Names that differ only in leading zeros are told apart by the name itself at the key's end.
    """
    global _numbers
    if _numbers is None:
        from re import compile  # here, since `submit` sorts nothing and starts without it

        _numbers = compile("[0-9]+")
    return f"{_numbers.sub(_number_key, name)}\0{name}"


_numbers: "Pattern[str] | None" = None


def _number_key(found: "Match[str]") -> str:
    digits = found[0].lstrip("0")
    return f"0{chr(len(digits) + 1)}{digits}"


def did_you_mean(word: str, choices: "Sequence[str]") -> str:
    """Return `; did you mean X?` for the end of a message, or ''."""
    from difflib import get_close_matches  # only where something is wrong already

    near = get_close_matches(word, choices, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""
