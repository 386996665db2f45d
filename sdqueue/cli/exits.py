"""Exit statuses: one table for the verbs and the manual."""

OK = 0
FAILED = 1
USAGE = 2
NO_CONTROLLER = 3
NO_JOB = 4
NOT_DONE = 4
CANNOT_TELL = 4
SET_ASIDE = 5
NOT_HAD = 5
TIMED_OUT = 124
NOT_EXECUTABLE = 126
NOT_FOUND = 127
INTERRUPTED = 130
READER_GONE = 141

EXIT_STATUS: dict[int, str] = {
    OK: "it was done; wait and run: every job is done; is-free: the lane is free",
    FAILED: "it could not be done; check: a file has an error; wait: a job has failed; "
    "status --exit-code: a job runs, so it is not safe to reboot; is-free: the lane is taken, or "
    "somebody waits for it",
    USAGE: "the command line can't be understood",
    NO_CONTROLLER: "the controller must be asked, and none answers",
    NO_JOB: "there is no such job; run: the command ended with 0, but DONE_IF says it is not done; "
    "is-free: it can't be told",
    SET_ASIDE: "wait and run: a job was canceled, set aside or removed; hold, adopt: the lane was "
    "not had",
    TIMED_OUT: "wait: --timeout has passed; run: the job's TIMEOUT",
    NOT_EXECUTABLE: "hold: the command can't be executed",
    NOT_FOUND: "hold: there is no such command",
    INTERRUPTED: "Ctrl-C; the jobs run on",
    READER_GONE: "nobody read the output to its end",
}
"""`run` and `hold` give the status of the command itself where there is one."""
