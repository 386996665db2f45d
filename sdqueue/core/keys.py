"""What is in the rows of `core.view`, for the manual and for clients: key → what it says.

Loads nothing, since a client has need of no more than this.
"""

JOB_KEYS: dict[str, str] = {
    "name": "the job's name, without .job",
    "lane": "the lane it runs in; empty if its file can't be read",
    "state": "queued, running, done, failed or parked",
    "reason": "why it does not run: {code, detail, blocker, since, until}; null unless queued",
    "attempt": "the present or next attempt, from 1; of an ended job the last",
    "attempts_max": "attempts in all (RETRIES)",
    "rc": "exit status of the last run as a shell says it; null if none is known",
    "verified": "DONE_IF's answer after the last run: true, false, or null if not asked",
    "unit": "the unit that runs it, or would",
    "since": "unix time from which it is in this state",
    "run": "number of the present or last run; 0 if none",
    "invocation": "systemd's invocation id of the present or last run",
    "description": "DESCRIPTION",
}

LANE_KEYS: dict[str, str] = {
    "name": "the lane's name",
    "state": "free, running, leased, wanted, foreign, excluded, paused or unknown",
    "holder": "whose doing its state is: a unit, a job, a process's name; empty if nobody's",
    "detail": "its state in more words",
    "generation": "grows with each change of any lane's state",
    "slots": "jobs that may run at once",
    "occupants": "units that hold a slot now",
    "holders": "whose these are, in their order: jobs, and who hold leases",
    "since": "unix time from which the first of them has it; null if that is not known",
    "queued": "jobs that wait",
    "requests": "who asked for a lease on it and waits",
    "waiters": 'who waits for its leases to end: "job NAME" or "lease WHO"',
    "next": "the job at its head; empty if none",
    "reason": "why its head does not start; null if nothing stops it",
    "excludes": "lanes that never run at the same time",
}

OWNER_KEYS: dict[str, str] = {
    "lane": "the lane that is used",
    "standing": "ours, leased, yielding, foreign or untouchable",
    "counts": "whether it keeps the lane from being free",
    "use": "active, resident, holder or unknown; null where no use was seen",
    "pid": "the process; null if it is none in particular",
    "comm": "the kernel's name of the process; of a job its name, of a lease who holds it",
    "unit": "the unit it is in; empty if in none",
    "uid": "whose it is; null if that is not known",
    "memory": "bytes that it has on the device; null if not known",
    "since": "unix time from which a job runs or a lease is held; else null",
    "detail": "more words: who holds the lease and why, what is odd",
    "seen": "what each detector saw",
}
