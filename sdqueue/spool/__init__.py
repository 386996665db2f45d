"""Floor 4: the spool's files. A file's directory is its state; every change is durable first.

Synchronous; decides nothing; every OSError becomes a SpoolError that says what, where, what to do.
`files` and `layout` and `add` load nothing slow, since `sdqueue submit` is made of them.

| module   | knows                                                                  |
|----------|------------------------------------------------------------------------|
| files    | how bytes and names become durable                                     |
| layout   | where everything is, modes, schema version, the controller's lock      |
| add      | new job files, numbered names                                          |
| scan     | which job files there are, reading their heads                         |
| moves    | from one state to another, removal                                     |
| rewrite  | new content for a job file, in its place                               |
| takeover | files of another queue, on their way into this one                     |
| openers  | which processes have files open, or in their command line              |
| runs     | `runs/JOB/N/`: snapshot, record, witness; `work/JOB`                   |
| meta     | `meta/JOB.json`: what must outlive a restart and is not in the file    |
| eventlog | `events.jsonl`: append, rotate                                          |
| eventread | `events.jsonl`: the tail, and following it                            |
"""
