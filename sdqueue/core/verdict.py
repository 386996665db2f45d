"""How a lane is, in one word. `core.judge` is the one function that says it.

Where a lane is `free`, a lease on it would be had at once and nobody is known to use it; any other
word is a no.
"""

from enum import StrEnum
from typing import NamedTuple


class LaneWord(StrEnum):
    """How a lane is."""

    FREE = "free"
    RUNNING = "running"
    LEASED = "leased"
    WANTED = "wanted"
    FOREIGN = "foreign"
    EXCLUDED = "excluded"
    PAUSED = "paused"
    UNKNOWN = "unknown"


LANE_WORD_HELP: dict[LaneWord, str] = {
    LaneWord.FREE: "nobody has it, wants it or uses it",
    LaneWord.RUNNING: "a job's unit has it",
    LaneWord.LEASED: "somebody holds a lease on it",
    LaneWord.WANTED: "a job that can run waits for it, or somebody who asked for a lease",
    LaneWord.FOREIGN: "somebody uses it whom the queue did not start",
    LaneWord.EXCLUDED: "a lane that excludes it is in use, or is about to be",
    LaneWord.PAUSED: "a person has paused it",
    LaneWord.UNKNOWN: "it can't be told: the queue is starting or in trouble, or a look at who uses"
    " the lane failed or is not over",
}


class Verdict(NamedTuple):
    """A lane's word, whose doing that is (a unit, a job, a process's name, a lane), and more words.

    `generation` is that of the step in which this became so.
    """

    word: LaneWord
    holder: str
    detail: str
    generation: int = 0


UNJUDGED = Verdict(LaneWord.UNKNOWN, "", "the controller is starting")
FREE = Verdict(LaneWord.FREE, "", "")
